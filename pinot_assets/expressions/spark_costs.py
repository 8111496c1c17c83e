"""Which functions of Spark SQL take patterns, or make values longer than those of the row."""

from __future__ import annotations

import re
from typing import Final

from pinot_assets.expressions.costs import (
    MOST_EXPONENT,
    UNKNOWN_LENGTH,
    Dialect,
    by,
    by_digits,
    by_format,
    by_number,
    by_options,
    by_range,
    by_separator,
    by_text,
)
from pinot_assets.expressions.spark_names import named
from pinot_assets.expressions.tokens import words

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_CONTROLS: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "0": "\0",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}
_LAMBDAS: Final = words(
    """
    array_sort exists filter forall map_filter map_zip_with transform transform_keys transform_values zip_with
    """
)
_GIVEN: Final = (
    *("abs", "array", "coalesce", "element_at", "get", "greatest", "if", "ifnull", "least", "length", "mod"),
    *("map", "named_struct", "nullif", "nvl", "nvl2", "size", "struct", "try_element_at"),
)


def _unquoted(text: str) -> str:
    """As the sessions read it that read files (`spark.sql.parser.escapedStringLiterals` is off)."""
    if text[0] in "rR":
        return text[2:-1]
    return _ESCAPE.sub(_escaped, text[1:-1])


def _escaped(found: re.Match[str]) -> str:
    if code := found[1] or found[2]:
        return chr(min(int(code, 16), 0x10FFFF))
    if found[3]:
        return chr(int(found[3], 8))
    return _CONTROLS.get(found[4], found[4])


COSTS_OF_SPARK: Final = Dialect(
    patterns={
        **dict.fromkeys(
            words(
                """
                regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
                regexp_substr split
                """
            ),
            (1,),
        ),
        "parse_url": (2,),
        "regexp": (1,),
        "rlike": (1,),
        "str_to_map": (1, 2),
        "try_parse_url": (2,),
    },
    bounds={name: {1: MOST_EXPONENT} for name in ("bround", "ceil", "ceiling", "floor", "round")},
    growth={
        **dict.fromkeys(_LAMBDAS, by(UNKNOWN_LENGTH)),
        **dict.fromkeys(("aggregate", "reduce"), by(UNKNOWN_LENGTH)),
        **dict.fromkeys(("jaro_winkler_similarity", "levenshtein"), by(UNKNOWN_LENGTH)),
        **dict.fromkeys(("base64", "hex", "quote", "to_base32"), by(2)),
        **dict.fromkeys(("to_csv", "to_json"), by_options(2)),
        **dict.fromkeys(("format_string", "printf"), by_format),
        **dict.fromkeys(("array_repeat", "lpad", "repeat", "rpad"), by_number(1)),
        "array_insert": by_number(1),
        "array_join": by_text(1, 2),
        "concat_ws": by_separator,
        "encode": by(4),
        "format_number": by_digits,
        "regexp_replace": by_text(2),
        "replace": by_text(2),
        "sequence": by_range,
        "space": by_number(0),
        "to_xml": by(8),
        "url_encode": by(3),
    },
    unquoted=_unquoted,
    folds=words("aggregate reduce"),
    numeric=(frozenset(_GIVEN) | named("numbers", "predicates", "conditions", "bits", "conversions"))
    - words("bin conv hex unhex"),
)
