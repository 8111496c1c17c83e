"""What the settings of all clouds have in common: references resolved, TLS insisted on, patience."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

from pinot_assets.core.connections import is_loopback
from pinot_assets.core.policy import Policy
from pinot_assets.errors import SettingError
from pinot_assets.source.settings.references import resolve_env
from pinot_assets.source.uris import Root

if TYPE_CHECKING:
    from obstore.store import RetryConfig

# Listing and looking: a page takes seconds at most, so a minute of silence is a dead connection.
CALL_TIMEOUT = timedelta(minutes=1)
# One whole transfer of a large file on a slow line.
TRANSFER_TIMEOUT = timedelta(minutes=30)
# Up to 20 s of patience: rides out a throttled or restarting store, yet a wrong endpoint is told soon.
RETRY: RetryConfig = {
    "max_retries": 8,
    "retry_timeout": timedelta(minutes=1),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}


class BucketSettings(Protocol):
    """How to reach a bucket. Holds secrets: lives in one process, is never printed or pickled."""

    @classmethod
    def of(cls, root: Root, props: Mapping[str, str], policy: Policy) -> Self:
        """Resolve environment references and check the settings.

        :param props: suffixes of `input.fs.prop.*` (or `output.fs.prop.*`) and their values.
        :param policy: which variables may be read.
        :raises SettingError: one is unknown, malformed, or unsafe; never shows a value.
        """
        ...

    def client(self, timeout: timedelta) -> Any:
        """Obstore's own store."""
        ...


def resolve(cloud: str, known: Mapping[str, str], props: Mapping[str, str], policy: Policy) -> dict[str, str]:
    """The settings that are not empty, their references resolved.

    :param cloud: its name, for people.
    :param known: the settings that it has.
    :param policy: which variables may be read.
    :raises SettingError: an unknown setting, or a variable that is not set or may not be read.
    """
    unknown = sorted(set(props) - set(known))
    if unknown:
        raise SettingError(
            f"Unknown {cloud} setting {', '.join(unknown)}", hint=f"known are {', '.join(known)}"
        )
    return {name: resolved for name, value in props.items() if (resolved := resolve_env(value, policy))}


def allow_http(cloud: str, endpoint: str | None, values: Mapping[str, str], keys: str) -> bool:
    """Whether an endpoint may be reached without TLS.

    :param values: `allowHttp` counts.
    :param keys: names of the settings that credentials belong to.
    :raises SettingError: it is no URL, or another machine's and plain, and nobody allowed that.
    """
    allowed = values.get("allowHttp", "false").lower()
    if allowed not in ("true", "false"):
        raise SettingError("allowHttp is neither true nor false", hint="write true or false")
    if endpoint is None:
        return False
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise SettingError(
            f"The {cloud} endpoint is not a plain URL",
            hint=f"write https://host[:port]; keys go to {keys}",
        )
    if parts.scheme == "https":
        return False
    if allowed == "false" and not is_loopback(parts.hostname):
        raise SettingError(
            f"The {cloud} endpoint {parts.hostname} would be reached without TLS",
            why="what is read and written could be changed on its way",
            hint="use https://, or set allowHttp to true on a network that you trust",
        )
    return True
