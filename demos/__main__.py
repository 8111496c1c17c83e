"""`python -m demos`: the story of `make demo`."""

import sys

from demos.story import tell
from demos.told import told
from pinot_assets.cli.terminal import Terminal


def main() -> int:
    """Tell the story; 0 when no query saw a mixed answer and the control did."""
    # A log has no width of its own: wide enough for the table at the end.
    return told("demo", tell, Terminal(width=None if sys.stdout.isatty() else 120))


if __name__ == "__main__":
    sys.exit(main())
