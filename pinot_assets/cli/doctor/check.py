"""What one check of the doctor's found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check and its answer.

    :ivar says: one sentence.
    :ivar way_out: what to do, None when all is well.
    """

    name: str
    outcome: CheckStatus
    says: str
    way_out: str | None = None
