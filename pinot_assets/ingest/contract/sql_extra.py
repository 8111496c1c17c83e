"""What the driver needs for the SQL of a table spec: pandas, which is the extra `sql`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

INSTALL_SQL: Final = 'pip install "pinot-assets[sql]"'


def lacks_pandas() -> bool:
    """Whether pandas is missing on this machine. Without it, PySpark cannot pass rows to Python."""
    return find_spec("pandas") is None
