"""Find the release for which a session's segments are written (`writeFor`)."""

from __future__ import annotations

from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.pinot.versions import UNNAMED_SERVER, oldest_server
from pinot_assets.segment import SegmentSpec
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.table_spec.yaml.values import AUTO


def segment_target(context: TriggerContext) -> str:
    """Return the release of the oldest server that must read the segments, before anything is built.

    :raises UnsupportedFeature: the table config asks for something that such a server cannot read.
    """
    spec = context.spec
    release = spec.ingestion.target
    if release == AUTO:
        release = _oldest(context)
    SegmentSpec.from_pinot(spec.schema_json, spec.table_json, write_for=release)
    return release


def _oldest(context: TriggerContext) -> str:
    try:
        named = context.pinot.server_versions(context.table)
    except PinotUnreachable:
        raise
    except PinotError as refused:
        why = f"Pinot does not say which releases its servers have ({refused.what})"
    else:
        if named:
            return oldest_server(named.values())
        why = "Pinot names no server that may be given them"
    context.note(f"segments are written for {UNNAMED_SERVER}, because {why}; set writeFor to the oldest one")
    return UNNAMED_SERVER
