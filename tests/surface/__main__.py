"""`PYTHONPATH=tests python -m surface` adds to tests/public_surface.json what is new, and drops nothing."""

from __future__ import annotations

import json
import sys

from surface.compare import together
from surface.listing import SNAPSHOT, promised, surface


def main() -> None:
    """Write the file anew."""
    before = promised() if SNAPSHOT.exists() else {}
    after = together(before, surface(before))
    SNAPSHOT.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    added = sum(len(names) for names in after.values()) - sum(len(names) for names in before.values())
    sys.stdout.write(f"{added} added to {SNAPSHOT.name}\n")


main()
