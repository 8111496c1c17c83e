"""Kinds of change of a spec, carried out on a real Pinot and compared by queries.

A table is published under the spec of before, changed and reloaded. A second one is published under the spec
of now. Where the verdict is a reload or nothing, both answer alike and their servers hold the same indexes.
Where a rebuild changes values, they do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx
import pytest
from fakes.pinot.releases import release_of_stack
from fakes.pinot.staged import STAGED
from fakes.waiting import until
from oracle.spec_change_kinds import KINDS, Kind, Side, known_to_0_11

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import PinotError
from pinot_assets.pinot import HttpPinotClient, PinotConnection, wait_online
from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.segment import metadata_tar, write_tar
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec.changes.spec_changes import Verdict, spec_changes
from pinot_assets.table_spec.tables.reload import carry_out, plan_reload

_AT_A_TIME: Final = 4


IS_0_11: Final = release_of_stack() == "0.11.0"


def verdict_of(kind: Kind) -> str:
    """The verdict where all servers are of the release under test."""
    return kind.before_1_1 if IS_0_11 else kind.verdict


SHOWN: Final = [
    kind
    for kind in KINDS
    if not kind.by_rows
    and verdict_of(kind) in (Verdict.NOTHING, Verdict.RELOAD, Verdict.REBUILD)
    and (verdict_of(kind) != Verdict.REBUILD or kind.by_queries)
    and (not IS_0_11 or (known_to_0_11(kind.before) and known_to_0_11(kind.after)))
]


@dataclass(frozen=True)
class Answers:
    """What a table answers, and what its servers hold.

    :ivar rows: all rows, in the order of `clicks`, and how many values of `code` are null.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]
    held: tuple[HeldSegment, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of one change.

    :ivar reloaded: a table that was changed and reloaded.
    :ivar fresh: a table that was published under the spec of now.
    :ivar needs_reload: whether servers said between the change and the reload that they need one.
    :ivar is_stale: whether they said that the segment is not as the config wants it; None before 1.3.
    """

    reloaded: Answers
    fresh: Answers
    needs_reload: bool | None
    is_stale: bool | None


class Tables:
    """Tables in a Pinot, each with one segment."""

    def __init__(self, pinot: HttpPinotClient, controller: str, folder: Path) -> None:
        self._pinot, self._controller, self._folder = pinot, controller, folder
        self._stamp = time.time_ns()
        self.release = pinot.version()

    def tried(self, number: int, kind: Kind) -> Outcome | PinotError:
        """The outcome of one kind, or why there is none: the other kinds have theirs."""
        try:
            return self.carried_out(number, kind)
        except PinotError as error:
            return error

    def carried_out(self, number: int, kind: Kind) -> Outcome:
        """Publish both tables, change and reload the first."""
        old, new = (f"change{number}_{what}_{self._stamp}" for what in ("old", "new"))
        try:
            self._publish(old, kind.before)
            self._publish(new, kind.after)
            schema, config = self._named(old, kind.after)
            try:
                self._pinot.put_schema(schema)
            except PinotError:
                self._pinot.replace_schema(schema)
            self._pinot.update_table(config)
            needs_reload, is_stale = self._pinot.needs_reload(old), self._ask_if_stale(old)
            changes = spec_changes(kind.before.recipe, kind.after.recipe, self.release)
            plan = plan_reload(old, kind.after.recipe, changes, self._pinot)
            carry_out(plan, old, kind.after.recipe, self._pinot)
            return Outcome(
                self._answers(old, kind.after), self._answers(new, kind.after), needs_reload, is_stale
            )
        finally:
            for table in (old, new):
                with suppress(PinotError):
                    self._pinot.delete_table(table)
                    self._pinot.delete_schema(table)

    def _ask_if_stale(self, table: str) -> bool | None:
        reply = httpx.get(f"{self._controller}/segments/{table}_OFFLINE/isStale", timeout=60)
        if reply.status_code == httpx.codes.NOT_FOUND:
            return None
        answers = reply.raise_for_status().json().values()
        assert all(answer["validResponse"] for answer in answers), reply.text
        return any(answer["staleSegmentList"] for answer in answers)

    def _named(self, table: str, side: Side) -> tuple[JsonObject, JsonObject]:
        return {**side.schema, "schemaName": table}, {**side.config, "tableName": f"{table}_OFFLINE"}

    def _publish(self, table: str, side: Side) -> None:
        schema, config = self._named(table, side)
        segment = replace(side, schema=schema, config=config).build(f"{table}_0", write_for="0.11")
        self._pinot.put_schema(schema)
        self._pinot.create_table(config)
        tar, metadata = self._folder / f"{table}.tar.gz", self._folder / f"{table}.metadata.tar.gz"
        info = write_tar(segment, tar)
        metadata.write_bytes(metadata_tar(segment))
        places = tar.as_uri(), info.bytes, info.sha256, metadata.as_uri()
        output = Output(f"{table}_0", segment.crc, 40, *places)
        self._pinot.push(table, [output], staged=STAGED)
        wait_online(self._pinot, table, [f"{table}_0"], seconds=120)

    def _answers(self, table: str, side: Side) -> Answers:
        until(lambda: self._counted(table) == 40, 60)
        fields = [
            field["name"]
            for key, fields in side.schema.items()
            if key.endswith("FieldSpecs")
            for field in fields
        ]
        names = ", ".join(f'"{field}"' for field in sorted(fields))
        broker, name = self._pinot.brokers(table)[0], f"{table}_OFFLINE"
        answer = self._pinot.query_broker(broker, f"SELECT {names} FROM {name} ORDER BY clicks LIMIT 100")
        nulls = self._pinot.query_broker(broker, f"SELECT COUNT(*) FROM {name} WHERE code IS NULL")
        held = self._pinot.held_segments(table, [f"{table}_0"], self._pinot.table_servers(table))
        return Answers(
            answer.columns, answer.types, answer.rows + nulls.rows, tuple(held[f"{table}_0"].values())
        )

    def _counted(self, table: str) -> int:
        with suppress(PinotError):
            return self._pinot.broker_rows(self._pinot.brokers(table)[0], table)
        return 0


@pytest.fixture(scope="module")
def outcomes(
    stack: StackState, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, Outcome | PinotError]]]:
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        tables = Tables(pinot, stack.controller_url, tmp_path_factory.mktemp("changes"))
        found = in_threads(lambda one: tables.tried(*one), enumerate(SHOWN), _AT_A_TIME, "changes")
        yield (
            tables.release,
            {kind.name: outcome for kind, outcome in zip(SHOWN, found, strict=True)},
        )


@pytest.mark.parametrize("kind", SHOWN, ids=str)
def test_a_table_answers_as_its_verdict_says(
    kind: Kind, outcomes: tuple[str, dict[str, Outcome | PinotError]]
) -> None:
    release, by_name = outcomes
    outcome = by_name[kind.name]
    if isinstance(outcome, PinotError):
        if not kind.refused_by(release) or kind.refusal not in outcome.reason:
            raise outcome
        return
    assert not kind.refused_by(release)
    reloaded, fresh = outcome.reloaded, outcome.fresh
    assert outcome.needs_reload in (None, kind.reloads)
    assert outcome.is_stale in (None, (verdict_of(kind) != Verdict.NOTHING) is not bool(kind.stale))
    if verdict_of(kind) == Verdict.REBUILD:
        assert (reloaded.types, reloaded.rows) != (fresh.types, fresh.rows)
        return
    assert (reloaded.columns, reloaded.types, reloaded.rows) == (fresh.columns, fresh.types, fresh.rows)
    indexes = [{one.star_trees: {**one.indexes}} for answers in (reloaded, fresh) for one in answers.held]
    assert indexes
    assert all(one == indexes[0] for one in indexes)


def test_enough_kinds_are_shown() -> None:
    assert sum(verdict_of(kind) == Verdict.RELOAD for kind in SHOWN) >= 15
    assert sum(verdict_of(kind) == Verdict.REBUILD for kind in SHOWN) >= (8 if IS_0_11 else 5)
