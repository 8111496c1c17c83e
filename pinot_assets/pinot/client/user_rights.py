"""A user's rights in Pinot: calls that it refuses for lack of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pinot_assets.errors import PinotError


class NoRights(PinotError):
    """Pinot does not know the user, or the user may not make this call: status 401, or 403."""


@contextmanager
def admin_of_server() -> Iterator[None]:
    """Wrap calls to a server's admin port: a refusal says which right the user lacks there.

    Since https://github.com/apache/pinot/pull/19233 a server with access control asks for it on every route
    that we call: 401 without a user, 403 for one with READ alone. Before, it asked for nothing.

    :raises NoRights: as in the block, with another hint.
    """
    try:
        yield
    except NoRights as error:
        raise NoRights(
            error.what,
            why=error.why,
            hint="this route of a server needs its admin right: give the user of PINOT_USER or PINOT_TOKEN "
            "the permission admin in the server's access control (role ADMIN, component SERVER for users "
            "in ZooKeeper); docs/security.md has the routes",
        ) from error
