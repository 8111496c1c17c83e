"""Check the Spark SQL of `filter` and `transforms`: one expression, with functions from a list.

`pinot_assets.ingest.spark.expression` compiles the expression and checks Spark's own tree of it, too. Here
the text is read without Spark, for the commands that have none.


The lists are the functions of Spark SQL 3.5 to 4.3: those that may be called, and why not the others.

An expression may call every built-in function that makes one value from the values of one row, always the
same one, and touches nothing else. `tests/integration/test_spark_functions.py` compares both lists with
Spark's: a function of a later Spark is on neither, and is refused until somebody puts it on one.

`COSTS_OF_SPARK` says which of them take patterns, or make values longer than those of the row.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from pinot_assets.expressions import costs
from pinot_assets.expressions.completeness import check_whole
from pinot_assets.expressions.syntax import (
    END,
    SPARK,
    ExpressionRefused,
    Token,
    each_of,
    function_refusal,
    read_tokens,
    refuse_reference,
    word_before,
    words,
)

_NAMES: Final = {
    "predicates": "equal_null ilike isnan isnotnull isnull regexp regexp_like rlike",
    "conditions": "coalesce if ifnull nanvl nullif nullifzero nvl nvl2 zeroifnull",
    "numbers": """
        abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees
        e exp expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod
        positive pow power radians rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide
        try_mod try_multiply try_subtract unhex width_bucket
    """,
    "bits": "bit_count bit_get getbit shiftleft shiftright shiftrightunsigned",
    "texts": """
        ascii base64 bit_length btrim char char_length character_length chr collate collation concat_ws
        contains decode elt encode endswith find_in_set format_number format_string from_base32 initcap instr
        is_valid_utf8 jaro_winkler_similarity lcase left len length levenshtein locate lower lpad ltrim
        luhn_check make_valid_utf8 mask octet_length overlay position printf quote regexp_count regexp_extract
        regexp_extract_all regexp_instr regexp_replace regexp_substr repeat replace right rpad rtrim sentences
        soundex space split split_part startswith substr substring substring_index to_base32 to_binary to_char
        to_number to_varchar translate trim try_to_binary try_to_number try_validate_utf8 ucase unbase64 upper
        validate_utf8
    """,
    "times": """
        add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub
        date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime
        from_utc_timestamp hour last_day make_date make_dt_interval make_interval make_time make_timestamp
        make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month monthname months_between next_day
        quarter second time_bucket time_diff time_from_micros time_from_millis time_from_seconds
        time_to_micros time_to_millis time_to_seconds time_trunc timestamp_micros timestamp_millis
        timestamp_nanos timestamp_seconds to_date to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
        to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz
        try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date unix_micros unix_millis
        unix_nanos unix_seconds unix_timestamp weekday weekofyear year
    """,
    "conversions": """
        bigint binary boolean cast date decimal double float int smallint string time timestamp tinyint
    """,
    "hashes": "crc32 hash md5 sha sha1 sha2 xxhash64",
    "URLs": "parse_url try_parse_url try_url_decode url_decode url_encode",
    "arrays": """
        array array_append array_compact array_contains array_distinct array_except array_insert
        array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat
        array_size array_union arrays_overlap arrays_zip flatten get sequence slice sort_array
    """,
    "maps": """
        map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values
        str_to_map
    """,
    "structures": "named_struct struct",
    "arrays, maps and texts": "cardinality concat element_at reverse size try_element_at",
    "functions of functions": """
        aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys
        transform_values zip_with
    """,
    "JSON": "from_json get_json_object json_array_length json_object_keys schema_of_json to_json",
    "CSV": "from_csv schema_of_csv to_csv",
    "XML": "to_xml",
    "variants": """
        is_valid_variant is_variant_null parse_json schema_of_variant to_variant_object try_parse_json
        try_variant_array_append try_variant_get try_variant_insert try_variant_set variant_array_append
        variant_delete variant_get variant_insert variant_set variant_strip_nulls
    """,
    "others": """
        aes_decrypt assert_true bitmap_bit_position bitmap_bucket_number bitmap_count hmac raise_error
        try_aes_decrypt typeof
    """,
    "sketches": """
        approx_top_k_estimate hll_sketch_estimate hll_union kll_sketch_get_n_bigint kll_sketch_get_n_double
        kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
        kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
        kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float theta_difference
        theta_intersection theta_sketch_estimate theta_union tuple_difference_double tuple_difference_integer
        tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_double
        tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer
        tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_double
        tuple_union_integer tuple_union_theta_double tuple_union_theta_integer
    """,
    "vectors": """
        vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
        vector_normalize vector_sum
    """,
    "places": "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
}
ALLOWED: Final = frozenset(name for names in _NAMES.values() for name in names.split())
"""Functions that an expression may call, in lower case."""


def named(*kinds: str) -> frozenset[str]:
    """Return the functions of these kinds that an expression may call."""
    return frozenset(name for kind in kinds for name in _NAMES[kind].split())


OPERATORS: Final = words(
    """
    ! != % & * + - / < << <= <=> <> = == > >= >> >>> ^ and between case div in like not or when | || ~
    """
)
"""Operators: Spark lists them as functions, too, but they are written without a call."""

_REFUSED: Final = {
    "runs code of Java": "java_method reflect try_reflect",
    "can read files or addresses of the network, by an option or a DOCTYPE": """
        from_avro from_protobuf from_xml schema_of_avro schema_of_xml to_avro to_protobuf xpath xpath_boolean
        xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
    """,
    "gives another value each time": """
        aes_encrypt curdate current_date current_time current_timestamp current_timezone localtime
        localtimestamp monotonically_increasing_id now rand randn random randstr shuffle uniform uuid
    """,
    "depends on the machine and the run, not on the row": """
        current_catalog current_database current_path current_schema current_user input_file_block_length
        input_file_block_start input_file_name session_user spark_partition_id user version
    """,
    "makes one value of many rows": """
        any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
        approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
        bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if
        count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric
        hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
        kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max
        max_by mean measure median min min_by mode percentile percentile_approx percentile_cont
        percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
        regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
        theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
        tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
        tuple_union_agg_integer var_pop var_samp variance
    """,
    "makes several rows of one": """
        collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
        python_worker_logs range sql_keywords stack variant_explode variant_explode_outer
    """,
    "looks at other rows": """
        counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window
        window window_time
    """,
}
REFUSED: Final = {name: why for why, names in _REFUSED.items() for name in names.split()}
"""Functions that an expression may not call, each with the reason."""


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
_GIVEN: Final = words(
    """
    abs array coalesce element_at get greatest if ifnull least length map mod named_struct nullif nvl nvl2
    size struct try_element_at
    """
)


def _unquoted(text: str) -> str:
    """The value of a text; Spark reads files with `spark.sql.parser.escapedStringLiterals` off."""
    return text[2:-1] if text[0] in "rR" else _ESCAPE.sub(_escaped, text[1:-1])


def _escaped(match: re.Match[str]) -> str:
    if code := match[1] or match[2]:
        return chr(min(int(code, 16), 0x10FFFF))
    if match[3]:
        return chr(int(match[3], 8))
    return match[0] if match[4] in "%_" else _CONTROLS.get(match[4], match[4])


COSTS_OF_SPARK: Final = costs.Dialect(
    patterns=each_of(
        {
            "regexp rlike regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like": (1,),
            "regexp_replace regexp_substr split": (1,),
            "parse_url try_parse_url": (2,),
            "str_to_map": (1, 2),
        }
    ),
    bounds=each_of({"bround ceil ceiling floor round": {1: costs.MOST_EXPONENT}}),
    growth=each_of(
        {
            _NAMES["functions of functions"]: costs.UNKNOWN_LENGTH,
            "jaro_winkler_similarity levenshtein": costs.UNKNOWN_LENGTH,
            "base64 hex quote to_base32": 2,
            "url_encode": 3,
            "encode": 4,
            "to_xml": 8,
            "to_csv to_json": costs.by_options,
            "format_string printf": costs.by_format,
            "format_number": costs.by_digits,
            "sequence": costs.by_range,
            "concat_ws": costs.by_separator,
            "space": partial(costs.by_number, 0),
            "array_insert array_repeat lpad repeat rpad": partial(costs.by_number, 1),
            "regexp_replace replace": partial(costs.by_text, (2,)),
            "array_join": partial(costs.by_text, (1, 2)),
        }
    ),
    unquoted=_unquoted,
    folds=words("aggregate reduce"),
    numeric=(_GIVEN | named("numbers", "predicates", "conditions", "bits", "conversions"))
    - words("bin conv hex unhex"),
)


_CALLED_BY_GRAMMAR: Final = frozenset(("try_cast", "timestampadd", "timestampdiff"))
"""Written like a call, but not on Spark's list of functions; these compute with values only."""
_INSTEAD: Final = "use functions of Spark SQL that make one value of one row, and always the same value"
_OPERATORS: Final = words(
    """
    all and any as at between both case collate comment day days distinct div else end escape false for from
    hour hours ilike in interval is leading like local microsecond microseconds millisecond milliseconds
    minute minutes month months nanosecond nanoseconds not null or placing precision quarter quarters regexp
    rlike second seconds some then to trailing true week weeks when with without year years zone
    """
)
"""Words that join values, or are a value."""
_TYPES: Final = words(
    """
    array bigint binary boolean byte char character date dec decimal double float int integer interval long
    map numeric r real short smallint string struct time timestamp timestamp_ltz timestamp_ntz tinyint varchar
    variant void x
    """
)
"""Words before a literal or after a name that give its type."""
_BESIDE: Final = _OPERATORS | _TYPES
_BEFORE_PARENTHESIS: Final = words(
    """
    and between case character dec distinct div else escape for from ilike in like not numeric or placing
    regexp rlike then timestamp_ltz timestamp_ntz varchar when
    """
)
"""Words that are not the name of a function, even before a parenthesis."""
_WITH_FROM: Final = frozenset(("extract", "trim", "substring", "substr", "overlay"))
"""Functions whose arguments may be joined by FROM."""
_MOVES: Final = words(
    """
    current_date current_time current_timestamp current_user localtime localtimestamp session_user
    """
)
"""Functions that are called without parentheses."""


