"""Health of a table: what should hold at any time, whether or not a session is open.

Each check is a function of one look at the table (`table_probe`), which reads a thing when a check first
needs it. `all_checks` puts the checks together.
"""

from pinot_assets.core.check_result import CheckResult, Severity
from pinot_assets.health.all_checks import CHECKS, examine, examine_table, summary

__all__ = ["CHECKS", "CheckResult", "Severity", "examine", "examine_table", "summary"]
