"""YAML that this project writes, such that its own reader (`table_spec.yaml.document`) reads the same values.

PyYAML quotes texts by YAML 1.1: `0099`, `08` and `1e5` stay bare, and are numbers to a reader of YAML 1.2.
"""

from __future__ import annotations

import json
import re
from typing import Final

import yaml

from pinot_assets.core.json_object import JsonValue
from pinot_assets.table_spec.yaml.document import CORE_RESOLVERS

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""Such a text is no number, no date and nothing that YAML has a sign for."""
_NO_TEXT: Final = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
"""What readers of YAML 1.1 take for something else than a text."""


class _Dumper(yaml.SafeDumper):
    """PyYAML's emitter. Bare is only what both versions of YAML take for a text."""

    def ignore_aliases(self, _: object) -> bool:
        return True  # nobody who reads a spec wants to look up what *id001 is


for _tag, _regexp, _first in CORE_RESOLVERS:
    _Dumper.add_implicit_resolver(_tag, _regexp, _first)


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # PyYAML breaks lines at characters that readers turn into \n; with escapes they stay.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represented)


def dumped(value: JsonValue) -> str:
    """A JSON value as lines of YAML; mappings keep their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def in_line(value: object) -> str:
    """A key or a single value, for a line that is made by hand: a plain word, or as JSON has it."""
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    return json.dumps(value).replace("\x7f", "\\u007f")  # which JSON leaves as it is, and YAML forbids
