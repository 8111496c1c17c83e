"""Begin a session, or begin the next attempt of the open one, and build its files
(docs/design/session.md#a-new-session and #continuing-an-open-session)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import FIRST, NEWEST
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import in_threads
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query, TaskKind, segment_name
from pinot_assets.pinot.lineage import Lineage, LineageState
from pinot_assets.session.build_packs import pack_settings, refuse_older_format
from pinot_assets.session.checks.capacity import require_plan_fits
from pinot_assets.session.checks.segment_target import segment_target
from pinot_assets.session.checks.staging_probe import require_staging_reachable
from pinot_assets.session.close import ask_if_lost, load_switch
from pinot_assets.session.context.context import TriggerContext, next_seq
from pinot_assets.session.decide.next_plan import returned, revoked, with_spent_names
from pinot_assets.session.decide.retries import Next, Opened
from pinot_assets.session.lineage.entries import why_self_completing
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import write_cluster_marker
from pinot_assets.session.values.plan import Changes, Plan, Receipts, Row, segments_from, with_receipt
from pinot_assets.session.values.report import WARNING, notes_on, small_files, small_published
from pinot_assets.session.values.state import (
    Mode,
    ObjectRef,
    PushKind,
    Session,
    State,
    is_fresh,
    new_session_id,
)
from pinot_assets.session.values.trouble import STALLS
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Receipt, SourceFile
from pinot_assets.table_spec.blocks.ingestion import FileIngestion

_NO_WORD: Final = (
    f"{STALLS} runs in a row ended before a file was built, without a reason: they were killed, "
    "or had too little memory"
)

# --- a new session ---------------------------------------------------------------------------------


def begin(
    context: TriggerContext, plan: Plan, changes: Changes, current: Snapshot | None
) -> tuple[Session, Plan]:
    """Open a new session in INIT; return it with its first plan.

    :param plan: the decided plan; it does not name its session yet.
    """
    seq, pointer = next_seq(context), context.lease.pointer
    # A new table begins in the newest format; for any other table, only `state upgrade` changes the format.
    number = NEWEST if is_fresh(pointer) else pointer.format
    refuse_older_format(context, number)
    target = segment_target(context)  # what it refuses opens no session
    recipe = None if number == FIRST else replace(context.recipe, target=target)
    plan = replace(plan, session=new_session_id(seq), format=number, recipe=recipe)
    refuse_too_many(context, plan, current)
    if current is None:
        # Check before the first session, while nothing is stored yet (R28).
        require_staging_reachable(
            context.staging, context.spec.ingestion.output_props, context.spec.policy, context.clients.builder
        )
    write_cluster_marker(context.clients)
    now = context.clients.now_ms()
    session = Session(
        id=plan.session,
        seq=seq,
        mode=context.mode,
        config_fingerprint=context.fingerprint,
        created_ms=now,
        attempt_started_ms=now,
        plan=context.staging.put_plan(plan),
        counts=plan.counts(),
        push=context.push,
        format=plan.format,
        asked_by=context.asked_by,
    )
    open_session(context, session, pointer.hold)
    context.note(f"session {session.id} ({session.mode.lower()}): {plural(len(plan.rows), 'file')} to build")
    small = small_files(
        (r.planned.size for r in plan.to_build if not r.is_small),
        small_published(current.files) if current else 0,
    )
    if small is not None:
        context.note(f"{WARNING} {small}")
    if context.mode is Mode.APPEND and changes.rewritten:
        context.note(
            f"{len(changes.rewritten):,} rewritten files are added beside their older versions (append)"
        )
    return session, plan


def open_session(context: TriggerContext, session: Session, hold: ObjectRef | None) -> None:
    """Store a new session and make it the table's open one.

    :param hold: the hold from now on, None for none.
    """
    pointer = context.lease.pointer
    pointer = replace(
        pointer,
        active_session=session.node,
        next_seq=session.seq + 1,
        history=(*pointer.history, session.node)[-2:],
        hold=hold,
        format=session.format,
    )
    context.lease.write(pointer=pointer, session=session)
    context.lease.prune()


def refuse_too_many(context: TriggerContext, plan: Plan, current: Snapshot | None) -> None:
    """Check, before anything is built, that one switch can publish the whole plan.

    :raises PushRefused: it cannot, however the files are built.
    :raises SwitchConflict: an open lineage entry completes itself.
    """
    if (paused := why_self_completing(context.table, context.switcher().fetch())) is not None:
        raise paused
    if context.push is not PushKind.PLAIN:
        visible = context.pinot.visible_segments(context.table)
        require_plan_fits(context.table, plan, segments_from(plan, current, visible))


# --- an open session -------------------------------------------------------------------------------


def go_on(
    context: TriggerContext,
    session: Session,
    opened: Opened,
    plan: Plan,
    receipts: Receipts,
    current: Snapshot | None,
) -> tuple[Session, Plan]:
    """Begin the open session's next attempt; return the session and its plan, with spent names replaced."""
    is_retry, now_ms = opened.next is Next.RETRY, context.clients.now_ms()
    trouble_since_ms = session.trouble_since_ms or (now_ms if opened.keeps_dying else 0)
    refuse_too_many(context, plan, current)
    taken = with_spent_names(plan, receipts, _spent(context, session))
    taken |= returned(opened.plan, plan, receipts)
    plan = revoked(plan, taken)
    # The gate stays open for the same switch (R8), the same audit policy and the same files. The files are
    # compared, too: a new file without a segment changes no switch, but no audit has checked it.
    before, now = ((p.rows, p.packs, p.removals) for p in (opened.plan, plan))
    is_audited = before == now and session.gate_open_by(context.spec.audit.digest)
    session = replace(
        session,
        plan=context.staging.put_plan(plan),
        attempt=plan.attempt,
        attempt_started_ms=now_ms,
        retry_count=session.retry_count + is_retry,
        stalls=0 if is_retry else opened.stalls,
        failures=None,
        audit=session.audit if is_audited else None,
        counts=plan.counts(),
        trouble_since_ms=trouble_since_ms,
        last_error=(session.last_error or _NO_WORD) if trouble_since_ms else "",
        asked_by=context.asked_by,
    )
    context.write_session(session)
    if taken:
        # After the write, so that no other driver uses this attempt's names.
        plan = renamed(context.staging, context.table, plan, taken)
        context.note(f"{len(taken):,} built files get new names; their files are not read again")
    what = f"retry {session.retry_count} of" if is_retry else "continuing"
    context.note(
        f"{what} session {session.id}: {plural(len(plan.done), 'file')} kept, {len(plan.to_build):,} to build"
    )
    return session, plan


