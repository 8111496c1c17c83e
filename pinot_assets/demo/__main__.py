"""`python -m pinot_assets.demo`: the story of `make demo`."""

import sys

from pinot_assets.demo.story import tell
from pinot_assets.demo.told import told
from pinot_assets.terminal import Terminal


def main() -> int:
    """Tell the story; 0 when no query saw a mixed answer and the control did."""
    # A log has no width of its own: wide enough for the table at the end.
    return told("demo", tell, Terminal(width=None if sys.stdout.isatty() else 120))


if __name__ == "__main__":
    sys.exit(main())
