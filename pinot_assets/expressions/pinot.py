"""Check the SQL of an assertion for Pinot: one SELECT from one table, with functions from a list.

A server that is asked by gRPC runs Groovy even if the brokers forbid it, and LOOKUP reads any of its tables.
So the text is read here before it is sent, word by word as Calcite reads it. What the SELECT means,
`pinot_assets.table_spec.blocks.assertion_sql` finds out.

The lists are the functions of Pinot 0.11 to 1.6: those that an assertion may call, and why not the others.

Pinot ignores underscores and case in the name of a function, so the names here are
in lower case and without underscores. Source: `FunctionRegistry`, `TransformFunctionType`, `FilterKind` and
`AggregationFunctionType` of Pinot 0.11.0 and 1.5.1, and the bit functions of 1.6.

`COSTS_OF_PINOT` says which of them take patterns, or make values and sketches as large as a number says.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from pinot_assets.expressions import costs
from pinot_assets.expressions.completeness import CLAUSES, check_whole
from pinot_assets.expressions.regex_cost import check_wildcards
from pinot_assets.expressions.syntax import (
    END,
    PINOT,
    ExpressionRefused,
    FunctionCall,
    Token,
    each_of,
    function_refusal,
    literal_number,
    literal_text,
    read_tokens,
    refuse_reference,
    without_comments,
    word_before,
    words,
)

_NAMES: Final = {
    "aggregations": """
        anyvalue argmax argmin arrayagg avg avgmv avgvalueintegersumtuplesketch booland boolor count countmv
        covarpop covarsamp distinct distinctavg distinctavgmv distinctcount distinctcountbitmap
        distinctcountbitmapmv distinctcountcpcsketch distinctcounthll distinctcounthllmv distinctcounthllplus
        distinctcounthllplusmv distinctcountmv distinctcountoffheap distinctcountrawcpcsketch
        distinctcountrawhll distinctcountrawhllmv distinctcountrawhllplus distinctcountrawhllplusmv
        distinctcountrawintegersumtuplesketch distinctcountrawthetasketch distinctcountrawull
        distinctcountsmarthll distinctcountsmarthllplus distinctcountsmartull distinctcountthetasketch
        distinctcounttuplesketch distinctcountull distinctsum distinctsummv exprmax exprmin fasthll
        firstwithtime fourthmoment frequentlongssketch frequentstringssketch funnelcompletecount funnelcount
        funneleventsfunctioneval funnelmatchstep funnelmaxstep funnelstepdurationstats histogram kurtosis
        lastwithtime listagg max maxlong maxmv maxstring min minlong minmaxrange minmaxrangemv minmv minstring
        mode percentile percentileest percentileestmv percentilekll percentilekllmv percentilemv
        percentilerawest percentilerawestmv percentilerawkll percentilerawkllmv percentilerawtdigest
        percentilerawtdigestmv percentilesmarttdigest percentiletdigest percentiletdigestmv
        segmentpartitioneddistinctcount skewness stddevpop stddevsamp stunion sum sumarraydouble sumarraylong
        sumint sumlong summv sumprecision sumvaluesintegersumtuplesketch varpop varsamp
    """,
    "conditions": """
        and between case casewhen cast clpencodedvarsmatch clpmatch coalesce equals greaterthan
        greaterthanorequal in isdistinctfrom isfalse isnotdistinctfrom isnotfalse isnotnull isnottrue isnull
        istrue lessthan lessthanorequal like not notequals notin nullif or regexplike regexplikevar
        textcontains textmatch
    """,
    "numbers": """
        bitand bitextract bitmask bitnot bitor bitshiftleft bitshiftright bitshiftrightunsigned bitxor abs
        acos add asin atan atan2 ceil ceiling cos cosh cot degrees div divide exp floor gcd greatest hypot
        ifnotfinite intdiv intdivorzero isfinite isinfinite isnan lcm least ln log log10 log2 minus mod
        moduloorzero mult negate plus positivemodulo pow power radians round rounddecimal roundmv sign sin
        sinh sqrt sub tan tanh times truncate
    """,
    "texts": """
        chr clpdecode codepoint concat concatws contains endswith generateuniquengrams generateuniquengramsmv
        initcap left leftsubstr length levenshteindistance lower lpad ltrim normalize overlay position
        prefixes prefixeswithprefix regexpextract regexpextractvar regexpreplace regexpreplacevar remove
        repeat replace reverse right rightsubstr rpad rtrim split splitpart startswith strcmp stringtoarray
        strpos strrpos substr substring suffixes suffixeswithsuffix trim uniquengrams uniquengramsmv upper
    """,
    "times": """
        ago agomv dateadd dateaddmv datebin datediff datediffmv datediffmvreverse datetimeconvert datetrunc
        datetruncmv day daymv dayofmonth dayofmonthmv dayofweek dayofweekmv dayofyear dayofyearmv dow dowmv
        doy doymv extract fromdatetime fromdatetimemv fromepochdays fromepochdaysbucket fromepochdaysbucketmv
        fromepochdaysmv fromepochhours fromepochhoursbucket fromepochhoursbucketmv fromepochhoursmv
        fromepochminutes fromepochminutesbucket fromepochminutesbucketmv fromepochminutesmv fromepochseconds
        fromepochsecondsbucket fromepochsecondsbucketmv fromepochsecondsmv fromiso8601 fromiso8601mv
        fromtimestamp fromtimestampmv hour hourmv millisecond millisecondmv minute minutemv month monthmv
        monthofyear monthofyearmv now quarter quartermv second secondmv timeconvert timestampadd
        timestampaddmv timestampdiff timestampdiffmv timestampdiffmvreverse timezonehour timezonehourmv
        timezoneminute timezoneminutemv todatetime todatetimemv toepochdays toepochdaysbucket
        toepochdaysbucketmv toepochdaysmv toepochdaysrounded toepochdaysroundedmv toepochhours
        toepochhoursbucket toepochhoursbucketmv toepochhoursmv toepochhoursrounded toepochhoursroundedmv
        toepochminutes toepochminutesbucket toepochminutesbucketmv toepochminutesmv toepochminutesrounded
        toepochminutesroundedmv toepochseconds toepochsecondsbucket toepochsecondsbucketmv toepochsecondsmv
        toepochsecondsrounded toepochsecondsroundedmv toiso8601 toiso8601mv totimestamp totimestampmv week
        weekmv weekofyear weekofyearmv year yearmv yearofweek yearofweekmv yow yowmv
    """,
    "JSON": """
        isjson jsonextractindex jsonextractkey jsonextractscalar jsonformat jsonkeyvaluearraytomap jsonmatch
        jsonpath jsonpatharray jsonpatharraydefaultempty jsonpathdouble jsonpathexists jsonpathlong
        jsonpathstring jsonstringtoarray jsonstringtolistormap jsonstringtomap tojsonmapstr
    """,
    "arrays and vectors": """
        array arrayaverage arrayconcatdouble arrayconcatfloat arrayconcatint arrayconcatlong arrayconcatstring
        arraycontainsint arraycontainsstring arraydistinctint arraydistinctstring arrayelementatdouble
        arrayelementatfloat arrayelementatint arrayelementatlong arrayelementatstring arrayindexesofdouble
        arrayindexesoffloat arrayindexesofint arrayindexesoflong arrayindexesofstring arrayindexofint
        arrayindexofstring arraylength arraymax arraymin arraypushbackdouble arraypushbackfloat
        arraypushbackint arraypushbacklong arraypushbackstring arraypushfrontdouble arraypushfrontfloat
        arraypushfrontint arraypushfrontlong arraypushfrontstring arrayremoveint arrayremovestring
        arrayreverseint arrayreversestring arraysliceint arrayslicestring arraysortint arraysortstring
        arraysoverlap arraysum arraysumint arraysumlong arraytostring arrayunionint arrayunionstring
        arrayvalueconstructor cardinality cosinedistance dotproduct euclideandistance generatedoublearray
        generatefloatarray generateintarray generatelongarray hammingdistance innerproduct intersectindices
        item l1distance l2distance mapvalue valuein vectordims vectornorm vectorsimilarity
    """,
    "hashes and bytes": """
        adler32 base64decode base64encode bigdecimaltobytes bytestobigdecimal bytestohex byteswapint
        byteswaplong cityhash128 cityhash32 cityhash64 crc32 crc32c fromascii frombase64 frombytes fromutf8
        fromuuidbytes hexdecimaltolong hextobytes longtohexdecimal md2 md5 murmurhash2 murmurhash2bit64
        murmurhash2utf8 murmurhash3bit128 murmurhash3bit32 murmurhash3bit64 murmurhash3x64bit128
        murmurhash3x64bit32 murmurhash3x64bit64 sha sha224 sha256 sha512 toascii tobase64 tobytes toutf8
        touuidbytes
    """,
    "URLs and addresses": """
        cutfragment cutquerystring cutquerystringandfragment cuttofirstsignificantsubdomain
        cuttofirstsignificantsubdomainwithwww cuturlparameter cuturlparameters cutwww decodeurl encodeurl
        extracturlparameter extracturlparameternames extracturlparameters ipprefix ipsubnetmax ipsubnetmin
        issubnetof urldecode urldecodeformcomponent urldomain urldomainwithoutwww urlencode
        urlencodeformcomponent urlfirstsignificantsubdomain urlfragment urlhierarchy urlnetloc urlpath
        urlpathhierarchy urlpathwithquery urlport urlprotocol urlquerystring urlquerystringandfragment
        urltopleveldomain
    """,
    "geometry and places": """
        decodegeohash decodegeohashlat decodegeohashlatitude decodegeohashlon decodegeohashlongitude
        encodegeohash geotoh3 griddisk griddistance starea stasbinary stasgeojson stastext stcontains
        stdistance stequals stgeogfromgeojson stgeogfromtext stgeogfromwkb stgeometrytype stgeomfromgeojson
        stgeomfromtext stgeomfromwkb stpoint stpolygon stwithin togeometry tosphericalgeography
    """,
}
ALLOWED: Final = frozenset(name for names in _NAMES.values() for name in names.split())
"""Functions that an assertion may call."""
PERCENTILE: Final = re.compile(r"percentile(?:est|tdigest|kll|rawest|rawtdigest|rawkll)?[0-9]{1,2}(?:mv)?")
"""Functions whose name contains the percentile: `PERCENTILE95`, `PERCENTILETDIGEST99MV`."""

_REFUSED: Final = {
    "runs code on Pinot's servers": "groovy",
    "reads another table": "lookup insubquery inpartitionedsubquery",
    "makes or uses the values of another query": "idset inidset",
    "sets options of the query": "option set",
    "makes a server wait": "sleep",
    "gives another value each time": "rand",
    "makes as many values of one as its windows overlap": "datetimeconvertwindowhop",
    "belongs to Pinot itself, for the inside of a query": """
        scalar range reqid starttime endtime brokerid cid queryengine stageid workerid timeseriesbucket
        timeseriesaggregate pinotchildaggexprmax pinotchildaggexprmin pinotparentaggexprmax
        pinotparentaggexprmin
    """,
}
REFUSED: Final = {name: why for why, names in _REFUSED.items() for name in names.split()}
"""Functions that an assertion may not call, each with the reason."""


def canonical(name: str) -> str:
    """Return a function's name as Pinot looks it up. Only for ASCII, where no two letters are confused."""
    return name.replace("_", "").lower()


