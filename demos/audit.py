"""`python -m demos.audit`: the story of `make audit-demo`."""

import sys

from demos.audit_story import tell
from demos.told import told
from pinot_assets.cli.terminal import Terminal


def main() -> int:
    """Tell the story; 0 when each tier stopped its bad files, and no query ever saw them."""
    # A log has no width of its own: wide enough for the table at the end.
    return told("audit-demo", tell, Terminal(width=None if sys.stdout.isatty() else 120))


if __name__ == "__main__":
    sys.exit(main())
