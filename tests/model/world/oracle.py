"""What is right, worked out beside the code: which files hold which rows, and what each session promised.

It knows the source, the listings that drivers saw, the files that were built, and the order of what happened.
From ZooKeeper it reads only which session it is. At each look, what queries see must be the set from before a
switch or the one after it, whole (I1), at every broker and by the lineage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

Files = Mapping[str, bytes]
"""Base name → content."""

Ledger = Mapping[str, tuple[bytes, ...]]
"""Base name → the contents whose rows are published; append keeps older versions, newest last."""

Names = tuple[frozenset[str], frozenset[str]]
"""What a lineage entry replaces by what."""


def rows_of(ledger: Ledger) -> Counter[str]:
    """What queries see of it."""
    return Counter(row for contents in ledger.values() for c in contents for row in c.decode().split())


@dataclass
class Work:
    """One session's files.

    :ivar listing: what its newest plan was made from.
    :ivar done: ordinal → (attempt, name, content) of what was built.
    :ivar gone: ordinals whose file was missing at a trigger: theirs is not published any more.
    :ivar kept: ordinals that had a receipt at the newest trigger; they must not be built again (I13).
    """

    mode: str = ""
    listing: Files = field(default_factory=dict)
    done: dict[int, tuple[int, str, bytes]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)

    def planned(self, listing: Files) -> None:
        """Its plan was made anew from a listing (docs/design/session.md#continuing-an-open-session)."""
        self.listing = dict(listing)
        self.gone |= {o for o, (_, name, _) in self.done.items() if name not in listing}
        self.kept = set(self.done) - self.gone

    def built(self, ordinal: int, attempt: int, name: str, content: bytes) -> None:
        """A receipt was written; of two, the newer attempt's counts, once accepted the accepted one."""
        before = self.done.get(ordinal)
        if ordinal not in self.kept and (before is None or before[0] < attempt):
            self.done[ordinal] = attempt, name, content

    @property
    def contents(self) -> dict[str, bytes]:
        """What it has built and still wants, by name."""
        return {name: content for o, (_, name, content) in self.done.items() if o not in self.gone}

    def promise(self, ledger: Ledger) -> Ledger | None:
        """What is published once it is through; None while a file is missing.

        :param ledger: what is published now.
        """
        built = {name: (c,) for name, c in self.contents.items() if name in self.listing}
        if not built and self._only_touched(ledger):
            return ledger
        if not all(name in built or self._stays(name, ledger) for name in self.listing):
            return None
        if self.mode == "append":
            # What is published already was built again: it replaces itself.
            added = {n: c for n, c in built.items() if ledger.get(n, ())[-1:] != c}
            return {**ledger, **{name: (*ledger.get(name, ()), *c) for name, c in added.items()}}
        stay = {n: c for n, c in ledger.items() if n in self.listing}
        return {**stay, **built}

    def _only_touched(self, ledger: Ledger) -> bool:
        """Nothing is built of files that have the published content, in a swap neither (E3)."""
        return {name: (content,) for name, content in self.listing.items()} == dict(ledger)

    def _stays(self, name: str, ledger: Ledger) -> bool:
        return self.mode != "swap" and ledger.get(name, ())[-1:] == (self.listing[name],)
