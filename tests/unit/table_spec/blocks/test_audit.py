from __future__ import annotations

import pytest

from pinot_assets.table_spec.blocks.audit import Audit, EmptyOutputs, Loss, RowChange, TimeRange, moment_ms

ROWS = {"sql": "SELECT COUNT(*) FROM flights WHERE distance < 0", "expect": "= 0"}


def problems(folder, block, **more):
    return folder.problems(more or None, change=lambda whole: whole.update(audit=block))


def test_a_spec_without_the_block_asks_nothing(folder):
    assert folder.load().audit == Audit()


def test_assertions_are_read_in_their_order(folder):
    warning = {"sql": "SELECT carrier, SUM(distance) FROM flights_OFFLINE GROUP BY carrier", "expect": 5}
    spec = folder.load(change=lambda w: w.update(audit=[ROWS, {**warning, "severity": "WARN"}]))
    assert [(a.sql, a.expect, a.severity) for a in spec.audit.assertions] == [
        (ROWS["sql"], "= 0", "error"),
        (warning["sql"], "5", "warn"),
    ]


def test_checks_are_read_beside_assertions(folder):
    block = [
        {"check": "row_change", "min": "-20%", "max": " +50.5 % ", "of": "FILE"},
        ROWS,
        {"check": "row_change", "min": "-5%", "severity": "warn"},
        {"check": "time_range", "from": "2020-01-01", "to": "now  +  1d"},
        {"check": "empty_outputs"},
        {"check": "emptied_files", "severity": "WARN"},
        {"check": "vanished_columns"},
        {"replicas": "ONE"},
    ]
    audit = folder.load(change=lambda w: w.update(audit=block)).audit
    assert audit.checks == (
        RowChange(check="row_change", of="file", min="-20%", max="50.5%"),
        RowChange(check="row_change", min="-5%", severity="warn"),
        TimeRange(check="time_range", from_="2020-01-01", to="now + 1d"),
        EmptyOutputs(check="empty_outputs"),
        Loss(check="emptied_files", severity="warn"),
        Loss(check="vanished_columns"),
    )
    assert (audit.checks[0].of, audit.checks[0].min, audit.checks[0].max) == ("file", -20.0, 50.5)
    assert (len(audit.assertions), audit.replicas) == (1, "one")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1_000),
        ("now", 5_000),
        ("NOW + 1s", 6_000),
        ("now-1d12h", 5_000 - 129_600_000),
    ],
)
def test_moments(text, ms):
    assert moment_ms(text, 5_000) == ms


@pytest.mark.parametrize(
    ("item", "fix"),
    [
        ({"chek": "row_change"}, "check"),
        ({"replica": "one"}, "replicas"),
        ({"check": "row_chang", "min": "-1%"}, "row_change"),
        ({"check": "empty_outputs", "severty": "warn"}, "severity"),
        ({"check": "crc_as_built"}, "always makes all others"),
        ({"check": "emptied_file"}, "emptied_files"),
    ],
)
def test_a_slip_is_told_with_what_was_meant(folder, item, fix):
    (problem,) = problems(folder, [item])
    assert fix in problem.fix


def test_assertions_do_not_shape_segments(folder):
    plain = folder.load().config_fingerprint("1")
    asked = folder.load(change=lambda w: w.update(audit=[ROWS]))
    assert asked.config_fingerprint("1") == plain


