"""The preflight of a REALTIME table: what must be right before a change of its config."""

from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.judge import judge, judge_change, refuse_unless_safe, summary, verdict

__all__ = ["Aim", "Facts", "judge", "judge_change", "refuse_unless_safe", "summary", "verdict"]
