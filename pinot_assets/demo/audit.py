"""`python -m pinot_assets.demo.audit`: the story of `make audit-demo`."""

import sys

from rich.console import Console

from pinot_assets.demo.audit_story import tell
from pinot_assets.demo.told import told


def main() -> int:
    """Tell the story; 0 when each tier stopped its bad files, and no query ever saw them."""
    # A log has no width of its own: wide enough for the table at the end.
    return told("audit-demo", tell, Console(width=None if sys.stdout.isatty() else 120))


if __name__ == "__main__":
    sys.exit(main())
