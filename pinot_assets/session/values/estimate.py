"""A number of which a part is known and the rest is an estimate, or not known at all."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows or bytes.

    :ivar known: what was counted.
    :ivar guess: an estimate of the rest; None where it cannot be told.
    :ivar exact: whether there is no rest. An estimate may come to nothing, and is one all the same.
    """

    known: int
    guess: int | None = 0
    exact: bool = True

    @property
    def total(self) -> int | None:
        """All of it; None where a part is not known."""
        return None if self.guess is None else self.known + self.guess

    def plus(self, known: int) -> Estimate:
        """So much more that is known."""
        return replace(self, known=self.known + known)

    def times(self, factor: int) -> Estimate:
        """So many times."""
        return replace(
            self, known=self.known * factor, guess=None if self.guess is None else self.guess * factor
        )


def at_least(known: int) -> Estimate:
    """So much, and more that nobody can tell."""
    return Estimate(known, None, exact=False)


def of_files(known: int, unread_bytes: int, unread_files: int, per_byte: float | None) -> Estimate:
    """What is known of files that are built, and an estimate for those that are not read yet.

    :param per_byte: what the ledger's files have for each of their bytes; None where it has none to go by.
    """
    if not unread_files:
        return Estimate(known)
    return (
        at_least(known) if per_byte is None else Estimate(known, round(unread_bytes * per_byte), exact=False)
    )
