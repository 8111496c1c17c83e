"""Write YAML from which our own reader (`table_spec.yaml.document`) reads the same values.

PyYAML quotes by YAML 1.1: it writes the texts `0099`, `08` and `1e5` bare, and YAML 1.2 reads numbers there.
"""

from __future__ import annotations

import json
import re
from typing import Final

import yaml

from pinot_assets.core.json_object import JsonValue
from pinot_assets.table_spec.yaml.document import CORE_RESOLVERS

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""Such a text is no number and no date, and has no character with a meaning in YAML."""
_NO_TEXT: Final = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
"""Words that YAML 1.1 does not read as texts."""


class _Dumper(yaml.SafeDumper):
    """PyYAML's emitter. It leaves a text bare only if both versions of YAML read it as a text."""

    def ignore_aliases(self, _: object) -> bool:
        return True  # a reader of a spec should not have to look up *id001


for _tag, _regexp, _first in CORE_RESOLVERS:
    _Dumper.add_implicit_resolver(_tag, _regexp, _first)


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # PyYAML breaks lines at characters that readers turn into \n; as escapes they are kept.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represented)


def dumped(value: JsonValue) -> str:
    """A JSON value as lines of YAML; mappings keep their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def in_line(value: object) -> str:
    """Return a key (YAML takes 1,024 characters) or a single value for a line: a plain word, or JSON."""
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    return json.dumps(value).replace("\x7f", "\\u007f")  # JSON leaves U+007F as it is, YAML forbids it
