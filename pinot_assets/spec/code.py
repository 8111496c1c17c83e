"""Code in a table config: Groovy, which Pinot's servers run as they take rows in.

Only a REALTIME table's servers do. For an OFFLINE table the segment writer refuses it, whatever a policy
says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pinot_assets.policy import Policy
from pinot_assets.spec.document import Part
from pinot_assets.spec.problem import Problem

_FUNCTIONS: Final = ("transformFunction", "filterFunction")
_GROOVY: Final = re.compile(r"\bgroovy\s*\(", re.IGNORECASE)


def code_problems(part: Part, policy: Policy) -> list[Problem]:
    """Every function in a schema or table config that is code, unless the policy allows code."""
    refusal = policy.refuses_code()
    if refusal is None:
        return []
    return [place.problem(refusal.reason, refusal.fix) for place in _functions(part.value, part)]


def _functions(value: Any, part: Part) -> Iterator[Part]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _FUNCTIONS and isinstance(inner, str) and _GROOVY.search(inner):
                yield part.at(key)
            yield from _functions(inner, part.at(key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _functions(inner, part.at(position))
