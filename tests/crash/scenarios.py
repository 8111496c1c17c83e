"""What a table goes through when its driver is killed: ways to get there, and what must come of it.

A scenario repeats on one table: what one round leaves behind is where the next begins, so that a crash point
costs one change and not a table of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crash.driver import Answer
from crash.table import CrashTable
from crash.watch import Rows


@dataclass
class Round:
    """One change of the table and what queries may see of it.

    :ivar before: what they see until a switch.
    :ivar after: what they see in the end.
    :ivar step: what the run does that is to be killed.
    :ivar failing: files that it cannot build.
    """

    before: Rows
    after: Rows
    step: str = "run"
    failing: tuple[str, ...] = ()

    @property
    def gap(self) -> Rows | None:
        """What a broker may show for a moment while the step reverts: rows that stay (`crash/watch.py`)."""
        if self.step != "rollback":
            return None
        return tuple(sorted((Counter(self.before) & Counter(self.after)).elements()))


@dataclass
class Lane:
    """One table that goes through one scenario again and again.

    :ivar shown: what queries see between two rounds.
    :ivar taken: base name → rows as last published; append never takes them away.
    """

    table: CrashTable
    number: int = 0
    shown: Rows = ()
    taken: dict[str, Rows] = field(default_factory=dict)

    def expected_rows(self) -> Rows:
        """What is to be seen when the source is published as it is now."""
        if self.table.kind != "append":
            return rows_of(self.table.files)
        new = {name: rows for name, rows in self.table.files.items() if self.taken.get(name) != rows}
        return tuple(sorted((*self.shown, *rows_of(new))))

    def published(self) -> None:
        """The source is published as it is now."""
        self.shown = self.expected_rows()
        self.taken |= self.table.files

    def change(self) -> None:
        """A rewritten file, a new one of two segments, a deleted one.

        The rewritten one has another size, so that nobody reads it to compare (edge case E3).
        """
        self.number += 1
        n, table = self.number, self.table
        table.put("F.csv", f"F.{n}" + "x" * (n % 5))
        table.put(f"Q{n}.csv", f"Q.{n}a", f"Q.{n}b", f"Q.{n}c")
        if f"Q{n - 1}.csv" in table.files:
            table.remove(f"Q{n - 1}.csv")

    def over(self, round_: Round) -> None:
        """A round has come to its end."""
        self.shown = round_.after
        if round_.step != "rollback":
            self.taken |= self.table.files

    @property
    def newest(self) -> str:
        return f"Q{self.number}.csv"

    def must(self, said: str, answer: Answer) -> None:
        """A step that nobody disturbs does what it should."""
        if answer.said != said:
            raise AssertionError(f"{answer.said} instead of {said}: {answer.text}")

    def run(self) -> None:
        """Publish the source as it is, undisturbed."""
        if self.table.run().said != "PUBLISHED":  # a machine that has much else to do may time out
            self.table.until_quiet()
        self.published()


def rows_of(files: Mapping[str, Rows]) -> Rows:
    """All rows, in order."""
    return tuple(sorted(row for rows in files.values() for row in rows))


def start(lane: Lane) -> None:
    """Two sessions, so that from now on each one ends the life of an older one's node."""
    if lane.table.kind != "swap":
        lane.table.put("P.csv", "P")
    for _ in range(2):
        lane.change()
        lane.run()


def change(lane: Lane) -> Round:
    """Publish a change."""
    lane.change()
    return Round(lane.shown, lane.expected_rows())


def failing(lane: Lane) -> Round:
    """A file fails; it is repaired before the triggers that follow."""
    lane.change()
    return Round(lane.shown, lane.expected_rows(), failing=(lane.newest,))


def retry(lane: Lane) -> Round:
    """The retry after a failed file."""
    lane.change()
    lane.must("SHUT", lane.table.run(failing=(lane.newest,)))
    return Round(lane.shown, lane.expected_rows())


def exhausted(lane: Lane) -> Round:
    """No retry is left: the session is abandoned and a new one begun, in one run."""
    lane.table.options["consistentPushMaxRetries"] = 0
    return retry(lane)


def clear(lane: Lane) -> Round:
    """A session in SWITCH is cleared."""
    lane.change()
    lane.must("STAGED", lane.table.run("trigger"))
    return Round(lane.shown, lane.expected_rows(), step="clear")


def respec(lane: Lane) -> Round:
    """The spec changes while a session is in SWITCH: it is abandoned and a new one begun."""
    lane.change()
    lane.must("STAGED", lane.table.run("trigger"))
    # Something that counts and changes no segment: every round has the same effects.
    lane.table.options["recordReader.prop.nullStringValue"] = f"none{lane.number}"
    return Round(lane.shown, lane.expected_rows())


def rebuild(lane: Lane) -> Round:
    """The spec was changed, and the run builds every published file again, beside what changed in the source.

    The setting counts as one that changes rows, and changes none of these.
    """
    lane.change()
    lane.table.options |= {
        "onSpecChange": "rebuild",
        "recordReader.prop.nullStringValue": f"none{lane.number}",
    }
    return Round(lane.shown, lane.expected_rows())


def again(lane: Lane) -> Round:
    """A file comes while a session is in SWITCH: a second switch, started over the first.

    A new one each time: a file that is done stays as it was built until the next session.
    """
    lane.change()
    n, table = lane.number, lane.table
    if f"R{n - 1}.csv" in table.files:
        table.remove(f"R{n - 1}.csv")
    lane.must("STAGED", table.run("trigger"))
    table.put(f"R{n}.csv", f"R.{n}")
    return Round(lane.shown, lane.expected_rows())


def rollback(lane: Lane) -> Round:
    """The newest snapshot is rolled back."""
    table = lane.table
    if table.store.pointer().hold is not None:
        lane.must("RESUMED", table.run("resume"))
    before, taken = lane.shown, dict(lane.taken)
    lane.change()
    lane.run()
    after, lane.shown, lane.taken = lane.shown, before, taken
    return Round(after, before, step="rollback")


def removal(lane: Lane) -> Round:
    """Nothing comes, a file goes."""
    lane.change()
    lane.run()
    lane.table.remove(lane.newest)
    return Round(lane.shown, lane.expected_rows())


def empty(lane: Lane) -> Round:
    """A file without rows: nothing is switched, and the ledger learns of it."""
    lane.number += 1
    lane.table.put(f"E{lane.number}.csv")
    return Round(lane.shown, lane.expected_rows())


ALL = ("append", "sync", "swap")
ALL_PACKED = ("append-packed", "sync-packed", "swap-packed")


@dataclass(frozen=True)
class Scenario:
    """:ivar modes: in which it takes ways of its own; each takes up to 120 points."""

    prepare: Callable[[Lane], Round]
    modes: tuple[str, ...] = ALL


SCENARIOS: Mapping[str, Scenario] = {
    "change": Scenario(change, (*ALL, *ALL_PACKED)),
    "retry": Scenario(retry, (*ALL, *ALL_PACKED)),
    "clear": Scenario(clear, (*ALL, "sync-packed")),
    "rollback": Scenario(rollback, (*ALL, "append-packed", "sync-packed")),
    "again": Scenario(again, ("sync", "swap", "sync-packed", "swap-packed")),
    "failing": Scenario(failing, ("sync",)),
    "exhausted": Scenario(exhausted, ("append",)),
    "respec": Scenario(respec, ("swap",)),
    "rebuild": Scenario(rebuild, ("append", "sync", "append-packed", "sync-packed")),
    "removal": Scenario(removal, ("sync", "sync-packed")),
    "empty": Scenario(empty, ("sync",)),
}
