"""docs/reference/errors.md; `python -m pinot_assets.errors_page > docs/reference/errors.md` writes it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from pinot_assets.error_codes import CLASSES, CODES, Meaning
from pinot_assets.exit_codes import MEANINGS

_TOP: Final = """\
<!-- python -m pinot_assets.errors_page > docs/reference/errors.md -->
# Errors

Every exit code, every class of error and every code of a failed file, generated from the code that uses them.
Each message says what happened, why, and what to do next. Running a command again is always safe.
[operations.md](../operations.md) explains alerts, health checks and the notices of failed runs.

## Exit codes

With `--json`, the field `exit` of an error says the same.
"""

_CLASSES: Final = """\
## Classes of errors

A class is named in Dagster's event log, in the notices of failed runs (`failed_steps`) and in logs. All of
them are in `pinot_assets.errors`.
"""

_CODES: Final = """\
## Codes of failed files

`pinot-assets status`, `run --json` and `session show --files` name the code of each file that failed, and so
does the table *failed_files* in Dagster. The other files of the session keep what was built. Features that
the segment writer refuses have codes of their own ([formats.md](../guides/formats.md)); `tables validate`
shows them.
"""


def errors_page() -> str:
    """The whole page, ending in a newline."""
    codes = "\n".join(f"| {code.value} | {told} |" for code, told in MEANINGS.items())
    return "\n".join(
        (
            f"{_TOP}\n| code | meaning |\n|---|---|\n{codes}\n",
            f"{_CLASSES}\n{_table('class', CLASSES)}\n",
            f"{_CODES}\n{_table('code', CODES)}\n",
        )
    )


def _table(first: str, meanings: Mapping[str, Meaning]) -> str:
    rows = [f"| `{name}` | {said.means} | {said.do} |" for name, said in meanings.items()]
    return "\n".join([f"| {first} | means | do |", "|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(errors_page())
