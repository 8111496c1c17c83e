"""What pages, samples and hints of the code write as SQL of a table spec passes the checks of expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from fakes.pages import PAGES, ROOT

from pinot_assets.expressions.pinot import check_question, plain_question
from pinot_assets.expressions.spark import check_spark_expression

Check = Callable[[str], None]

_END: Final = r"(?:`|\"|\.?\"*$|\.? \|)"
_OF_SPARK: Final = re.compile(rf"(?:\btransforms\.[\w<>]+|^ *filter): (?![{{…\"])(.+?){_END}", re.MULTILINE)
_IN_QUOTES: Final = re.compile(r"\btransforms\.\w+: \"([^\"{]+)\"")
_OF_ASSERTIONS: Final = re.compile(rf"\bsql: (SELECT .+?){_END}", re.MULTILINE)
_SENTENCES: Final = re.compile(r"^.*\b(?:transforms\.[\w<>]+|sql): .*$", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"<(\w+)>")


def _check_assertion(text: str) -> None:
    check_question(plain_question(text))


def written() -> Iterator[tuple[str, str, Check]]:
    """Place, expression and its check."""
    for path in (*PAGES, *(ROOT / "tables").glob("*.yaml"), *(ROOT / "pinot_assets").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            text = "\n".join(_SENTENCES.findall(text))
        for pattern, check in (
            (_OF_SPARK, check_spark_expression),
            (_IN_QUOTES, check_spark_expression),
            (_OF_ASSERTIONS, _check_assertion),
        ):
            for found in pattern.finditer(text):
                yield path.relative_to(ROOT).as_posix(), _PLACEHOLDER.sub(r"\1", found[1]), check


WRITTEN: Final = [*dict.fromkeys(written())]


@pytest.mark.parametrize(("place", "sql", "check"), WRITTEN)
def test_what_pages_write_passes(place: str, sql: str, check: Check) -> None:
    check(sql)


def test_they_are_found() -> None:
    found = {sql for _, sql, _ in WRITTEN}
    assert {
        "status <> 'test'",
        "SELECT COUNT(*) FROM sales WHERE amount < 0",
        "to_date(at)",
        "`Order Date`",
    } <= found
    assert len(found) >= 10
    assert not [sql for sql in found if sql.endswith(".")]
