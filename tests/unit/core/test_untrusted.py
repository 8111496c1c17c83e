from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.untrusted import (
    DEEPEST,
    MOST_VALUES,
    OBJECT,
    REPLY,
    VALUES_VARIABLE,
    fields_of_json,
    fitting,
    listed,
    read_json,
    reading,
    typed,
)
from pinot_assets.errors import PinotAssetsError, SessionError, SourceError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_is_json_is_read_as_python_reads_it(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_json_may_be_nested_so_deep_and_no_deeper(pair: str) -> None:
    head, tail = pair[:-1], pair[-1]
    inner = "1" if head != "[" else ""
    read_json(head * DEEPEST + inner + tail * DEEPEST)
    for levels in (DEEPEST + 1, 5_000, 200_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(head * levels + inner + tail * levels)


@pytest.mark.parametrize("text", ["", "{", "[[[[" * 50_000, b"\xff", "nul", "1" * 5000])
def test_what_is_no_json_is_one_kind_of_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_an_object_and_a_list_are_what_they_say() -> None:
    assert fields_of_json('{"a": [1]}') == {"a": [1]}
    assert listed(["a", "b"], str) == ("a", "b")
    with pytest.raises(ValueError, match="list in the place of an object"):
        fields_of_json("[]")
    for wrong in ("abc", {"a": 1}, None, 7):
        with pytest.raises(ValueError, match="in the place of a list"):
            listed(wrong, str)
    for wrong in ([None], ["a", 1], [{}]):
        with pytest.raises(ValueError, match="in the place of a str"):
            listed(wrong, str)


def test_a_value_is_of_the_class_that_its_reader_names() -> None:
    assert typed(7, int) == 7
    assert typed({"a": None}, dict) == {"a": None}
    for value, kind in (("7", int), (None, dict), ([], dict), (7, str)):
        with pytest.raises(ValueError, match=f"a {type(value).__name__} in the place of an? "):
            typed(value, kind)


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Inner:
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    whole: int = 1
    real: float = 0.5
    flag: bool = False
    colour: Colour = Colour.RED
    names: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    both: tuple[str, int] = ("a", 1)
    counts: Mapping[str, int] = field(default_factory=dict)
    inner: Inner = Inner()
    anything: Any = None


def test_a_value_of_the_types_that_it_says_fits() -> None:
    value = Value(
        2**63 - 1, 7, True, Colour.RED, ("a",), (Pair("a", 1),), ("x", 2), {"a": 1}, Inner("t"), [1]
    )
    assert fitting(value) is value


@pytest.mark.parametrize(
    "wrong",
    [
        {"whole": True},
        {"whole": 2**63},
        {"whole": 1.0},
        {"real": "1"},
        {"flag": 1},
        {"colour": "red"},
        {"names": ["a"]},
        {"names": ("a", None)},
        {"pairs": (("a", 1),)},
        {"pairs": (Pair("a", "1"),)},  # type: ignore[arg-type]
        {"both": ("a", 1, 2)},
        {"counts": {"a": "1"}},
        {"counts": {1: 1}},
        {"inner": Inner(7)},  # type: ignore[arg-type]
        {"inner": None},
    ],
    ids=str,
)
def test_a_value_of_another_type_names_its_field(wrong: JsonObject) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} "):
        fitting(Value(**wrong))


def test_whatever_goes_wrong_while_an_object_is_read_names_it() -> None:
    for cause in (
        KeyError("id"),
        TypeError("no"),
        RecursionError(),
        OverflowError("big"),
        SourceError("a", why="b"),
    ):
        with (
            pytest.raises(SessionError, match="the node x cannot be read") as caught,
            reading("the node x", SessionError, hint="look", why="it is no session"),
        ):
            raise cause
        assert caught.value.hint == "look"
        assert str(caught.value.why).startswith("it is no session: ")
    with pytest.raises(MemoryError), reading("the node x", SessionError):
        raise MemoryError


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "٣", "99999999", " 1"])
def test_a_limit_that_is_no_number_is_refused_by_its_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REPLY.variable, text)
    with pytest.raises(Exception, match="PINOT_ASSETS_MAX_REPLY_MIB is not a number of MiB"):
        _ = REPLY.bytes


def test_a_limit_can_be_raised_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OBJECT.bytes == 512 << 20
    monkeypatch.setenv(OBJECT.variable, "1024")
    assert OBJECT.bytes == 1 << 30


@pytest.mark.parametrize("value", ["[]", "{}", '{"":0}', "0", '"ab"'])
@pytest.mark.parametrize("kind", [str, bytes])
def test_few_bytes_of_json_do_not_become_gigabytes(value: str, kind: type) -> None:
    text = f"[{','.join([value] * (MOST_VALUES + 1))}]"
    with pytest.raises(ValueError, match="more than 5,000,000 values"):
        read_json(text if kind is str else text.encode())


def test_how_many_values_are_read_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VALUES_VARIABLE, "3")
    assert read_json("[1,[2]]") == [1, [2]]
    with pytest.raises(ValueError, match=f"more than 3 values; if it needs them, set {VALUES_VARIABLE}"):
        read_json("[1,2,[3]]")
    monkeypatch.setenv(VALUES_VARIABLE, "many")
    with pytest.raises(PinotAssetsError, match="is not a number of values"):
        read_json("[]")
