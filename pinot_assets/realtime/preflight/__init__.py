"""The preflight of a REALTIME table: what must be right before a change of its config."""

from pinot_assets.realtime.preflight.answer import Answer, Verdict
from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.judge import judge, judge_change, refuse_unless_safe, summary

__all__ = ["Aim", "Answer", "Facts", "Verdict", "judge", "judge_change", "refuse_unless_safe", "summary"]
