"""Which functions of Pinot take patterns, or make values and sketches as large as a number says."""

from __future__ import annotations

import re
from typing import Final

from pinot_assets.expressions.calls import FunctionCall, number_of, text_of
from pinot_assets.expressions.costs import (
    MOST_EXPONENT,
    UNKNOWN_LENGTH,
    Dialect,
    by,
    by_number,
    by_range,
    by_separator,
    by_text,
)
from pinot_assets.expressions.pinot_names import ALLOWED, canonical
from pinot_assets.expressions.refused import ExpressionRefused
from pinot_assets.expressions.regular import MOST_LENGTH, MOST_LOOSE
from pinot_assets.expressions.tokens import words

MOST_ENTRIES: Final = 1 << 20
"""Of a sketch or a histogram."""
MOST_NEIGHBOURS: Final = 10_000
"""That a search for similar vectors may ask a segment for."""

_WITH_PATH: Final = """
    jsonextractkey jsonextractscalar jsonpath jsonpatharray jsonpatharraydefaultempty jsonpathdouble
    jsonpathexists jsonpathlong jsonpathstring
"""
_PATTERN_WITHIN: Final = re.compile(r"=~|regexp_?like|\blike\b", re.IGNORECASE)
_SLASH: Final = re.compile(r'\\.|"(?:\\.|[^"\\])*"|(/)', re.DOTALL)
"""In a query of Lucene, which reads a pattern between slashes, if they are neither escaped nor in quotes."""


def _no_pattern(text: str) -> None:
    """Of a path of JSON, or of what JSON_MATCH and sketches filter by."""
    if _PATTERN_WITHIN.search(text):
        raise ExpressionRefused("holds a pattern", "write REGEXP_LIKE() by itself")


def _few_wildcards(text: str) -> None:
    if len(text) > MOST_LENGTH:
        raise ExpressionRefused(f"has more than {MOST_LENGTH:,} characters", "write a shorter one")
    if len(re.findall(r"\*+", text)) > MOST_LOOSE + 1:
        raise ExpressionRefused(f"has more than {MOST_LOOSE + 1} *", "write several conditions")


def _lucene(text: str) -> None:
    """Of a query of TEXT_MATCH."""
    if any(found[1] for found in _SLASH.finditer(text)):
        raise ExpressionRefused("holds a pattern between slashes", "write REGEXP_LIKE(), or \\/ for a slash")
    _few_wildcards(text)


def _check_sketch(call: FunctionCall) -> None:
    """Refuse parameters of a sketch (`'nominalEntries=4096'`) that ask for much or are no literals."""
    for argument in call.arguments[1:]:
        text = text_of(argument)
        if text is None and number_of(argument) is None:
            raise ExpressionRefused(f"gives {call.name}() a setting that is no literal", "write its value")
        if any(float(number) > MOST_ENTRIES for number in re.findall("[0-9]+", text or "")):
            raise ExpressionRefused(
                f"asks {call.name}() for more than {MOST_ENTRIES:,} entries", "write a smaller number"
            )
        if text is not None and _PATTERN_WITHIN.search(text):
            raise ExpressionRefused(f"gives {call.name}() a pattern within a text", "write FILTER (WHERE …)")


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _of(names: str, bounds: dict[int, int]) -> dict[str, dict[int, int]]:
    return dict.fromkeys(words(names), bounds)


COSTS_OF_PINOT: Final = Dialect(
    patterns=dict.fromkeys(
        words(
            "regexplike regexplikevar regexpextract regexpextractvar regexpreplace regexpreplacevar "
            "textcontains"
        ),
        (1,),
    ),
    texts={
        **{name: {1: _no_pattern} for name in words(_WITH_PATH)},
        "jsonextractindex": {1: _no_pattern, 4: _no_pattern},
        "jsonmatch": {1: _no_pattern, 2: _no_pattern},
        "textmatch": {1: _lucene, 2: _no_pattern},
        "clpmatch": {-1: _few_wildcards},
        "clpencodedvarsmatch": {2: _few_wildcards},
    },
    settings=dict.fromkeys(
        (name for name in ALLOWED if name.startswith(("distinctcount", "percentile"))), _check_sketch
    ),
    bounds={
        **_of("rounddecimal truncate", {1: MOST_EXPONENT}),
        **_of("sumprecision", {1: 10_000, 2: 10_000}),
        **_of(
            """
            distinctcounthll distinctcounthllmv distinctcountrawhll distinctcountrawhllmv distinctcounthllplus
            distinctcounthllplusmv distinctcountrawhllplus distinctcountrawhllplusmv distinctcountull
            distinctcountrawull
            """,
            {1: 20, 2: 32},
        ),
        **_of("distinctcountcpcsketch distinctcountrawcpcsketch", {1: 20}),
        **_of(
            "percentilekll percentilekllmv percentilerawkll percentilerawkllmv percentiletdigest "
            "percentiletdigestmv percentilerawtdigest percentilerawtdigestmv",
            {2: 65_535},
        ),
        **_of("frequentlongssketch frequentstringssketch", {1: MOST_ENTRIES}),
        **_of(
            "avgvalueintegersumtuplesketch distinctcountrawintegersumtuplesketch distinctcounttuplesketch "
            "sumvaluesintegersumtuplesketch",
            {1: MOST_ENTRIES},
        ),
        **_of("histogram", {3: MOST_ENTRIES}),
        **_of("griddisk", {1: 50}),
        **_of("vectorsimilarity", {2: MOST_NEIGHBOURS}),
    },
    growth={
        "levenshteindistance": by(UNKNOWN_LENGTH),
        **dict.fromkeys(("lpad", "rpad"), by_number(1)),
        **dict.fromkeys(
            ("generatedoublearray", "generatefloatarray", "generateintarray", "generatelongarray"), by_range
        ),
        **dict.fromkeys(
            words(
                "generateuniquengrams generateuniquengramsmv prefixes prefixeswithprefix suffixes "
                "suffixeswithsuffix uniquengrams uniquengramsmv"
            ),
            by_number(1),
        ),
        **dict.fromkeys(words("base64encode bytestohex jsonformat tobase64 tojsonmapstr"), by(2)),
        **dict.fromkeys(words("encodeurl urlencode urlencodeformcomponent"), by(3)),
        "arraytostring": by_text(1, 2),
        "concatws": by_separator,
        "regexpreplace": by_text(2),
        "regexpreplacevar": by_text(2),
        "repeat": by_number(-1),
        "replace": by_text(2),
    },
    unquoted=_unquoted,
    canonical=canonical,
)
