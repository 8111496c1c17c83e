"""Which means a release of Pinot has; read in the sources of 0.11.0 to 1.5.1."""

from __future__ import annotations

from typing import Final

from packaging.version import Version

from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.settings import reingests
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.repair.model import Means

_RECREATES: Final = Version("1.3")
_PAUSELESS: Final = Version("1.4")
_UPLOADS_ON_REQUEST: Final = Version("1.5")


def upload_means(state: RealtimeState) -> Means:
    """How a completed segment gets into the deep store.

    The validation of 1.4 passes it over unless the table is pauseless or the controller retries uploads.
    """
    version = release(state.cluster.version)
    if version >= _UPLOADS_ON_REQUEST:
        return Means.CONTROLLER
    retries = state.settings.pauseless or state.cluster.deep_store_upload_retry
    return Means.SEGMENT_VALIDATION if version >= _PAUSELESS and retries else Means.SERVER


def finish_means(state: RealtimeState) -> Means:
    """How a COMMITTING segment is finished from a replica.

    Once a table is no longer pauseless, all but a forced upload pass its COMMITTING segments over
    (`shouldSkipForNonPauselessMode`); where that is not to be had, the server is asked.
    """
    version = release(state.cluster.version)
    if version >= _UPLOADS_ON_REQUEST:
        return Means.CONTROLLER if state.settings.pauseless else Means.FORCED
    return Means.SEGMENT_VALIDATION if state.settings.pauseless else Means.SERVER


def recreate_means(state: RealtimeState) -> Means:
    """How a partition without a consuming segment gets one, all replicas of its last being ONLINE.

    Before 1.3 the validation does so only for `resumeConsumption` (`recreateDeletedConsumingSegment`).
    """
    return Means.VALIDATION if release(state.cluster.version) >= _RECREATES else Means.RESUME


def keeps_committing_list(state: RealtimeState) -> bool:
    """Whether the segment-level validation takes finished names off the list of committing segments."""
    return state.settings.pauseless and release(state.cluster.version) >= _PAUSELESS


def deletes_from_sequence(version: str) -> bool:
    """Whether `deleteSegmentsFromSequenceNum` is there."""
    return release(version) >= _PAUSELESS


def validation_resets(state: RealtimeState) -> bool:
    """Whether every validation resets all replicas of a segment that has one in ERROR, healthy ones included
    (`repairSegmentsInErrorState`, docs/design/realtime.md#v4)."""
    if release(state.cluster.version) < _PAUSELESS:
        return False
    if state.settings.pauseless:
        return reingests(state.settings, state.cluster)
    return state.cluster.error_auto_reset
