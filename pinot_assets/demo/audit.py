"""`python -m pinot_assets.demo.audit`: the story of `make audit-demo`."""

import sys
from pathlib import Path

from rich.console import Console

from pinot_assets.demo.audit_story import tell
from pinot_assets.errors import PinotAssetsError

HOME = Path(".pinot-assets") / "audit-demo"


def main() -> int:
    """Tell the story; 0 when each tier stopped its bad files, and no query ever saw them."""
    # A log has no width of its own: wide enough for the table at the end.
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        return 0 if tell(HOME.resolve(), console) else 1
    except PinotAssetsError as error:
        console.print(f"[red]error[/]: {error}", highlight=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
