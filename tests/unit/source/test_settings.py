from __future__ import annotations

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import SettingError
from pinot_assets.source.settings import resolve_env


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PA_KEY", "s3cret")
    monkeypatch.setenv("PA_EMPTY", "")
    monkeypatch.delenv("PA_UNSET", raising=False)


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("plain", "plain"),
        ("", ""),
        ("$PA_KEY", "$PA_KEY"),
        ("${PA_KEY}", "s3cret"),
        ("a-${PA_KEY}-${PA_KEY}", "a-s3cret-s3cret"),
        ("${PA_EMPTY}", ""),
        ("${PA_UNSET:-there}", "there"),
        ("${PA_UNSET:-}", ""),
        ("${PA_EMPTY:-there}", "there"),
        ("${PA_KEY:-there}", "s3cret"),
    ],
)
def test_references_are_resolved(value: str, resolved: str) -> None:
    assert resolve_env(value, UNLIMITED) == resolved


def test_a_missing_variable_is_named_and_no_value_is_shown() -> None:
    with pytest.raises(SettingError, match="PA_UNSET") as caught:
        resolve_env("${PA_KEY}hidden${PA_UNSET}", UNLIMITED)
    assert "hidden" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


MALFORMED = [
    "hidden${",
    "hidden${}",
    "hidden${1A}",
    "hidden${A-B}",
    "hidden${A B}",
    "hidden${PA_UNSET:-${env.HOME}}",
    "hidden${PA_UNSET:-${PA_KEY}}",
]


@pytest.mark.parametrize("value", MALFORMED)
def test_a_malformed_reference_is_refused_without_showing_the_value(value: str) -> None:
    with pytest.raises(SettingError, match="malformed") as caught:
        resolve_env(value, UNLIMITED)
    assert "hidden" not in str(caught.value)


def test_a_value_that_looks_like_a_reference_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PA_KEY", "x${PA_UNSET}")
    assert resolve_env("${PA_KEY}", UNLIMITED) == "x${PA_UNSET}"