def check_spark_expression(text: str) -> None:
    """Refuse a Spark SQL expression with something that is not allowed.

    :param text: one expression, as in SELECT.
    :raises ExpressionRefused: it calls a function that is not on the list, reads another table, refers to the
        environment, is written so that parsers differ, may cost more than its rows justify, or is incomplete.
    """
    refuse_reference(text)
    tokens = [END, *read_tokens(text, SPARK), END, END]
    calls: list[str] = []  # the function of each open parenthesis
    for place in range(1, len(tokens) - 2):
        token, before = tokens[place], tokens[place - 1]
        if token.text == "(" and token.kind == "sign":
            calls.append(_called(tokens, place))
        elif token.text == ")" and token.kind == "sign" and calls:
            calls.pop()
        elif token.text == ":" and not before.is_value and before.text not in (":", ")", "]"):
            # This is no cast (`::`), member of a variant or type of a structure: no value is before it.
            raise ExpressionRefused("has a parameter, which has no value here", "write the value")
        elif token.kind == "word":
            _check_word(tokens, place, calls[-1] if calls else "")
        elif token.is_value and (before.kind in ("number", "quoted") or _closes(before)):
            raise _no_expression(before, token)
    costs.check_costs(tokens, COSTS_OF_SPARK)
    check_whole(tokens[1:-2])