MOST_ENTRIES: Final = 1 << 20
"""Limit of the entries of a sketch or a histogram."""
MOST_NEIGHBOURS: Final = 10_000
"""Limit of the vectors that a search for similar ones may ask a segment for."""

_PATTERN_WITHIN: Final = re.compile(r"=~|regexp_?like|\blike\b", re.IGNORECASE)
_SLASH: Final = re.compile(r'\\.|"(?:\\.|[^"\\])*"|(/)', re.DOTALL)
"""A slash that is neither escaped nor in quotes: Lucene reads what is between two of them as a pattern."""


def _no_pattern(text: str) -> None:
    """Refuse a pattern in a JSON path, or in another argument of JSON_MATCH or TEXT_MATCH."""
    if _PATTERN_WITHIN.search(text):
        raise ExpressionRefused("holds a pattern", "write REGEXP_LIKE() without them")


_few_wildcards: Final = partial(check_wildcards, sign="*")


def _lucene(text: str) -> None:
    """Refuse patterns, and too many wildcards, in a query of TEXT_MATCH."""
    if any(match[1] for match in _SLASH.finditer(text)):
        raise ExpressionRefused("has a pattern between slashes", "write REGEXP_LIKE(), or \\/ for a slash")
    _few_wildcards(text)


def _check_sketch(call: FunctionCall) -> None:
    """Refuse parameters of a sketch (`'nominalEntries=4096'`) that ask for much or are no literals."""
    for argument in call.arguments[1:]:
        text = literal_text(argument)
        if text is None and literal_number(argument) is None:
            raise ExpressionRefused(f"gives {call.name}() a setting that is not a literal", "write its value")
        if any(float(number) > MOST_ENTRIES for number in re.findall("[0-9]+", text or "")):
            raise ExpressionRefused(
                f"asks {call.name}() for more than {MOST_ENTRIES:,} entries", "write a smaller number"
            )
        if text is not None and _PATTERN_WITHIN.search(text):
            raise ExpressionRefused(f"gives {call.name}() a pattern within a text", "write FILTER (WHERE …)")


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


