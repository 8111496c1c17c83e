"""Words of the completion protocol: what a server says, what the controller answers, and how long each waits.

Source: `SegmentCompletionProtocol`, `BlockingSegmentCompletionFSM`, `SegmentBuildTimeLeaseExtender` of
release-1.5.1; docs/design/realtime.md#s1 and #s2. Times are milliseconds unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pinot_assets.sizing.load import HOLD_MS

PICK_WINNER_MS: Final = HOLD_MS + HOLD_MS // 10
LONGEST_COMMIT_MS: Final = 1_800_000
"""`MAX_COMMIT_TIME_FOR_ALL_SEGMENTS_SECONDS`: no lease goes beyond, counted from the election's start."""

LEASE_TRIES: Final = 3
LEASE_RETRY_MS: Final = 2_000

REQUEST_TIMEOUT_MS: Final = 10_000
"""Every message but commitEnd and the uploads (`DEFAULT_OTHER_REQUESTS_TIMEOUT`)."""

STOPPED_RETRY_MS: Final = 10_000
CATCH_UP_MS: Final = 31_000
"""`MAX_TIME_FOR_CONSUMING_TO_ONLINE_IN_SECONDS`."""


class MessageKind(StrEnum):
    """Messages of the protocol (docs/design/realtime.md#s1)."""

    CONSUMED = "segmentConsumed"
    STOPPED = "segmentStoppedConsuming"
    START = "segmentCommitStart"
    UPLOAD = "segmentUpload"
    END = "segmentCommitEndWithMetadata"
    EXTEND = "extendBuildTime"
    CANNOT_BUILD = "segmentBuildDeterministicFailure"


class CompletionStatus(StrEnum):
    """`ControllerResponseStatus`."""

    COMMIT = "COMMIT"
    HOLD = "HOLD"
    CATCH_UP = "CATCH_UP"
    DISCARD = "DISCARD"
    KEEP = "KEEP"
    NOT_LEADER = "NOT_LEADER"
    FAILED = "FAILED"
    COMMIT_SUCCESS = "COMMIT_SUCCESS"
    COMMIT_CONTINUE = "COMMIT_CONTINUE"
    PROCESSED = "PROCESSED"
    UPLOAD_SUCCESS = "UPLOAD_SUCCESS"
    NOT_SENT = "NOT_SENT"
    """The server's own: nobody answered in time, or nobody was there to ask."""


class Reason(StrEnum):
    """Why a server stopped reading."""

    ROW_LIMIT = "rowLimit"
    TIME_LIMIT = "timeLimit"
    END_OF_PARTITION = "endOfPartitionGroup"
    FORCE_COMMIT = "forceCommitMessageReceived"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the controller answers.

    :ivar offset: with CATCH_UP: how far to read.
    :ivar build_ms: with COMMIT: how long the build may take.
    :ivar location: with UPLOAD_SUCCESS: where the controller has put the tar.
    """

    answer: CompletionStatus
    offset: int | None = None
    build_ms: int | None = None
    location: str | None = None


HOLD: Final = Reply(CompletionStatus.HOLD)
KEEP: Final = Reply(CompletionStatus.KEEP)
DISCARD: Final = Reply(CompletionStatus.DISCARD)
FAILED: Final = Reply(CompletionStatus.FAILED)
PROCESSED: Final = Reply(CompletionStatus.PROCESSED)
NOT_LEADER: Final = Reply(CompletionStatus.NOT_LEADER)
NOT_SENT: Final = Reply(CompletionStatus.NOT_SENT)
COMMIT_CONTINUE: Final = Reply(CompletionStatus.COMMIT_CONTINUE)
COMMIT_SUCCESS: Final = Reply(CompletionStatus.COMMIT_SUCCESS)
