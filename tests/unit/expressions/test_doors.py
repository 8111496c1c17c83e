"""That there is one place where a text becomes SQL for Spark, and one where it becomes SQL for Pinot."""

from __future__ import annotations

import re
from pathlib import Path

import pinot_assets

ROOT = Path(pinot_assets.__file__).parent


def files_with(pattern: str) -> set[str]:
    found = re.compile(pattern)
    return {
        str(file.relative_to(ROOT)) for file in ROOT.rglob("*.py") if found.search(file.read_text("utf-8"))
    }


def test_spark_sql_is_made_of_texts_in_one_place() -> None:
    made = r"\bF\.expr\(|\bimport expr\b|selectExpr\(|parseExpression\(|session\.sql\(|spark\.sql\("
    assert files_with(made) == {"ingest/spark/expression.py"}


def test_servers_and_shadow_tables_are_asked_what_a_question_makes() -> None:
    assert files_with(r"\.query_server\(") == {"session/checks/assertions.py"}
    assert files_with(r"\.query_broker\(") == {"session/checks/shadow.py"}
    for name in ("session/checks/assertions.py", "session/checks/shadow.py"):
        assert "question.of(" in (ROOT / name).read_text("utf-8")


def test_what_a_person_types_is_sent_by_one_command() -> None:
    assert files_with(r"\.ask_brokers\(") == {"cli/commands/query.py"}
    assert files_with(r"CallKind\.QUERY") == {"pinot/client/broker.py", "pinot/client/http.py"}
