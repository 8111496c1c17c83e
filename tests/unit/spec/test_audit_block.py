from __future__ import annotations

import pytest

ROWS = {"sql": "SELECT COUNT(*) FROM flights WHERE distance < 0", "expect": "= 0"}


def problems(folder, block, **more):
    return folder.problems(more or None, change=lambda whole: whole.update(audit=block))


def test_a_spec_without_the_block_asks_nothing(folder):
    assert folder.load().audit == ()


def test_assertions_are_read_in_their_order(folder):
    warning = {"sql": "SELECT carrier, SUM(distance) FROM flights_OFFLINE GROUP BY carrier", "expect": 5}
    spec = folder.load(change=lambda w: w.update(audit=[ROWS, {**warning, "severity": "WARN"}]))
    assert [(a.sql, a.expect, a.severity) for a in spec.audit] == [
        (ROWS["sql"], "= 0", "error"),
        (warning["sql"], "5", "warn"),
    ]


def test_assertions_do_not_shape_segments(folder):
    plain = folder.load().config_fingerprint("1")
    asked = folder.load(change=lambda w: w.update(audit=[ROWS]))
    assert asked.config_fingerprint("1") == plain


@pytest.mark.parametrize(
    ("block", "key", "reason"),
    [
        ({"sql": "x"}, "audit", "no list"),
        (["x"], "audit[0]", "no mapping"),
        ([{**ROWS, "expct": 1}], "audit[0].expct", "not a key"),
        ([{"sql": ROWS["sql"]}], "audit[0].expect", "missing"),
        ([{"expect": "= 0"}], "audit[0].sql", "missing"),
        ([{**ROWS, "sql": " "}], "audit[0].sql", "empty"),
        ([{**ROWS, "sql": "SELECT AVG(distance) FROM flights"}], "audit[0].sql", "AVG"),
        ([{**ROWS, "sql": "SELECT COUNT(*) FROM flight"}], "audit[0].sql", "reads flight"),
        ([{**ROWS, "sql": "SELECT COUNT(*) FROM flights WHERE dist < 0"}], "audit[0].sql", "names dist"),
        ([{**ROWS, "sql": "SELECT ${X} FROM flights"}], "audit[0].sql", "environment"),
        ([{**ROWS, "expect": "some"}], "audit[0].expect", "no comparison"),
        ([{**ROWS, "severity": "fatal"}], "audit[0].severity", "none of error, warn"),
    ],
)
def test_what_is_refused(folder, block, key, reason):
    (problem,) = problems(folder, block)
    assert problem.key == key
    assert reason in problem.reason


NULLS = {"sql": "SELECT COUNT(*) FROM flights WHERE carrier IS NULL", "expect": "= 0"}


def null_problems(folder, schema, table):
    def change(whole):
        whole.update(audit=[NULLS], schema={**whole["schema"], **schema})
        whole["table"] = {**whole["table"], "tableIndexConfig": table}

    return folder.problems(change=change)


@pytest.mark.parametrize(
    ("schema", "table"),
    [({}, {}), ({}, {"nullHandlingEnabled": "false"})],
)
def test_nulls_that_segments_do_not_keep_cannot_be_asked_for(folder, schema, table):
    (problem,) = null_problems(folder, schema, table)
    assert problem.key == "audit[0].sql"
    assert "none is ever found" in problem.reason


@pytest.mark.parametrize(
    ("schema", "table"),
    [
        ({}, {"nullHandlingEnabled": True}),
        ({"enableColumnBasedNullHandling": True}, {}),
    ],
)
def test_nulls_that_segments_keep(folder, schema, table):
    assert null_problems(folder, schema, table) == []


def test_a_column_that_is_not_null_keeps_none(folder):
    fields = [
        {"name": "carrier", "dataType": "STRING", "notNull": True},
        {"name": "flight", "dataType": "INT"},
    ]
    schema = {"enableColumnBasedNullHandling": True, "dimensionFieldSpecs": fields}
    (problem,) = null_problems(folder, schema, {"nullHandlingEnabled": True})
    assert "nulls of carrier" in problem.reason


def test_a_plain_push_has_nothing_hidden_to_ask(folder):
    (problem,) = problems(folder, [ROWS], consistentPushEnabled=None)
    assert problem.key == "audit"
    assert "consistentPushEnabled" in problem.reason


def test_a_realtime_table_stages_nothing(folder):
    folder.realtime(change=lambda whole: whole.update(audit=[ROWS]))
    (problem,) = folder.check()[1]
    assert (problem.key, "OFFLINE" in problem.reason) == ("audit", True)
