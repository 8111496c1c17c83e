"""Make the shadow table of an audit, fill it, ask it through a broker, and delete it.

All this needs the lease of the table that it belongs to. A driver that dies leaves the shadow table or only
its schema; both carry a mark. The table's next trigger, `clear` or next audit removes them. Pinot keeps the
tars of each table in a separate folder and deletes only there. So neither the staged tars nor the deep store
of the real table are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self

from pinot_assets.audit.assertions import Tally, broker_tally
from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import PinotError, SwitchStateUnknown
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.push.upload_loop import wait_online
from pinot_assets.pinot.shadow_table import is_shadow, lone_schema, shadow_config, shadow_name, shadow_schema
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.lineage.switch import push_missing
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec.blocks.assertion import Question
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX

POLL_SECONDS = 0.25
AGAIN_SECONDS = 1.0
LET_GO_SECONDS = 30.0
"""Seconds to wait after a table of the same name was deleted: Pinot refuses a new one until its servers have
dropped the segments."""


class ShadowTable:
    """One table's, for one audit; made when it is first filled, and gone when the `with` ends.

    :param context: holds the lease.
    """

    def __init__(self, context: TriggerContext) -> None:
        self.name = shadow_name(context.table)
        self._context = context
        self._pinot = context.pinot
        self._made = False
        self._outputs: dict[str, Output] = {}
        self._broker = ""
        self._trouble: PinotError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._made:
            return
        try:
            remove_shadow(self._context)
        except PinotError as left:
            self._context.note(f"{self.name} is left for the next trigger to remove: {left.reason}")

    def fill(self, outputs: Iterable[Output]) -> None:
        """Add these segments to the table; return when its brokers count all of its rows.

        :raises PinotError: Pinot refuses the table or a segment, or does not show all rows in time. Later
            calls raise the same error, so that the next assertion does not wait as long.
        """
        if self._trouble is not None:
            raise self._trouble
        new = [output for output in outputs if output.segment not in self._outputs]
        if self._made and not new:
            return
        try:
            self._fill(new)
        except PinotError as trouble:
            self._trouble = trouble
            raise

    def _fill(self, new: list[Output]) -> None:
        if not self._made:
            self._make()
        run, before_write = self._context, self._context.before_pinot_write
        push_missing(run.clients, self.name, new, run.switcher().push_mode, before_write, before_write)
        self._outputs |= {output.segment: output for output in new}
        wait_online(self._pinot, self.name, self._outputs, seconds=run.clients.waits.online)
        self._wait_for_rows(sum(output.rows for output in self._outputs.values()))

    def ask(self, question: Question) -> Tally:
        """Ask a broker about all segments of the table; return nothing if it has none."""
        if not self._outputs:
            return {}
        return _ask(self._pinot, self._broker, self.name, question)

    # --- made ----------------------------------------------------------------------------------------

    def _make(self) -> None:
        remove_shadow(self._context)
        self._refuse_others()
        run, pinot = self._context, self._pinot
        schema = pinot.get_schema(run.spec.name) or run.spec.schema_json
        config = shadow_config(run.read_table_config(), run.spec.name)
        self._made = True  # from here on there may be something to remove
        own_schema = shadow_schema(schema, run.spec.name)
        _write(run, lambda: pinot.put_schema(own_schema), lambda: pinot.get_schema(self.name) is not None)
        _write(run, lambda: self._create(config), lambda: _ask_if_there(pinot, self.name))

    def _refuse_others(self) -> None:
        """A table of a user is never touched, whatever it is called."""
        pinot, name = self._pinot, self.name
        is_table = pinot.get_table_config(name) is not None or pinot.get_realtime_config(name) is not None
        if is_table or pinot.get_schema(name) is not None:
            raise PinotError(
                f"no shadow table of {self._context.table} can be made",
                why=f"a {'table' if is_table else 'schema'} {name} exists that no audit made",
                hint="delete or rename it, or remove `via: shadow`",
            )

    def _create(self, config: dict[str, object]) -> None:
        def refusal() -> PinotError | None:
            self._context.before_pinot_write()
            try:
                self._pinot.create_table(config)
            except SwitchStateUnknown:
                raise
            except PinotError as error:
                return error
            return None

        refused = poll_until(
            Deadline(self._context.clients, LET_GO_SECONDS),
            AGAIN_SECONDS,
            refusal,
            lambda refused: refused is None or _ask_if_there(self._pinot, self.name),
        )
        if refused is not None:
            raise refused

    def _wait_for_rows(self, rows: int) -> None:
        """Wait until every broker counts `rows`; choose one of them for questions."""

        def counts() -> dict[str, int | None]:
            by_broker: dict[str, int | None] = dict.fromkeys(self._pinot.brokers(self.name))
            for url in by_broker:
                with suppress(PinotError):  # a segment is not routed yet
                    by_broker[url] = self._pinot.broker_rows(url, self.name)
            return by_broker

        counted = poll_until(
            Deadline(self._context.clients, self._context.clients.waits.broker),
            POLL_SECONDS,
            counts,
            lambda counted: set(counted.values()) == {rows},
        )
        if set(counted.values()) != {rows}:
            answers = ", ".join(f"{url} counts {count:,}" for url, count in counted.items())
            raise PinotError(
                f"{self.name} does not show its {rows:,} rows",
                why=answers or "no broker serves it",
            )
        self._broker = min(counted)


def ask_table(pinot: PinotClient, table: str, question: Question) -> Tally:
    """What queries of a table see now, by one of its brokers.

    :raises PinotError: no whole answer, or one that is no number.
    """
    brokers = pinot.brokers(table)
    if not brokers:
        raise PinotError(f"no broker serves {table}")
    return _ask(pinot, brokers[0], table, question)


def _ask(pinot: PinotClient, broker: str, table: str, question: Question) -> Tally:
    if question.having and question.limited and not versions.brokers_keep_all_groups(pinot.version()):
        raise PinotError(
            f"a broker of Pinot {pinot.version()} would not use all groups",
            why="it keeps five times LIMIT of them, 5,000 at least, before it applies HAVING",
            hint="leave LIMIT out",
        )
    return broker_tally(question, pinot.query_broker(broker, question.of(table + OFFLINE_SUFFIX)))


def remove_shadow(context: TriggerContext) -> bool:
    """Delete the table's shadow table, and its schema, if an audit left one of them.

    :returns: whether there was any.
    :raises PinotError: it is not known whether it is deleted.
    """
    pinot, name = context.pinot, shadow_name(context.table)
    if stands := _ask_if_there(pinot, name):
        _write(context, lambda: pinot.delete_table(name, "0d"), lambda: pinot.get_table_config(name) is None)
    if alone := lone_schema(pinot, name):
        _write(context, lambda: pinot.delete_schema(name), lambda: pinot.get_schema(name) is None)
    return stands or alone


def delete_left_shadow(context: TriggerContext) -> None:
    """As `remove_shadow`, at the start of a trigger: if the table stays, only note it."""
    try:
        if remove_shadow(context):
            context.note(f"{shadow_name(context.table)}, which an audit had left, was deleted")
    except PinotError as error:
        context.note(f"{shadow_name(context.table)}, which an audit had left, stays: {error.reason}")


def _ask_if_there(pinot: PinotClient, name: str) -> bool:
    return is_shadow(name, pinot.get_table_config(name))


def _write(context: TriggerContext, write: Callable[[], None], happened: Callable[[], bool]) -> None:
    """One write; where its answer is lost, Pinot is looked at until it happened or its time is over (R2)."""
    context.before_pinot_write()
    try:
        write()
    except SwitchStateUnknown:
        deadline = Deadline(context.clients, context.clients.waits.broker)
        if not poll_until(deadline, POLL_SECONDS, happened, bool):
            context.lease.left_unknown()
            raise
