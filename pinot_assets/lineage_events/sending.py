"""Sends OpenLineage events of what a driver did, once it has released its table.

Off unless the client's own environment names a transport: OPENLINEAGE_URL, OPENLINEAGE__TRANSPORT__… or an
`openlineage.yml` (OPENLINEAGE_CONFIG, this directory, ~/.openlineage). Nothing here fails or delays a switch:
the switch is over by then, whether it happened or not. A receiver that cannot be reached is a warning.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.waiting import run_with_timeout
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.stores.stored_snapshots import read_snapshots, snapshot_headers
from pinot_assets.session.values.outcome import was_turned_away
from pinot_assets.session.values.state import Outcome, Session
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.yaml.document import read_document

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

    from pinot_assets.lineage_events.openlineage import DatasetPlace

SECONDS = 5.0
"""Seconds that the sending may take, whatever hangs."""
NAMESPACE = "OPENLINEAGE_NAMESPACE"
_NAMES = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")


@contextmanager
def lineage_after(
    driver: Driver, controller: str, warn: Callable[[str], None], environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Send the events of the sessions that the driver works on inside, unless the process is being ended.

    :param driver: has released its table at the end.
    :param controller: Pinot's address.
    :param warn: called with the reason why nothing was sent.
    """
    env = os.environ if environ is None else environ
    begun_ms = driver.clients.now_ms()
    try:
        yield
    except Exception:
        _tell(driver, controller, begun_ms, env, warn)
        raise
    _tell(driver, controller, begun_ms, env, warn)


def _tell(
    driver: Driver, controller: str, begun_ms: int, env: Mapping[str, str], warn: Callable[[str], None]
) -> None:
    if not driver.steps or not is_configured(env) or was_turned_away(driver.steps):
        return

    def send_all() -> None:
        touched = [s for s in driver.clients.store.sessions() if not s.done_ms or s.done_ms >= begun_ms]
        place = place_of(driver.spec, controller, env)
        send([event for session in touched for event in events_of(place, driver.clients.staging, session)])

    # One time-out for reading and sending: ZooKeeper and the staging area may hang just as the receiver may.
    if why := run_with_timeout(send_all, SECONDS, _why):
        warn(f"warning: the OpenLineage events of this run were not sent: {why}")


def is_configured(env: Mapping[str, str]) -> bool:
    """Return whether the client would find settings; it is not asked, since its import takes a while."""
    if env.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    is_named = any(name in _NAMES or name.startswith("OPENLINEAGE__") for name in env)
    return is_named or _settings_file(env) is not None


def refuse_large_settings(env: Mapping[str, str]) -> None:
    """Check that the client's settings file is within limits: the client reads it whole, whatever its size.

    :raises SpecError: the settings are too large, too deep, or not YAML.
    """
    if (file := _settings_file(env)) is None:
        return
    _, problems = read_document(file, "write transport: with type: and url: below it, or delete the file")
    for problem in problems:
        raise SpecError(f"OpenLineage's settings cannot be used: {problem}")


def _settings_file(env: Mapping[str, str]) -> Path | None:
    """Return the file from which the client takes its settings, None where there is none."""
    named = env.get("OPENLINEAGE_CONFIG")
    files = [Path(named)] if named else []
    files += [folder / "openlineage.yml" for folder in (Path.cwd(), Path.home() / ".openlineage")]
    return next((file for file in files if file.is_file() and os.access(file, os.R_OK)), None)


def events_of(place: DatasetPlace, staging: Staging, session: Session) -> Iterator[RunEvent]:
    """Yield a session's events, with the snapshot that it published.

    :raises SnapshotCorrupt: that snapshot cannot be read.
    """
    from pinot_assets.lineage_events.openlineage import events

    snapshot = former = None
    if session.outcome in (Outcome.PUBLISHED, Outcome.NOOP):
        snapshot, former = _published_by(staging, session)
    yield from events(place, session, snapshot, former)


def _published_by(staging: Staging, session: Session) -> tuple[Snapshot | None, Snapshot | None]:
    """Return the snapshot that a session published and the one before it; None for what is no longer kept."""
    there = snapshot_headers(staged(staging, "snapshots"))
    same = (h.ref for h in there if h.seq == session.seq and staging.header(h.ref)["session"] == session.id)
    older = (h.ref for h in there if h.seq < session.seq)
    snapshot, former = (
        next((k.snapshot for k in read_snapshots(staging, refs)), None) for refs in (same, older)
    )
    return snapshot, former


def place_of(spec: TableSpec, controller: str, env: Mapping[str, str]) -> DatasetPlace:
    """Return the names of a table's job and datasets, with only host and port of the controller's address."""
    from pinot_assets.lineage_events.openlineage import DatasetPlace

    address = urlsplit(controller)
    return DatasetPlace(
        namespace=env.get(NAMESPACE, "").strip() or "pinot-assets",
        pinot=f"pinot://{address.hostname}:{address.port or (443 if address.scheme == 'https' else 80)}",
        table=spec.name,
        columns=schema_columns(spec.schema_json),
        read_as_is=not spec.ingestion.transforms,
    )


def schema_columns(schema: JsonMapping) -> list[tuple[str, str]]:
    """Return name and type of each column of a Pinot schema; a multi-value type is `STRING[]`."""
    kinds = ("dimensionFieldSpecs", "metricFieldSpecs", "dateTimeFieldSpecs")
    return [
        (field["name"], field["dataType"] + ("[]" if field.get("singleValueField") is False else ""))
        for kind in kinds
        for field in schema.get(kind) or ()
    ]


def send(run_events: Sequence[RunEvent]) -> None:
    """Send events where the client's environment says; do nothing where no transport is named.

    :raises SpecError: the client's settings cannot be used.
    :raises Exception: whatever the transport raises.
    """
    if not run_events:
        return
    from openlineage.client import OpenLineageClient

    refuse_large_settings(os.environ)
    # These loggers report each attempt, with addresses that may hold a secret.
    for name in ("openlineage", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    client = OpenLineageClient()
    if client.transport.kind == "console" and not client.config.transport:
        return  # the client falls back to the console where no transport is named
    try:
        for event in run_events:
            client.emit(event)
    finally:
        client.close(SECONDS)


def _why(error: Exception) -> str:
    """Return the reason of our errors; of others class and status, never the text: it quotes the address."""
    if isinstance(error, PinotAssetsError):
        return error.reason
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"{type(error).__name__}, status {status}" if status else type(error).__name__