def _spent(context: TriggerContext, session: Session) -> frozenset[str]:
    """Return the names that must never be pushed again (rule R16).

    The session names its lost entry until another one is opened. So if this driver dies, the next one still
    knows these names.
    """
    spent = spent_names(context.switcher().fetch())
    if session.state is State.SWITCH and ask_if_lost(context, session):
        context.note(f"the lineage entry of {session.id} was reverted, or Pinot gave it up")
        spent |= frozenset(load_switch(context, session).names_to)
    return spent


def build(context: TriggerContext, session: Session, plan: Plan) -> tuple[list[Receipt], list[Failure]]:
    """Build the plan's files that have no receipt.

    :returns: receipts, and failures sorted by ordinal; skipped files are in neither.
    :raises LeaseLost: another owner has the table now; nothing was built.
    """
    kinds = {False: TaskKind.FILE, True: TaskKind.SMALL_FILE}
    tasks = [FileTask(SourceFile(r.uri, r.planned), r.ordinal, kinds[r.is_small]) for r in plan.to_build]
    receipts: list[Receipt] = []
    failures: list[Failure] = []

    def on_done(outcome: Receipt | Failure) -> None:
        context.progress.built(outcome)
        if isinstance(outcome, Receipt):
            receipts.append(outcome)
            context.built += 1
        else:
            failures.append(outcome)

    context.lease.assert_held()  # without the lease, the next owner may build the same files (I13)
    context.progress.building({task.ordinal: task.file.fingerprint.size for task in tasks})
    context.clients.builder.build(
        build_spec_of(context, session, plan), tasks, on_done, context.progress.moving
    )
    for note in notes_on(receipts):
        context.note(note)
    failed = [f for f in failures if not _skipped(context, session, plan, f)]
    return receipts, sorted(failed, key=lambda f: f.ordinal)


