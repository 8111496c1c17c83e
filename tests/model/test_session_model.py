"""Random lives of a table: whatever happens, queries see the set from before a switch or the one after it.

A `hypothesis` state machine drives the real plan and driver against a Pinot, a ZooKeeper and an object store
in memory. Files come, change and go; drivers lose calls and replies, die or stand still at any effect, and
wake up when another one has taken their table; time jumps. `PINOT_ASSETS_MODEL_EXAMPLES=5000` searches for
longer, each time elsewhere.
"""

from __future__ import annotations

import os

from fakes.pinot.memory import BROKERS
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model.world.ending import settle
from model.world.process import Kind, Trouble
from model.world.specs import losing_spec_of
from model.world.table import MODES, ModelTable, Running, clear, rebuild, run

EXAMPLES = os.environ.get("PINOT_ASSETS_MODEL_EXAMPLES")

NAMES = st.sampled_from(["A", "B", "C", "D"])
CHANGES = ["one row", "two rows", "no row", "unreadable", "touch", "remove"]
CALLS = [
    "push",
    "start_",
    "force_start",
    "end_",
    "rebuild",
    "delete",
    "force_revert",
    "build",
    "put snap",
    "list",
]
TROUBLE = st.builds(
    Trouble, st.sampled_from(range(1, 33)) | st.sampled_from(CALLS), st.sampled_from(sorted(Kind))
)
TROUBLES = st.lists(TROUBLE, min_size=1, max_size=2)


class Sessions(RuleBasedStateMachine):
    """See the module docstring."""

    table: ModelTable

    @initialize(mode=st.sampled_from(sorted(MODES)), retries=st.integers(0, 2))
    def begin(self, mode: str, retries: int) -> None:
        self.table = ModelTable(losing_spec_of, mode, {"consistentPushMaxRetries": retries})
        self.contents = 0

    # --- the source ------------------------------------------------------------------------------

    @rule(names=st.sets(NAMES, min_size=1), change=st.sampled_from(CHANGES))
    def change(self, names: set[str], change: str) -> None:
        for name in sorted(names):
            self._change(name, change)

    def _change(self, name: str, change: str) -> None:
        source, there = self.table.source, name in self.table.files
        self.contents += 1
        rows = {"one row": "a", "two rows": "ab"}.get(change, "")
        if change == "unreadable":
            source.write(name, f"!{self.contents}".encode())
        elif change == "touch" and there:
            source.write(name, source.read(name))
        elif change == "remove" and there:
            source.remove(name)
        else:
            source.write(name, " ".join(f"{name}{self.contents}{row}" for row in rows).encode())
        self.table.story.append(f"{name}: {change}")

    # --- drivers ---------------------------------------------------------------------------------

    @rule()
    def run(self) -> None:
        self.table.start(run)

    @rule(name=NAMES, change=st.sampled_from(CHANGES), troubles=TROUBLES, alone=st.booleans())
    def change_and_run(self, name: str, change: str, troubles: list[Trouble], alone: bool) -> None:
        self._change(name, change)
        self._run(troubles, alone)

    @rule(name=NAMES, troubles=TROUBLES, alone=st.booleans())
    def write_and_run(self, name: str, troubles: list[Trouble], alone: bool) -> None:
        self._change(name, "one row")
        self._run(troubles, alone)

    @rule(troubles=TROUBLES, alone=st.booleans())
    def run_in_trouble(self, troubles: list[Trouble], alone: bool) -> None:
        self._run(troubles, alone)

    def _run(self, troubles: list[Trouble], alone: bool) -> None:
        """Start a run; `alone`, when those that stand still or are dead have lost the table."""
        if alone:
            self.table.expire()
        self.table.start(run, troubles)

    @rule(delimiter=st.sampled_from([";", "|"]), is_asked=st.booleans())
    def change_spec(self, delimiter: str, is_asked: bool) -> None:
        """Somebody changes a setting that counts as one that changes rows; it changes none of these."""
        self.table.options["recordReader.prop.delimiter"] = delimiter
        self.table.options["onSpecChange"] = "ask" if is_asked else "rebuild"
        self.table.story.append(f"delimiter {delimiter}, onSpecChange {self.table.options['onSpecChange']}")

    @rule(troubles=st.just([]) | TROUBLES)
    def rebuild(self, troubles: list[Trouble]) -> None:
        self.table.start(rebuild, troubles)

    @precondition(lambda self: self.table.truth.open_session)
    @rule(troubles=TROUBLES)
    def clear(self, troubles: list[Trouble]) -> None:
        self.table.expire()
        self.table.start(clear, troubles)

    @precondition(lambda self: self.table.stopped)
    @rule(data=st.data())
    def wake(self, data: st.DataObject) -> None:
        self.table.go_on(self._stopped(data))

    @precondition(lambda self: self.table.stopped)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        self.table.kill(self._stopped(data))

    @precondition(lambda self: self.table.running)
    @rule()
    def expire(self) -> None:
        self.table.expire()
        self.table.story.append("ZooKeeper sessions end")

    def _stopped(self, data: st.DataObject) -> Running:
        stopped = self.table.stopped
        return stopped[data.draw(st.integers(0, len(stopped) - 1))]

    # --- the world -------------------------------------------------------------------------------

    @rule(hours=st.sampled_from([0.02, 5, 21, 25]))
    def time_passes(self, hours: float) -> None:
        self.table.story.append(f"{hours} hours pass")
        self.table.later(hours * 3600)

    @rule()
    def clean_up(self) -> None:
        self.table.clean_up()

    @rule(ours=st.none() | st.integers(0, 3), pushes=st.booleans(), gives_up=st.booleans())
    def somebody_else(self, ours: int | None, pushes: bool, gives_up: bool) -> None:
        if gives_up:
            self.table.give_up_foreign()
        if pushes:
            self.table.push_foreign()
        else:
            self.table.start_foreign(ours)

    @rule(broker=st.sampled_from(BROKERS))
    def deafen(self, broker: str) -> None:
        self.table.story.append(f"{broker} gets no messages")
        self.table.pinot.deafen_broker(broker)

    @precondition(lambda self: self.table.late)
    @rule()
    def deliver(self) -> None:
        self.table.deliver()

    @precondition(lambda self: self.table.orphans)
    @rule()
    def finish_orphan(self) -> None:
        self.table.finish_orphan()

    @rule(retries=st.integers(0, 3), mode=st.sampled_from(sorted(MODES)) | st.none(), cleared=st.booleans())
    def configure(self, retries: int, mode: str | None, cleared: bool) -> None:
        """Somebody edits the table's spec; None leaves the mode as it is."""
        table = self.table
        table.mode = mode or table.mode
        table.options["consistentPushMaxRetries"] = retries
        table.options["clearConsistentPushState"] = str(cleared).lower()
        table.story.append(f"max retries {retries}, mode {table.mode}, clearConsistentPushState {cleared}")

    # --- what holds ------------------------------------------------------------------------------

    @invariant()
    def nothing_was_violated(self) -> None:
        if hasattr(self, "table"):
            self._check()

    def teardown(self) -> None:
        if hasattr(self, "table"):
            try:
                if not self.table.truth.violations:
                    settle(self.table)
                    self._check()
            finally:
                for running in self.table.stopped:
                    running.process.kill()

    def _check(self) -> None:
        violations = self.table.truth.violations
        assert not violations, "\n".join([*self.table.story, "", *violations])


TestSessions = Sessions.TestCase
TestSessions.settings = settings(
    max_examples=int(EXAMPLES or 60),
    stateful_step_count=30,
    deadline=None,
    derandomize=EXAMPLES is None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=EXAMPLES is not None,
)
