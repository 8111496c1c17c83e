"""`python -m demos.realtime`: the story of `make realtime-demo`."""

import sys

from demos.realtime_story import tell
from demos.told import told
from pinot_assets.cli.terminal import Terminal


def main() -> int:
    """Tell the story; 0 when no row was lost, ingestion kept its rate, and every segment is stored."""
    return told("realtime-demo", tell, Terminal(soft_wrap=True))


if __name__ == "__main__":
    sys.exit(main())
