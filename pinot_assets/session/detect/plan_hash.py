"""What a plan rests on, as a hash: the same as long as a run would do the same.

Nothing that changes by itself is part of it: no time, no free disk, no lease. Forty digits: sixteen over
everything, then four for each part, so that who gives all of them is told which part is another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pinot_assets.errors import PlanOutdated
from pinot_assets.snapshot.manifest import sha256_hex
from pinot_assets.table_spec.yaml.document import canonical_json

SHORTEST = 8
"""Digits of a hash that are enough to name it: two plans of one table that share them are one in 2^32."""
_WHOLE, _PART = 16, 4

PARTS = {
    "files": "the files in the source, or which of them are ready",
    "published": "what is published",
    "session": "the open session",
    "spec": "the table spec, Pinot's table config, or which cluster it is",
    "segments": "the segments that would be replaced or swept",
    "hold": "what a rollback holds back",
}
"""Every part, in the order of its digits, as the end of "changed since then: "."""


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """What one plan rests on.

    :ivar digests: sha256 of each of `PARTS`, in hex.
    """

    digests: Mapping[str, str]

    @classmethod
    def of(cls, **parts: object) -> PlanBasis:
        """From plain values, one for each of `PARTS`."""
        assert parts.keys() == PARTS.keys()
        return cls({name: sha256_hex(canonical_json(parts[name]).encode()) for name in PARTS})

    @property
    def hash(self) -> str:
        """Forty hex digits."""
        whole = sha256_hex("".join(self.digests[name] for name in PARTS).encode())[:_WHOLE]
        return whole + "".join(self.digests[name][:_PART] for name in PARTS)

    def require(self, table: str, wanted: str) -> None:
        """Go on only where a plan still holds.

        :param wanted: its hash, or the first digits of it.
        :raises PlanOutdated: something that it rests on is another thing by now, or that is no hash.
        """
        wanted = wanted.strip().lower()
        if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},{len(self.hash)}}}", wanted):
            raise PlanOutdated(
                f"{wanted!r} is not the hash of a plan",
                why=f"that has {len(self.hash)} hex digits, of which the first {SHORTEST} are the least",
                hint=f"`pinot-assets plan {table}` shows the one of now",
            )
        if self.hash.startswith(wanted):
            return
        raise PlanOutdated(
            f"{table} is not what it was when plan {wanted[:SHORTEST]} was made; nothing was done",
            why=self._changed_since(wanted),
            hint=f"`pinot-assets plan {table}` shows what a run would do now",
        )

    def _changed_since(self, wanted: str) -> str:
        told = {
            name: wanted[start : start + _PART]
            for start, name in zip(range(_WHOLE, len(self.hash), _PART), PARTS, strict=True)
        }
        if any(len(digits) < _PART for digits in told.values()):
            return f"something of it changed; all {len(self.hash)} digits of the hash would tell what"
        changed = [text for name, text in PARTS.items() if not self.digests[name].startswith(told[name])]
        if len(changed) in (0, len(PARTS)):
            return "nothing of that plan holds here: was it another table's, or mistyped?"
        return f"changed since then: {'; '.join(changed)}"