def _skipped(context: TriggerContext, session: Session, plan: Plan, failure: Failure) -> bool:
    """Skip an unreadable file if the table spec allows it (edge case E17); return whether it was skipped.

    A published file is never skipped: its rows must not vanish because its new version is broken.
    """
    if not context.spec.ingestion.skip_unreadable or failure.code != "UNREADABLE":
        return False
    current = context.current_snapshot()
    if current is not None and failure.uri in current.ledger:
        return False
    (row,) = [r for r in plan.to_build if r.ordinal == failure.ordinal]
    context.staging.put_skipped(session.id, row, failure, session.format)
    context.note(f"skipped {failure.uri}: {failure.reason}")
    return True


def build_spec_of(context: TriggerContext, session: Session, plan: Plan) -> BuildSpec:
    """Return the settings that all files of an attempt share."""
    ingestion, staging = context.spec.ingestion, context.staging
    return BuildSpec(
        table=context.table,
        session=session.id,
        attempt=plan.attempt,
        creation_time_ms=session.created_ms,
        schema=context.spec.schema_json,
        table_config=context.spec.table_json,
        input_format=ingestion.input_format,
        reader=ingestion.reader,
        source_uri=context.clients.source.uri,
        source_props=ingestion.input_props,
        staging_uri=staging.session_uri(session.id),
        segments_uri=staging.store.uri_of("segments"),
        staging_props=ingestion.output_props,
        max_rows_per_segment=ingestion.max_rows_per_segment,
        write_for=segment_target(context),
        policy=context.spec.policy,
        desired_segment_bytes=ingestion.segment_bytes,
        max_bad_rows=ingestion.bad_row_limit,
        missing_column=ingestion.on_missing_column,
        provenance_column=context.spec.layout.provenance_column,
        query=query_of(ingestion, context.spec.table_json),
        limits=FileLimits.of_environment(os.environ),
        format=session.format,
        packs=pack_settings(context, plan, context.current_snapshot()),
    )


def query_of(ingestion: FileIngestion, table_config: JsonMapping) -> Query | None:
    """Return the query that Spark SQL applies to the rows; None if the tasks read the files themselves.

    :param table_config: its `transformConfigs` and `filterConfig` need Spark, too.
    """
    query = Query.of(ingestion.filter, ingestion.transforms, table_config)
    return query if query.expressions or ingestion.engine == "spark" else None


def spent_names(lineage: Lineage) -> frozenset[str]:
    """Return the names that must never be pushed again, as far as Pinot's lineage still has them.

    A name of a REVERTED lineage entry is spent for ever: a forced start deletes its segment again (rule R16).
    """
    return frozenset[str]().union(*(e.segments_to for e in lineage.in_state(LineageState.REVERTED)))


def renamed(staging: Staging, table: str, plan: Plan, receipts: Mapping[int, Receipt]) -> Plan:
    """Return the plan after the receipts' tars got names of its attempt, each with a new receipt.

    So the plan alone still says what is switched to (rule R11). A repetition after a driver's death makes the
    same objects.

    :param receipts: by the ordinal of the row that takes them over; another row may have built them.
    """

    def taken(row: Row) -> Row:
        if (old := receipts.get(row.ordinal)) is None:
            return row
        name = partial(segment_name, table, plan.session, plan.attempt, row.ordinal)
        outputs = tuple(staging.put_renamed(output, name(k)) for k, output in enumerate(old.outputs))
        receipt = replace(old, ordinal=row.ordinal, attempt=plan.attempt, outputs=outputs)
        key = staging.put_receipt(plan.session, receipt)
        return with_receipt(row, key, receipt)

    rows = in_threads(taken, (*plan.rows, *plan.packs), THREADS, "rename")
    return replace(plan, rows=tuple(rows[: len(plan.rows)]), packs=tuple(rows[len(plan.rows) :]))