COSTS_OF_PINOT: Final = costs.Dialect(
    patterns=each_of(
        {
            "regexplike regexplikevar regexpextract regexpextractvar regexpreplace": (1,),
            "regexpreplacevar textcontains": (1,),
        }
    ),
    texts=each_of(
        {
            "jsonextractkey jsonextractscalar jsonpath jsonpatharray": {1: _no_pattern},
            "jsonpatharraydefaultempty jsonpathdouble jsonpathexists": {1: _no_pattern},
            "jsonpathlong jsonpathstring": {1: _no_pattern},
            "jsonextractindex": {1: _no_pattern, 4: _no_pattern},
            "jsonmatch": {1: _no_pattern, 2: _no_pattern},
            "textmatch": {1: _lucene, 2: _no_pattern},
            "clpmatch": {-1: _few_wildcards},
            "clpencodedvarsmatch": {2: _few_wildcards},
        }
    ),
    settings=dict.fromkeys(
        (name for name in ALLOWED if name.startswith(("distinctcount", "percentile"))), _check_sketch
    ),
    bounds=each_of(
        {
            "rounddecimal truncate": {1: costs.MOST_EXPONENT},
            "sumprecision": {1: 10_000, 2: 10_000},
            "distinctcounthll distinctcounthllmv distinctcounthllplus distinctcounthllplusmv": {1: 20, 2: 32},
            "distinctcountrawhll distinctcountrawhllmv distinctcountrawhllplus": {1: 20, 2: 32},
            "distinctcountrawhllplusmv distinctcountull distinctcountrawull": {1: 20, 2: 32},
            "distinctcountcpcsketch distinctcountrawcpcsketch": {1: 20},
            "percentilekll percentilekllmv percentilerawkll percentilerawkllmv": {2: 65_535},
            "percentiletdigest percentiletdigestmv": {2: 65_535},
            "percentilerawtdigest percentilerawtdigestmv": {2: 65_535},
            "frequentlongssketch frequentstringssketch": {1: MOST_ENTRIES},
            "avgvalueintegersumtuplesketch distinctcountrawintegersumtuplesketch": {1: MOST_ENTRIES},
            "distinctcounttuplesketch sumvaluesintegersumtuplesketch": {1: MOST_ENTRIES},
            "histogram": {3: MOST_ENTRIES},
            "griddisk": {1: 50},
            "vectorsimilarity": {2: MOST_NEIGHBOURS},
        }
    ),
    growth=each_of(
        {
            "levenshteindistance": costs.UNKNOWN_LENGTH,
            "base64encode bytestohex jsonformat tobase64 tojsonmapstr": 2,
            "encodeurl urlencode urlencodeformcomponent": 3,
            "generatedoublearray generatefloatarray generateintarray generatelongarray": costs.by_range,
            "concatws": costs.by_separator,
            "repeat": partial(costs.by_number, -1),
            "lpad rpad generateuniquengrams generateuniquengramsmv": partial(costs.by_number, 1),
            "prefixes prefixeswithprefix suffixes suffixeswithsuffix": partial(costs.by_number, 1),
            "uniquengrams uniquengramsmv": partial(costs.by_number, 1),
            "regexpreplace regexpreplacevar replace": partial(costs.by_text, (2,)),
            "arraytostring": partial(costs.by_text, (1, 2)),
        }
    ),
    unquoted=_unquoted,
    canonical=canonical,
)


