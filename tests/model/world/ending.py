"""When trouble ends: triggers until it is quiet, and what must be true then (I7, I8, I10, I14, I15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from model.world.oracle import Ledger
from model.world.process import Kind, Trouble
from model.world.table import TABLE, ModelTable, run

from pinot_assets.pinot import LineageState
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import is_ours

TRIGGERS = 6
"""How many it may take: the switch that was left, a session that was planned before, one more, and quiet."""


def settle(table: ModelTable) -> None:
    """No more trouble, and triggers until there is nothing to do."""
    truth = table.truth
    table.story.append("--- no more trouble")
    for running in table.stopped:
        table.kill(running)
    table.later(120)
    while table.late:
        table.deliver()
    table.orphans.clear()
    table.give_up_foreign()
    for name, content in table.files.items():
        if content.startswith(b"!"):
            table.source.write(name, f"{name}mended".encode())
    for _ in range(TRIGGERS):
        last = table.start(run)
        if last.report is not None and last.report.result is TriggerResult.NOTHING:
            break
        table.later(60)
    else:
        truth.violated("I8", f"not quiet after {TRIGGERS} triggers: {last.report or last.process.error}")
        return
    _is_quiet(table)
    for _ in range(3):
        # Only what was replaced less than a day ago is left in Pinot beside what is in sight (I10, I14).
        table.later(25 * 3600)
        table.clean_up()
    fake = table.pinot._tables[TABLE]
    if orphans := fake.segments.keys() - fake.visible:
        truth.violated("I10", f"orphan segments {sorted(orphans)}")
    if left := list(fake.entries.values()):
        truth.violated("I14", f"entries that nobody cleans up: {left}")


def _is_quiet(table: ModelTable) -> None:
    truth = table.truth
    if truth.open_session:
        truth.violated("I8", f"{truth.open_session} is still open")
    truth.lagging.clear()
    truth.look()
    if (expected := _source(table)) != _newest(truth.ledger, table):
        truth.violated("I7", f"published: {truth.ledger}, in the source: {expected}")
    fake = table.pinot._tables[TABLE]
    # A start that arrives when its driver has lost the table or given it up opens an entry that nobody knows.
    # It hides nothing that is in sight; the next switch reverts it, or Pinot's retention, as is seen below.
    entries = [e for e in fake.entries.values() if e.id not in truth.belated]
    opened = [e for e in entries if e.state is LineageState.IN_PROGRESS]
    if opened:
        truth.violated("I14", f"orphan entries: {[sorted(e.segments_to) for e in opened]}")
    store = SessionStore(table.zookeeper.client(), "pinot", f"{TABLE}_OFFLINE")
    if len(store.sessions()) > 3:  # two, and one more when the last clean-up was cut off
        truth.violated("sessions kept", str([s.id for s in store.sessions()]))
    reference = store.pointer().current_snapshot
    if reference is None:
        if any(is_ours(TABLE, s) for s in fake.visible):
            truth.violated("I15", f"no ledger, and in sight: {sorted(fake.visible)}")
        return
    snapshot = Staging(table.staging).snapshot(reference)
    visible = {s: fake.metadata[s].custom for s in fake.visible if is_ours(TABLE, s)}
    says = Counter((o.segment, f.uri) for f in snapshot.files for o in f.outputs)
    says += Counter((o.segment, p.members) for p in snapshot.packs for o in p.outputs)
    sees = Counter(
        (s, custom.get("pinotAssets.file") or custom["pinotAssets.members"]) for s, custom in visible.items()
    )
    if says != sees:
        truth.violated("I15", f"the ledger says {sorted(says)}, the segments {sorted(sees)}")
    for output in snapshot.segments.values():
        if table.staging.stat(table.staging.key_of(output.tar_uri)) is None:
            truth.violated("R9", f"the tar of {output.segment} was deleted")


def _source(table: ModelTable) -> Ledger:
    return {name: (content,) for name, content in table.files.items()}


def _newest(ledger: Ledger, table: ModelTable) -> Ledger:
    """What of the ledger the source can tell about: append keeps what was deleted, and older versions."""
    return {n: c[-1:] for n, c in ledger.items() if table.mode != "append" or n in table.files}


Life = Callable[[list[Trouble]], tuple[ModelTable, int]]
"""A table's life with these troubles; returns the table and how many effects its troubled run had."""


def holds_at_every_effect(life: Life, kind: Kind, least: int) -> None:
    """Let each effect of the run fail in that way, in turn; nothing may be seen that must not be.

    :param least: fewer effects than that are not the run that is meant.
    """
    _, effects = life([])
    assert effects > least
    for number in range(1, effects + 1):
        table, _ = life([Trouble(number, kind)])
        assert not table.truth.violations, "\n".join([*table.story, *table.truth.violations])
