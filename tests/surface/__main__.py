"""`PYTHONPATH=tests python -m surface` writes tests/public_surface.json anew; lists of releases stay."""

from __future__ import annotations

import json
import sys

from surface.compare import complaints
from surface.listing import SNAPSHOT, now, written


def main() -> None:
    """Write the file, and say what changed in it."""
    current = now()
    changed = [line.partition(";")[0] for line in complaints(written() if SNAPSHOT.exists() else {}, current)]
    SNAPSHOT.write_text(json.dumps(current, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join([*changed, f"{len(changed)} changed in {SNAPSHOT.name}\n"]))


main()
