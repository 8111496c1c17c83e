"""What people do to a REALTIME table beside pinot-assets, which never does it: the tests read the effect."""

from __future__ import annotations

from collections.abc import Collection

from pinot_assets.core.untrusted import listed
from pinot_assets.pinot.client.http import CallKind, HttpCall, quoted
from pinot_assets.pinot.realtime import RealtimePinot


class OperatorClient(RealtimePinot):
    """The clients of the package, and calls of Pinot that only a person sends."""

    def pause_topics(self, table: str, topics: Collection[int]) -> None:
        """Pause some streams of a table, by their index; independent of `pause`. 1.5.0 on."""
        self._topics(table, "pauseTopicConsumption", topics)

    def resume_topics(self, table: str, topics: Collection[int]) -> None:
        """Undo `pause_topics`. 1.5.0 on."""
        self._topics(table, "resumeTopicConsumption", topics)

    def _topics(self, table: str, order: str, topics: Collection[int]) -> None:
        self._write(
            "POST", f"/tables/{quoted(table)}/{order}", topicIndices=",".join(map(str, sorted(topics)))
        )

    def force_commit_segments(self, table: str, segments: Collection[str]) -> str | None:
        """Like `force_commit`, these consuming segments only. 1.1 on; an older one commits them all."""
        path, params = f"/tables/{quoted(table)}/forceCommit", {"segments": ",".join(sorted(segments))}
        answer = self._client.send_fields(HttpCall("POST", path, CallKind.WRITE, params=params))
        job: str | None = answer.get("forceCommitJobId")
        return job

    def force_commit_pending(self, job: str) -> frozenset[str]:
        """Segments of a `force_commit` that are not committed yet; of a pauseless table: not uploaded.

        1.0 on.
        """
        answer = self._get(f"/tables/forceCommitStatus/{quoted(job)}")
        return frozenset(answer.get("segmentsYetToBeCommitted") or ())

    def reingesting(self, admin_url: str) -> frozenset[str]:
        """Segments that a server reads from the stream again now. 1.4 on."""
        jobs = listed(self._clients.at(admin_url).get_json("/reingestSegment/jobs") or [], dict)
        return frozenset(str(job["segmentName"]) for job in jobs)

    def delete_realtime_segments(self, table: str, segments: Collection[str]) -> None:
        """Delete these segments, wherever they are. 0.11 on."""
        self._write("POST", f"/segments/{quoted(table)}/delete", body=sorted(segments))
