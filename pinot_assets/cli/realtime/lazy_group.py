"""The command group `realtime`, loaded when one of its commands is asked for: others need not wait for it.

`Any`: typer's own types are private, and not the same in its releases.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


def realtime_app() -> typer.Typer:
    """The group, with nothing loaded yet."""
    return typer.Typer(
        cls=_RealtimeGroup,
        no_args_is_help=True,
        help="REALTIME tables: check, watch and mend them, switch pauseless consumption, rebalance.",
        epilog="Start with `pinot-assets realtime preflight TABLE`; docs/guides/realtime.md has a command "
        "for each kind of trouble.",
    )


class _RealtimeGroup(TyperGroup):
    """Hands everything to `pinot_assets.cli.realtime.group`."""

    @cached_property
    def _whole(self) -> TyperGroup:
        from pinot_assets.cli.realtime.group import app

        return get_group(app)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, as the other group has them."""
        return self._whole.list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command of the other group."""
        return self._whole.get_command(ctx, cmd_name)
