"""A plan as plain values, everything of it: for `--json`."""

from __future__ import annotations

from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.plan_report.plan_report import FileChange, PlanReport
from pinot_assets.session.plan_report.rendering import headline
from pinot_assets.session.plan_report.switch_cost import Sums, SwitchCost
from pinot_assets.session.values.estimate import Estimate
from pinot_assets.session.values.state import utc_text
from pinot_assets.snapshot.fingerprint import Fingerprint
from pinot_assets.source.readiness import Unready


def values(plan: PlanReport) -> JsonObject:
    """Times in UTC, sizes in bytes; null is not known."""
    planned, seen = plan.planned, plan.decision
    used, most = plan.retries
    found = seen.looked.found if seen.looked is not None else None
    return {
        "table": f"{planned.table}_OFFLINE",
        "mode": planned.mode.lower(),
        "push": planned.push.lower(),
        "plan": planned.plan_basis.hash,
        "restsOn": dict(planned.plan_basis.digests),
        "step": seen.step,
        "summary": headline(plan),
        "why": seen.why or None,
        "refused": planned.refused.reason if planned.refused else None,
        "hint": planned.refused.hint if planned.refused else None,
        "session": None
        if seen.session is None
        else {"id": seen.session.id, "state": seen.session.state, "attempt": seen.session.attempt},
        "retries": {"used": used, "max": most, "spent": seen.step == "RETRY"},
        "leaseHolder": str(plan.holder) if plan.holder else None,
        "files": {
            "source": plan.source,
            "listed": plan.listed,
            **{kind: [_change(c) for c in plan.of_kind(kind)] for kind in _KINDS},
            "heldBack": [_change(c) for c in plan.held],
            "notReady": [_unready(u) for u in found.later] if found else [],
            "waiting": [_unready(u) for u in found.waiting] if found else [],
        },
        "build": {
            "files": [row.uri for row in plan.build],
            "bytes": plan.build_bytes,
            "kept": plan.kept,
        },
        "segments": {
            "visible": len(planned.visible),
            "replaced": planned.segments_from,
            "strays": planned.strays,
            "beside": planned.beside,
        },
        "shadowTable": planned.shadow or None,
        "modes": [
            {
                "mode": m.mode.lower(),
                "builds": m.builds,
                "bytes": m.build_bytes,
                "removes": m.removes,
                "whyNot": m.why_not or None,
            }
            for m in plan.modes
        ],
        "switch": _switch(plan.switching) if plan.switching is not None else None,
        "deletesSnapshots": [{"seq": h.seq, "sha256": h.ref.sha256} for h in plan.expiring],
        "revertUntil": None if plan.revert_until_ms is None else utc_text(plan.revert_until_ms),
    }


_KINDS = ("new", "rewritten", "deleted", "touched")


def _switch(switch: SwitchCost) -> JsonObject:
    room = switch.room
    return {
        "segmentsAtLeast": switch.added,
        "rows": _sums(switch.rows),
        "bytes": _sums(switch.bytes),
        "storage": {
            "replication": room.replication,
            "present": room.present,
            "atSwitch": room.at_peak.total if room.at_peak else None,
            "later": room.later.total if room.later else None,
            "quota": room.quota,
            "fits": room.fits,
            "estimated": not room.coming.exact,
        },
        "disks": [
            {
                "server": d.server,
                "free": d.free,
                "whileLoading": d.loading,
                "after": d.after,
                "whyNot": d.why_not or None,
            }
            for d in room.disks
        ],
        "lineage": {"bytes": switch.lineage_bytes, "entryBytes": switch.entry_bytes},
        "idealState": {
            "segments": switch.ideal_state.segments,
            "bytes": switch.ideal_state.text_bytes,
            "storedBytes": switch.ideal_state.stored_bytes,
        },
        "forcedStart": {
            "deletes": switch.force_cleanup_loss.segments,
            "bytes": switch.force_cleanup_loss.bytes,
            "beforePush": switch.force_cleanup_loss.at_start,
        },
        "revertForMs": switch.revert_ms,
    }


def _sums(sums: Sums) -> JsonObject:
    return {
        "now": sums.now,
        "removed": _amount(sums.removed),
        "added": _amount(sums.added),
        "after": _amount(sums.after),
    }


def _amount(amount: Estimate) -> dict[str, int | None]:
    return {
        "total": amount.total,
        "known": amount.known,
        "estimated": amount.guess,
        "exact": amount.exact,
    }


def _change(change: FileChange) -> JsonObject:
    return {"uri": change.uri, "old": _version(change.before), "new": _version(change.after)}


def _version(found: Fingerprint | None) -> JsonObject | None:
    return None if found is None else {"version": found.token, **found.to_json()}


def _unready(found: Unready) -> str:
    return f"{found.uri} {found.why}"
