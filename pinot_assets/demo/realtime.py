"""`python -m pinot_assets.demo.realtime`: the story of `make realtime-demo`."""

import sys

from rich.console import Console

from pinot_assets.demo.realtime_story import tell
from pinot_assets.demo.told import told


def main() -> int:
    """Tell the story; 0 when no row was lost, ingestion kept its rate, and every segment is stored."""
    return told("realtime-demo", tell, Console(soft_wrap=True))


if __name__ == "__main__":
    sys.exit(main())
