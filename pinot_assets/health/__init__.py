"""Standing health of a table: what should hold at any time, whether or not a session is under way.

Pure checks over plain values, one module each; `look` reads what they need, `checks` puts them together.
"""

from pinot_assets.core.check_result import CheckResult, Severity
from pinot_assets.health.checks import CHECKS, examine, examine_table, summary

__all__ = ["CHECKS", "CheckResult", "Severity", "examine", "examine_table", "summary"]