@pytest.mark.parametrize(
    ("block", "key", "reason"),
    [
        ({"sql": "x"}, "audit", "not a list"),
        (["x"], "audit[0]", "not a mapping"),
        ([{**ROWS, "expct": 1}], "audit[0].expct", "not a key"),
        ([{"sql": ROWS["sql"]}], "audit[0].expect", "missing"),
        ([{"expect": "= 0"}], "audit[0].sql", "missing"),
        ([{"check": "row_chnge", "min": "-20%"}], "audit[0].check", "not a check"),
        ([{"check": "crc_as_built"}], "audit[0].check", "not a check"),
        ([{"check": ["row_change"]}], "audit[0].check", "not a check"),
        ([{"check": "row_change"}], "audit[0]", "no bound"),
        ([{"check": "row_change", "min": -20}], "audit[0].min", "not a percentage"),
        ([{"check": "row_change", "min": "20%", "max": "10%"}], "audit[0]", "above its max"),
        ([{"check": "row_change", "mim": "-20%"}], "audit[0].mim", "not a key of a check"),
        ([{"check": "row_change", "min": "1%", "of": "files"}], "audit[0].of", "not one of table, file"),
        ([{"check": "row_change", "min": "1%", "sql": "SELECT 1"}], "audit[0].sql", "not a key of a check"),
        ([{"check": "time_range"}], "audit[0]", "no bound"),
        ([{"check": "time_range", "from": "yesterday"}], "audit[0].from", "not a time"),
        ([{"check": "time_range", "to": "now + 1 d"}], "audit[0].to", "not a time"),
        ([{"check": "time_range", "from": "2020-01-02", "to": "2020-01-01"}], "audit[0]", "before it begins"),
        ([{"check": "empty_outputs", "max": 3}], "audit[0].max", "not a key of a check"),
        ([{"check": "empty_outputs", "severity": "off"}], "audit[0].severity", "not one of error, warn"),
        ([{"replicas": "two"}], "audit[0].replicas", "not one of all, one"),
        ([{"replicas": "one"}, {"replicas": "all"}], "audit[1].replicas", "twice"),
        ([{"replicas": "one", "severity": "warn"}], "audit[0].severity", "not a key of replicas"),
        ([{**ROWS, "sql": " "}], "audit[0].sql", "empty"),
        ([{**ROWS, "sql": "SELECT AVG(distance) FROM flights"}], "audit[0].sql", "AVG"),
        ([{**ROWS, "sql": "SELECT COUNT(*) FROM flight"}], "audit[0].sql", "reads flight"),
        ([{**ROWS, "sql": "SELECT COUNT(*) FROM flights WHERE dist < 0"}], "audit[0].sql", "names dist"),
        ([{**ROWS, "sql": "SELECT ${X} FROM flights"}], "audit[0].sql", "environment"),
        ([{**ROWS, "expect": "some"}], "audit[0].expect", "not a comparison"),
        ([{**ROWS, "severity": "fatal"}], "audit[0].severity", "not one of error, warn"),
    ],
)
def test_what_is_refused(folder, block, key, reason):
    (problem,) = problems(folder, block)
    assert problem.key == key
    assert reason in problem.reason


def test_a_range_of_times_needs_a_time_column(folder):
    """Every switch would pass it."""

    def change(whole):
        whole["audit"] = [{"check": "time_range", "to": "now"}]
        whole["table"] = {**whole["table"], "segmentsConfig": {"replication": "2"}}

    (problem,) = folder.problems(change=change)
    assert problem.key == "audit[0].check"
    assert "no time column" in problem.reason


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


AVERAGE = {"sql": "SELECT AVG(distance) FROM flights", "expect": "> 100"}


def test_what_servers_cannot_answer_is_asked_of_a_shadow_table_where_that_is_said(folder):
    [asked] = folder.load(change=lambda w: w.update(audit=[{**AVERAGE, "via": "Shadow"}])).audit.assertions
    assert (asked.via, asked.question.aggregates) == ("shadow", (("AVG(distance)", ""),))
    (problem,) = problems(folder, [AVERAGE])
    assert problem.key == "audit[0].sql"
    assert "`via: shadow`" in problem.reason


@pytest.mark.parametrize(
    ("change", "key", "reason"),
    [
        ({"via": "broker"}, "audit[0].via", "not one of servers, shadow"),
        ({"sql": "SELECT AVG(dist) FROM flights"}, "audit[0].sql", "names dist"),
        ({"sql": "SELECT AVG(distance) FROM flight"}, "audit[0].sql", "reads flight"),
        ({"sql": "SELECT distance FROM flights"}, "audit[0].sql", "neither aggregated"),
    ],
)
def test_what_is_refused_of_a_shadow_table(folder, change, key, reason):
    (problem,) = problems(folder, [{**AVERAGE, "via": "shadow", **change}])
    assert problem.key == key
    assert reason in problem.reason
