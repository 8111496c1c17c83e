"""Which functions of Pinot take patterns, or make values and sketches as large as a number says."""

from __future__ import annotations

from typing import Final

from pinot_assets.expressions.costs import (
    MOST_EXPONENT,
    UNKNOWN_LENGTH,
    Dialect,
    by,
    by_number,
    by_range,
    by_text,
)
from pinot_assets.expressions.pinot_names import canonical
from pinot_assets.expressions.tokens import words

MOST_ENTRIES: Final = 1 << 20
"""Of a sketch or a histogram."""


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _of(names: str, bounds: dict[int, int]) -> dict[str, dict[int, int]]:
    return dict.fromkeys(words(names), bounds)


COSTS_OF_PINOT: Final = Dialect(
    patterns=dict.fromkeys(
        words("regexplike regexplikevar regexpextract regexpextractvar regexpreplace regexpreplacevar"), (1,)
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
        **_of("distinctcounttuplesketch", {1: MOST_ENTRIES}),
        **_of("histogram", {3: MOST_ENTRIES}),
        **_of("griddisk", {1: 50}),
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
        "arraytostring": by_text(1),
        "regexpreplace": by_text(2),
        "regexpreplacevar": by_text(2),
        "repeat": by_number(-1),
        "replace": by_text(2),
    },
    unquoted=_unquoted,
    canonical=canonical,
)
