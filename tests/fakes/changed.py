"""Values with other fields, as tests name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def changed(value: T, changes: Mapping[str, object]) -> T:
    """`dataclasses.replace` with fields that a caller names; that they fit is seen when it runs."""
    return replace(value, **changes)
