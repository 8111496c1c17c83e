"""Generate docs/reference/errors.md: `python -m tools.docs.errors_page > docs/reference/errors.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from pinot_assets import errors
from pinot_assets.errors import PinotAssetsError
from tools.docs.cli_page import MEANINGS
from tools.docs.error_codes import CLASSES, CODES, KINDS, Meaning
from tools.docs.formats_page import FormatLine

_TOP: Final = """\
<!-- python -m tools.docs.errors_page > docs/reference/errors.md -->
# Errors

Every exit code, every class of error and every code of a failed file, generated from the code that uses them.
Each message says what happened, why, and what to do next. Running a command again is always safe.
[operations.md](../operations.md) explains alerts, health checks and the notices of failed runs.

## Exit codes

With `--json`, the field `exit` of an error has the same code.
"""

_CLASSES: Final = """\
## Classes of errors

Dagster's event log, the notices of failed runs (`failed_steps`) and logs name the class of an error. These
are the classes of `pinot_assets.errors`; their names do not change.
"""

_KINDS: Final = """\
### Kinds of them

Some errors are of a subclass, whose name a log shows. Your code catches the class in the last column.
"""

_CODES: Final = """\
## Codes of failed files

`pinot-assets status`, `run --json` and `session show --files` name the code of each file that failed, and so
does the table *failed_files* in Dagster. The other files of the session keep what was built.
"""

_FEATURES: Final = """\
## Codes of features

A schema or table config may require these features, which the segment writer does not have. `tables validate`
and `UNSUPPORTED` name the code. [formats.md](../guides/formats.md) lists what the writer does, and what to do
instead.
"""


def errors_page() -> str:
    """Return the whole page, ending in a newline."""
    codes = "\n".join(f"| {code.value} | {text} |" for code, text in MEANINGS.items())
    return "\n".join(
        (
            f"{_TOP}\n| code | meaning |\n|---|---|\n{codes}\n",
            f"{_CLASSES}\n{_table('class', CLASSES)}\n",
            f"{_KINDS}\n{_kinds()}\n",
            f"{_CODES}\n{_table('code', CODES)}\n",
            f"{_FEATURES}\n{_features()}\n",
        )
    )


def class_of(kind: str) -> type[PinotAssetsError]:
    """Return the class that a key of `KINDS` names."""
    module, _, name = kind.rpartition(".")
    found: type[PinotAssetsError] = getattr(import_module(f"pinot_assets.{module}"), name)
    return found


def _kinds() -> str:
    rows = []
    for kind, said in KINDS.items():
        public = next(one for one in class_of(kind).__mro__ if one.__module__ == errors.__name__)
        rows.append(f"| `{kind.rpartition('.')[2]}` | {said.means} | {said.do} | `{public.__name__}` |")
    return "\n".join(["| class | means | do | a kind of |", "|---|---|---|---|", *rows])


def _features() -> str:
    rows = []
    for code in dict.fromkeys(feature.code for feature in FormatLine if feature.code):
        same = [feature for feature in FormatLine if feature.code == code]
        columns = (
            "; ".join(dict.fromkeys(texts))
            for texts in (
                (feature.title for feature in same),
                (feature.answer.value for feature in same),
                (feature.reason for feature in same),
            )
        )
        rows.append(f"| `{code}` | {' | '.join(columns)} |")
    return "\n".join(["| code | of | answer | why |", "|---|---|---|---|", *rows])


def _table(first: str, meanings: Mapping[str, Meaning]) -> str:
    rows = [f"| `{name}` | {said.means} | {said.do} |" for name, said in meanings.items()]
    return "\n".join([f"| {first} | means | do |", "|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(errors_page())