def spark_refusal(name: str) -> ExpressionRefused | None:
    """Return why a function may not be called; None if it may."""
    plain = name.lower() if name.isascii() else ""
    if plain in ALLOWED or plain in _CALLED_BY_GRAMMAR:
        return None
    return function_refusal(name, REFUSED.get(plain), ALLOWED, _INSTEAD)


def reads_table(what: str) -> ExpressionRefused:
    """Return the refusal of a query inside of an expression."""
    return ExpressionRefused(
        f"has {what}, which reads another table",
        "use the columns of the file; put a column's name into backquotes",
    )


def _called(tokens: list[Token], place: int) -> str:
    """Return the function that a parenthesis belongs to; "" for a parenthesis around values."""
    name, before = word_before(tokens, place), tokens[place - 2]
    if name is None or name.name in _BEFORE_PARENTHESIS:
        return ""
    if name.name in ("all", "any", "some") and before.name in ("like", "ilike", "rlike", "regexp"):
        return ""
    if (refused := spark_refusal(name.text)) is not None:
        raise refused
    return name.name


def _check_word(tokens: list[Token], place: int, call: str) -> None:
    token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
    if token.name in ("select", "using"):
        raise reads_table(token.text.upper())
    if before.text == ".":
        return  # a member of a structure
    if token.name in _MOVES and after.text not in ("(", "."):
        raise ExpressionRefused(
            f"uses {token.text}, which {REFUSED[token.name]}", "put the name of a column into backquotes"
        )
    # After the keyword FROM or TABLE a value begins; after a column of that name, an operator does.
    is_operand = (after.is_value and after.name not in _OPERATORS) or after.text == "("
    if token.name in ("from", "table", "values") and is_operand:
        joins = before.name == "distinct" or (call in _WITH_FROM and before.is_value)
        if token.name != "from" or not joins:
            raise reads_table(token.text.upper())
        return
    if (before.is_value or _closes(before)) and token.name not in _BESIDE and before.name not in _BESIDE:
        raise _no_expression(before, token)
    if after.is_value and after.kind != "word" and token.name not in _BESIDE:
        raise _no_expression(token, after)


def _closes(token: Token) -> bool:
    """Whether a value ends with this token that is no single word, text or number."""
    return token.kind == "sign" and token.text in (")", "]")


def _no_expression(one: Token, other: Token) -> ExpressionRefused:
    return ExpressionRefused(
        f"is not an expression: nothing joins {one.text[:40]} and {other.text[:40]}",
        "write one expression, as in SELECT",
    )
