"""Pushes the numbers of a run to a Prometheus Pushgateway at its end: an ended run cannot be scraped.

The run releases its table first, and nothing here fails the run: an unreachable gateway is a warning.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pinot_assets.audit.checks import Finding
from pinot_assets.core.waiting import run_with_timeout
from pinot_assets.metrics.family import Sample, gauge
from pinot_assets.metrics.session import check_samples
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.outcome import StepRecord, was_turned_away
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.table_spec import label_of

ENDED = gauge("run_end_timestamp_seconds", "When the newest run ended.")
SUCCESS = gauge("run_success", "1 where the newest run had no error, left no file out and opened the gate.")
STEP_SECONDS = gauge("run_step_duration_seconds", "Wall time of each step of the newest run.", "step")
BUILD_SECONDS = gauge("run_build_duration_seconds", "Wall time of the newest run's build.")
RUN_FILES = gauge("run_files", "Files of the newest run, by their outcome in it.", "state")
RUN_ROWS = gauge("run_rows", "Rows that the newest run built.")
BAD_ROWS = gauge("run_bad_rows", "Rows that the newest run put aside.")


def run_samples(table: str, steps: Mapping[str, StepRecord], ended_s: float) -> Iterator[Sample]:
    """:param steps: the steps of the driver by name, at least one.
    :param ended_s: seconds since the epoch.
    """
    yield ENDED.of(ended_s, table)
    yield SUCCESS.of(not any(_failed(step.result) for step in steps.values()), table)
    yield from (STEP_SECONDS.of(step.seconds, table, name) for name, step in steps.items())
    for step in steps.values():
        if isinstance(step.result, TriggerReport):
            report = step.result
            files = {"built": len(report.built), "kept": report.kept, "failed": len(report.failed)}
            yield BUILD_SECONDS.of(report.build_seconds, table)
            yield from (RUN_FILES.of(count, table, state) for state, count in files.items())
            yield RUN_ROWS.of(sum(receipt.rows for receipt in report.built), table)
            yield BAD_ROWS.of(report.bad_rows, table)
        for finding in _findings(step.result):
            yield from check_samples(table, finding)


def _failed(result: object) -> bool:
    if isinstance(result, TriggerReport):
        return result.result is TriggerResult.FAILED or bool(result.failed)
    return isinstance(result, Exception) or any(finding.blocks for finding in _findings(result))


def _findings(result: object) -> tuple[Finding, ...]:
    """Return the findings of a step that returned a session and findings, as `Driver.audit` does."""
    findings = result[1] if isinstance(result, tuple) and len(result) == 2 else ()
    return tuple(finding for finding in findings if isinstance(finding, Finding))


GATEWAY = "PINOT_ASSETS_PUSHGATEWAY"
USER, PASSWORD = "PINOT_ASSETS_PUSHGATEWAY_USER", "PINOT_ASSETS_PUSHGATEWAY_PASSWORD"
JOB = "pinot_assets"
SECONDS = 5.0
"""Seconds that the push may take at a run's end, whatever hangs: a name server, the gateway."""


@contextmanager
def pushed_after(
    driver: Driver, warn: Callable[[str], None], environ: Mapping[str, str] | None = None
) -> Iterator[Driver]:
    """Yield the driver; push what it did once it has released its table, unless the process is being ended.

    Pushes nothing where PINOT_ASSETS_PUSHGATEWAY is not set, nor for a driver that did nothing.

    :param warn: called with the reason why nothing was pushed.
    """
    env = os.environ if environ is None else environ
    try:
        with driver as held:
            yield held
    except Exception:
        _push(driver, env, warn)
        raise
    _push(driver, env, warn)


def _push(driver: Driver, env: Mapping[str, str], warn: Callable[[str], None]) -> None:
    gateway = env.get(GATEWAY, "").strip()
    if not gateway or not driver.steps or was_turned_away(driver.steps):
        return
    for given, lacking in ((USER, PASSWORD), (PASSWORD, USER)):
        if env.get(given) and not env.get(lacking):
            warn(f"warning: the metrics of this run were not pushed to {GATEWAY}: {lacking} is not set")
            return
    if why := run_with_timeout(lambda: _send(gateway, env, driver), SECONDS, _why):
        warn(f"warning: the metrics of this run were not pushed to {GATEWAY}: {why}")


def _why(error: Exception) -> str:
    """Return an OSError's text, of others the class: they quote the address, which may hold a secret."""
    return str(error) if isinstance(error, OSError) else type(error).__name__


def _send(gateway: str, env: Mapping[str, str], driver: Driver) -> None:
    # Imported here: Prometheus' library is for those who push, and every run comes by.
    from prometheus_client import push_to_gateway
    from prometheus_client.exposition import basic_auth_handler, default_handler

    from pinot_assets.metrics.exposition import registry_of

    def handler(
        url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        user = env.get(USER, "")
        if not user:
            return default_handler(url, method, timeout, headers, data)
        return basic_auth_handler(url, method, timeout, headers, data, user, env[PASSWORD])

    # Only what this driver did, which stays true. The table's state does not, and a gateway keeps everything:
    # after a run that pushes nothing or is killed, it would show the old state for ever.
    samples = [*run_samples(label_of(driver.spec), driver.steps, time.time())]
    push_to_gateway(
        gateway,
        JOB,
        registry_of(lambda: samples),
        grouping_key={"table": label_of(driver.spec)},
        timeout=SECONDS,
        handler=handler,
    )
