"""The five metrics: from an exporter where there is one, derived where not."""

from __future__ import annotations

import httpx
from fakes.realtime.memory import S1, S2, FakeRealtime

from pinot_assets.realtime.health.metrics import (
    MISSING_URL,
    Exported,
    Metric,
    Origin,
    metrics,
    peer_downloads,
    read_exporters,
    samples_of,
)

PAGE = """# HELP pinot_controller_pauselessConsumptionEnabled_Value Attribute exposed for management
# TYPE pinot_controller_pauselessConsumptionEnabled_Value gauge
pinot_controller_pauselessConsumptionEnabled_Value{table="clicks",tableType="REALTIME",} 1.0
pinot_controller_pauselessConsumptionEnabled_Value{table="other",tableType="REALTIME",} 0.0
pinot_controller_segmentsInErrorState_Value{table="clicks",tableType="REALTIME"} 4.0
pinot_controller_segmentsInErrorState_Value{table="clicks",tableType="OFFLINE"} 9.0
pinot_server_segmentBuildFailure_Count{partition="0",table="clicks",tableType="REALTIME",topic="c",} 2.0
pinot_server_segmentBuildFailure_Count{table="clicks_REALTIME",} 3.0
jvm_threads_current 40.0
pinot_server_segmentReingestionFailure_Count{table="clicks",tableType="REALTIME",} NaN_or_so
broken line
"""


def by_name(found: tuple[Metric, ...]) -> dict[str, tuple[float | None, Origin]]:
    return {metric.name: (metric.value, metric.origin) for metric in found}


def test_an_exporter_tells_and_the_rest_is_derived() -> None:
    fake = FakeRealtime()
    fake.segment(0, 0, url="")
    found = by_name(metrics(fake.look(), Exported(tuple(samples_of(PAGE)))))
    assert found == {
        "pauselessConsumptionEnabled": (1, Origin.EXPORTER),
        "segmentBuildFailure": (5, Origin.EXPORTER),
        "segmentReingestionFailure": (None, Origin.NOT_KNOWN),
        "segmentsInErrorState": (4, Origin.EXPORTER),
        "pauselessSegmentsInErrorCount": (0, Origin.DERIVED),
        "pauselessSegmentsInUnrecoverableErrorCount": (0, Origin.DERIVED),
        MISSING_URL: (1, Origin.DERIVED),
    }


def test_all_derived() -> None:
    fake = FakeRealtime()
    fake.segment(0, 0, states={S1: "ONLINE", S2: "ERROR"})
    fake.segment(0, 1, states={S1: "ERROR", S2: "ERROR"})
    found = by_name(metrics(fake.look()))
    assert found["segmentsInErrorState"] == (3, Origin.DERIVED)
    assert found["pauselessSegmentsInErrorCount"] == (1, Origin.DERIVED)
    assert found["pauselessSegmentsInUnrecoverableErrorCount"] == (0, Origin.DERIVED)
    fake.config["dedupConfig"] = {"dedupEnabled": True}
    found = by_name(metrics(fake.look()))
    assert found["pauselessSegmentsInUnrecoverableErrorCount"] == (1, Origin.DERIVED)


def test_what_could_not_be_read_is_not_derived() -> None:
    fake = FakeRealtime()
    fake.segment(0, 0, url="")
    fake.away.add("/zk/get")
    found = by_name(metrics(fake.look()))
    assert found["segmentsInErrorState"] == (None, Origin.NOT_KNOWN)
    assert found[MISSING_URL] == (None, Origin.NOT_KNOWN)
    assert found["pauselessConsumptionEnabled"] == (1, Origin.DERIVED)


def test_peer_downloads_are_counted_where_every_server_tells() -> None:
    line = 'pinot_server_segmentDownloadFromPeersTimeMs_Count{table="clicks",tableType="REALTIME",} '

    def page(request: httpx.Request) -> httpx.Response:
        if request.url.port == 3:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(200, text=f"{line}4.0\n" if request.url.port == 1 else "x 1.0\n")

    transport = httpx.MockTransport(page)
    both = ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    assert peer_downloads(both, "clicks_REALTIME", transport) == 4
    assert peer_downloads(both, "other_REALTIME", transport) == 0
    assert peer_downloads([*both, "http://127.0.0.1:3"], "clicks_REALTIME", transport) is None
    assert peer_downloads([], "clicks_REALTIME", transport) is None


def test_samples() -> None:
    (first, *_, last) = samples_of(PAGE)
    assert (first.labels, first.value) == ({"table": "clicks", "tableType": "REALTIME"}, 1.0)
    assert (last.name, last.labels, last.value) == ("jvm_threads_current", {}, 40.0)


def test_exporters_are_read_without_credentials_and_one_that_is_away_is_told() -> None:
    asked: list[httpx.Request] = []

    def page(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.url.port == 2:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(200, text=PAGE)

    state = FakeRealtime().look()
    transport = httpx.MockTransport(page)
    found = by_name(metrics(state, read_exporters(["http://127.0.0.1:1"], transport)))
    assert found["segmentsInErrorState"] == (4, Origin.EXPORTER)
    assert asked[0].url.path == "/metrics"
    assert "Authorization" not in asked[0].headers
    told = metrics(state, read_exporters(["http://127.0.0.1:1", "http://127.0.0.1:2"], transport))
    assert by_name(told)["segmentsInErrorState"] == (4, Origin.EXPORTER)
    assert "http://127.0.0.1:2 does not answer" in told[0].note
