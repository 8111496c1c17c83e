"""`pinot-assets realtime rebalance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, new_console, show_json
from pinot_assets.cli.realtime.table import TableName
from pinot_assets.cli.realtime.work import RUN, open_work, tell
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.realtime.operations.rebalance import End, Rebalance, preview
from pinot_assets.realtime.operations.rebalance_plan import Preview, RebalancePlan, Request

Apply = Annotated[bool, typer.Option("--apply/--dry-run", help="Do it, or only judge it.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="One of Pinot's own, name=value: minAvailableReplicas=1, say."),
]
UploadFirst = Annotated[
    bool, typer.Option("--upload-first", help="With --apply: repair first, so that all is in the deep store.")
]
Minutes = Annotated[int, typer.Option("--minutes", min=1, help="How long it is followed.")]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def rebalance(
        table: TableName,
        apply: Apply = False,
        options: Options = None,
        upload_first: UploadFirst = False,
        minutes: Minutes = 360,
        as_json: AsJson = False,
    ) -> None:
        """Rebalance TABLE, unless rows that only servers have could be lost.

        Runs Pinot's own pre-checks and ours, which count live copies only. Changes nothing without --apply.
        Exits 0 when it is done or may be done, 2 when it is refused, has failed or goes on.
        """
        request = _request(options or ())
        with open_work(table) as work:
            if not apply:
                told, judgement = preview(work.pinot, work.read, work.table, request)
                _show(told, judgement, as_json)
                raise typer.Exit(ExitCode.REFUSED if judgement.refused else ExitCode.DONE)
            with work.hold(f"{RUN} rebalance") as lease:
                if upload_first:
                    for _ in work.repair(lease).rounds(20):
                        pass
                report = Rebalance(work.pinot, work.read, lease, tell, minutes * 60.0).run(request)
        if as_json:
            show_json(asdict(report))
        else:
            new_console().print(f"{report.end}: {escape(report.text)}" if report.text else str(report.end))
        if report.end not in (End.DONE, End.NOTHING):
            raise typer.Exit(ExitCode.REFUSED)


def _request(options: Sequence[str]) -> Request:
    """:raises PinotAssetsError: an option cannot be read, or Pinot does not know it."""
    try:
        return Request.of(**_parsed(options))
    except ValueError as error:
        raise PinotAssetsError("the options of the rebalance cannot be read", why=str(error)) from None


def _parsed(options: Sequence[str]) -> dict[str, str]:
    """:raises PinotAssetsError: one is not name=value, or is this command's own business."""
    found = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or name in ("dryRun", "preChecks", "type"):
            raise PinotAssetsError(f"--option {option} is not understood", hint="write name=value")
        found[name] = value
    return found


def _show(told: Preview, judgement: RebalancePlan, as_json: bool) -> None:
    if as_json:
        show_json(_values(told, judgement))
        return
    for line in _lines(told, judgement):
        new_console().print(line)


def _lines(told: Preview, judgement: RebalancePlan) -> Iterator[str]:
    yield f"Pinot's dry run: {escape(told.status)}; {plural(len(judgement.moves), 'segment')} would move"
    for name, (status, message) in told.checks.items():
        if status == "PASS":
            yield f"[green]pass  [/] {escape(name)}: {escape(message)}"
    for one in judgement.objections:
        yield f"{'[red]REFUSE' if one.blocks else '[yellow]warn  '}[/] {one.name}: {escape(one.message)}"
        yield f"       → {escape(one.next_step)}"
    if judgement.upload_first:
        yield f"{len(judgement.upload_first)} of them are not in the deep store: --upload-first uploads them"
    if judgement.moves and not judgement.refused:
        yield "nothing was done; to do it, add [bold]--apply[/]"


def _values(told: Preview, judgement: RebalancePlan) -> dict[str, object]:
    return {
        "status": told.status,
        "preChecks": {name: list(check) for name, check in told.checks.items()},
        "moves": {
            m.segment.name: {"before": sorted(m.before), "after": sorted(m.after)} for m in judgement.moves
        },
        "objections": [
            {"name": one.name, "why": one.message, "remedy": one.next_step, "refuses": one.blocks}
            for one in judgement.objections
        ],
        "uploadFirst": list(judgement.upload_first),
        "refused": judgement.refused,
    }
