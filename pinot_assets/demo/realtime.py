"""`python -m pinot_assets.demo.realtime`: the story of `make realtime-demo`."""

import sys
from pathlib import Path

from rich.console import Console

from pinot_assets.demo.realtime_story import tell
from pinot_assets.errors import PinotAssetsError

HOME = Path(".pinot-assets") / "realtime-demo"


def main() -> int:
    """Tell the story; 0 when no row was lost, ingestion kept its rate, and every segment is stored."""
    console = Console(soft_wrap=True)
    try:
        return 0 if tell(HOME.resolve(), console) else 1
    except PinotAssetsError as error:
        console.print(f"[red]error[/]: {error}", highlight=False)
        return 1


if __name__ == "__main__":
    sys.exit(main())
