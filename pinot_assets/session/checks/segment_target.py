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
        return oldest_server(context.pinot.server_versions(context.table).values())
    except PinotUnreachable:
        raise
    except PinotError as refused:
        context.note(
            f"segments are written for {UNNAMED_SERVER}, because Pinot does not say which releases its "
            f"servers have ({refused.what}); set writeFor to the oldest one"
        )
        return UNNAMED_SERVER
