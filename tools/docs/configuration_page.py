"""docs/reference/configuration.md, made of the models and of the list of variables.

`python -m tools.docs.configuration_page > docs/reference/configuration.md` writes it; a test holds the page
to it.
"""

from __future__ import annotations

import sys
from typing import Final

from pinot_assets.settings.cluster_fields import Variable
from pinot_assets.settings.variables import VARIABLES
from tools.docs.table_spec_page import HEAD, spec_reference

_TOP: Final = """\
<!-- python -m tools.docs.configuration_page > docs/reference/configuration.md -->
# Configuration reference

Every setting with its type, unit, default and meaning, generated from the code that reads it. What they do
together is told in [table specs](../tables.md) and [deploying](../deploy.md).

## Table specs

One YAML file is one table: `schema` (or `schemaFile`) and `table` (or `tableFile`) are Pinot's own JSON, the
blocks below are ours. `pinot-assets tables json-schema` prints the same for editors, with completion.
"""

_ENVIRONMENT: Final = """\
## Environment

Read where they are used, never stored; nothing secret is shown in the UI, in logs or in errors. What a
table's spec says of its own stores (`input.fs.prop.*`, `output.fs.prop.*`) goes before all of these. Beside
them, each cloud's own chain of credentials is asked: AWS' (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
`AWS_SESSION_TOKEN`, `AWS_PROFILE`, a role), Google's (`GOOGLE_APPLICATION_CREDENTIALS`, …), Azure's
(`AZURE_STORAGE_ACCOUNT_KEY`, …), on each machine, executors included. A spec refers to variables of your own
as `${NAME}`: those that begin with `TABLE_`, unless [the policy](../security.md#what-a-table-spec-may-reach)
allows others.
"""


def configuration_page() -> str:
    """The whole page, ending in a newline."""
    sections = [_TOP, spec_reference() + "\n", _ENVIRONMENT]
    sections += [f"### {title}\n\n{_table(variables)}\n" for title, variables in VARIABLES.items()]
    return "\n".join(sections)


def _table(variables: tuple[Variable, ...]) -> str:
    rows = [f"| `{v.name}` | {v.kind} | {v.unit} | {v.default or '–'} | {v.meaning} |" for v in variables]
    return "\n".join((*HEAD, *rows))


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
