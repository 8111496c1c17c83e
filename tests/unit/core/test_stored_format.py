"""The codec of stored values: unknown fields, fields of a format, and what is refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import (
    NEWEST,
    RELEASES,
    Marks,
    Open,
    Stored,
    added,
    plain,
    since,
    structured,
)
from pinot_assets.errors import NeedsNewerRelease
from pinot_assets.session.values import znrecord


class Colour(StrEnum):
    RED = "RED"


class Point(NamedTuple):
    x: int
    y: float


@dataclass(frozen=True, slots=True)
class Part(Open):
    name: str
    cut: int = field(default=0, metadata=since(2))


@dataclass(frozen=True, slots=True)
class Whole(Stored):
    parts: tuple[Part, ...]
    colour: Colour = Colour.RED
    points: tuple[Point, ...] = ()
    first: Part | None = None
    counts: dict[str, int] = field(default_factory=dict)
    loss: int = field(default=0, metadata=since(2))


VALUES: JsonObject = {
    "parts": [{"name": "a", "later": [1]}],
    "colour": "RED",
    "points": [[1, 2.5]],
    "first": None,
    "counts": {"n": 1},
    "unknown": {"deep": True},
}


def test_values_come_back_as_they_were_with_what_is_not_known() -> None:
    whole = structured(Whole, VALUES, "a whole")
    assert (whole.parts[0].name, whole.colour, whole.points) == ("a", Colour.RED, (Point(1, 2.5),))
    assert plain(whole) == VALUES
    assert plain(replace(whole, counts={}))["unknown"] == {"deep": True}
    assert pickle.loads(pickle.dumps(whole)).kept == whole.kept  # receipts cross process borders


def test_a_field_of_format_2_is_written_there_alone() -> None:
    """So that a table that was not upgraded holds nothing that release 0.1.0 refuses."""
    whole = Whole((Part("a", cut=3),), loss=4)
    assert "loss" not in plain(whole)
    assert plain(whole)["parts"] == [{"name": "a"}]
    said = plain(replace(whole, format=2))
    assert (said["loss"], said["parts"]) == (4, [{"name": "a", "cut": 3}])
    assert (said["format"], said["needs"]) == (2, RELEASES[2])
    assert structured(Whole, said, "a whole") == replace(whole, format=2)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"parts": 5}, "parts: Input should be a valid tuple"),
        ({"parts": [{}]}, r"parts\.0\.name: Field required"),
        ({"colour": "BLUE"}, "colour: Input should be 'RED'"),
        ({"counts": {"n": "many"}}, r"counts\.n: "),
    ],
)
def test_what_does_not_fit_is_named(changed: JsonObject, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^not a whole: {reason}"):
        structured(Whole, VALUES | changed, "a whole")
    for other in (None, [], "text", 5):
        with pytest.raises(ValueError, match=r"^not a whole: "):
            structured(Whole, other, "a whole")


def test_a_newer_format_is_refused_before_its_fields_are_looked_at() -> None:
    with pytest.raises(NeedsNewerRelease) as caught:
        structured(Whole, {"format": NEWEST + 1, "needs": "9.0.0"}, "s3://b/t/plan")
    assert str(caught.value).startswith(f"s3://b/t/plan is of format {NEWEST + 1}, which this release")
    assert "needs pinot-assets 9.0.0; this is " in str(caught.value)
    assert "upgrade pinot-assets here to 9.0.0, or let only the release that wrote it" in str(caught.value)


def test_every_format_names_its_release() -> None:
    assert list(RELEASES) == list(range(1, NEWEST + 1))
    assert Marks.of({}) == Marks(1, "")
    assert Marks.of({"format": "2", "needs": "0.2.0"}).is_known


@dataclass(frozen=True, slots=True)
class Node(Stored):
    state_now: str
    counts: dict[str, int] = field(default_factory=dict)
    late_ms: int = field(default=0, metadata=since(2))


def test_a_nodes_field_of_format_2_too() -> None:
    node = Node("OPEN", {"n": 1}, 7)
    first, second = znrecord.to_bytes(node, "cp1"), znrecord.to_bytes(replace(node, format=2), "cp1")
    assert set(json.loads(first)["simpleFields"]) == {"stateNow", "counts"}
    assert json.loads(second)["simpleFields"]["lateMs"] == "7"
    assert znrecord.from_bytes(Node, first, "a node") == replace(node, late_ms=0)
    assert znrecord.from_bytes(Node, second, "a node") == replace(node, format=2)
    with pytest.raises(ValueError, match="it lacks stateNow"):
        znrecord.from_bytes(Node, first.replace(b"stateNow", b"stateThen"), "a node")


@dataclass(frozen=True, slots=True)
class Widened(Stored):
    name: str
    asked_by: str = field(default="", metadata=added(2))


def test_a_field_that_a_format_got_later_leaves_the_bytes_of_older_objects() -> None:
    old = {"name": "a", "format": 2, "needs": RELEASES[2]}
    assert plain(structured(Widened, old, "an object")) == old
    new = old | {"asked_by": "ann"}
    assert plain(structured(Widened, new, "an object")) == new
    assert plain(Widened("a", asked_by="ann")) == {"name": "a"}  # format 1 has no such field