_INSTEAD: Final = "use functions that Pinot has for one row, and its aggregations"
_CLAUSES: Final = frozenset(("where", "group", "having", "order", "limit", "offset"))
"""Words that may follow the table's name."""
_BEFORE_PARENTHESIS: Final = words(
    """
    and between by case char character decimal distinct else escape for having in like not numeric or select
    then varchar when where
    """
)
"""Words that are not the name of a function, even before a parenthesis."""
_BEFORE_TEXT: Final = _BEFORE_PARENTHESIS | {"as", "date", "interval", "time", "timestamp"}
"""Words that may touch a text; after any other word, Calcite reads another kind of literal (`X'67'`)."""
_OPTIONS: Final = re.compile(r"option\s*\(", re.IGNORECASE)
"""Options of a query: Pinot 0.11 finds them anywhere in the text and removes them
(`CalciteSqlParser.extractOptionsFromSql`)."""
_WITHOUT_PARENTHESES: Final = words(
    """
    current_catalog current_date current_default_transform_group current_path current_role current_row
    current_schema current_time current_timestamp current_user localtime localtimestamp session_user
    system_user user
    """
)
"""Words that Calcite reads as functions, and that are called without parentheses."""


def plain_question(text: str) -> str:
    """Return the text of an assertion as it is sent: without comments or a semicolon at its end.

    :raises ExpressionRefused: it refers to the environment, is too long, or parsers differ about a comment.
    """
    refuse_reference(text)
    return without_comments(text, PINOT).strip().rstrip(";").rstrip()


def check_question(text: str) -> None:
    """Refuse the SQL of an assertion if it asks for something that is not allowed.

    :param text: a SELECT, as `plain_question` returns it.
    :raises ExpressionRefused: it calls a function that is not on the list, reads another table than the one
        after FROM, refers to the environment, is written so that parsers differ, may cost more than its
        rows justify, or is not complete.
    """
    refuse_reference(text)
    tokens = [END, *read_tokens(text, PINOT), END, END]
    if _OPTIONS.search(text):
        raise ExpressionRefused("has option( in a text, which Pinot also reads as an option of the query")
    if tokens[1].name != "select":
        raise ExpressionRefused("is not one SELECT")
    calls: list[str] = []  # the function of each open parenthesis
    has_table = False
    for place in range(1, len(tokens) - 2):
        token = tokens[place]
        if token.name == "from" and not (calls and calls[-1] in ("extract", "trim", "substring", "overlay")):
            name, after = tokens[place + 1 : place + 3]
            # In a join, more follows the name.
            is_table = name.kind in ("word", "quoted") and (after is END or after.name in _CLAUSES)
            if has_table or calls or not is_table:
                raise ExpressionRefused("does not read one table by its name")
            has_table = True
        elif token.text == ";" and token.kind == "sign":
            raise ExpressionRefused("has a ;, after which another statement could follow", "remove it")
        elif token.text == "(" and token.kind == "sign":
            calls.append(_called(tokens, place))
        elif token.text == ")" and token.kind == "sign" and calls:
            calls.pop()
        elif token.kind == "word":
            _check_word(tokens, place)
    costs.check_costs(tokens, COSTS_OF_PINOT)
    check_whole(tokens[1:-2], CLAUSES)


def pinot_refusal(name: str) -> ExpressionRefused | None:
    """Return why a function may not be called; None if it may."""
    plain = canonical(name) if name.isascii() else ""
    if plain in ALLOWED or PERCENTILE.fullmatch(plain):
        return None
    return function_refusal(name, REFUSED.get(plain), ALLOWED, _INSTEAD)


def _called(tokens: list[Token], place: int) -> str:
    """Return the function that a parenthesis belongs to; "" for a parenthesis around values."""
    name = word_before(tokens, place)
    # A FROM here belongs to TRIM or EXTRACT; check_question has checked every other one.
    if name is None or name.name == "from" or name.name in _BEFORE_PARENTHESIS:
        return ""
    if name.name == "filter" and tokens[place + 1].name == "where":
        return ""
    if (refused := pinot_refusal(name.text)) is not None:
        raise refused
    return canonical(name.name)


def _check_word(tokens: list[Token], place: int) -> None:
    token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
    touches = after.start == token.start + len(token.text)
    if after.kind in ("text", "quoted") and touches and token.name not in _BEFORE_TEXT:
        raise ExpressionRefused(
            f"has {token.text} right before a quote, which spells a text or a name in another way"
        )
    if "." in (before.text, after.text):
        return
    if (token.name == "select" and place > 1) or token.name in ("table", "values"):
        raise ExpressionRefused("has a query in a query")
    if token.name in _WITHOUT_PARENTHESES and after.text != "(":
        raise ExpressionRefused(
            f"calls {token.text}, which Pinot reads as a function",
            f'for a column of that name, write "{token.text}"',
        )
