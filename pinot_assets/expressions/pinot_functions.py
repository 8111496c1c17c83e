"""The functions of Pinot 0.11 to 1.6 that an assertion may call, and why not the others.

Pinot finds a function by its name without underscores, whatever the case of its letters; so these names are
in lower case and without underscores. Source: `FunctionRegistry`, `TransformFunctionType`, `FilterKind` and
`AggregationFunctionType` of Pinot 0.11.0 and 1.5.1, and the bit functions of 1.6.

`COSTS_OF_PINOT` says which of them take patterns, or make values and sketches as large as a number says.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from pinot_assets.expressions.costs import (
    MOST_EXPONENT,
    UNKNOWN_LENGTH,
    Dialect,
    by_number,
    by_range,
    by_separator,
    by_text,
)
from pinot_assets.expressions.regex_cost import check_wildcards
from pinot_assets.expressions.syntax import ExpressionRefused, FunctionCall, number_of, text_of, words

_NAMES: Final = {
    "aggregations": """
        anyvalue argmax argmin arrayagg avg avgmv avgvalueintegersumtuplesketch booland boolor count
        countmv covarpop covarsamp distinct distinctavg distinctavgmv distinctcount distinctcountbitmap
        distinctcountbitmapmv distinctcountcpcsketch distinctcounthll distinctcounthllmv
        distinctcounthllplus distinctcounthllplusmv distinctcountmv distinctcountoffheap
        distinctcountrawcpcsketch distinctcountrawhll distinctcountrawhllmv distinctcountrawhllplus
        distinctcountrawhllplusmv distinctcountrawintegersumtuplesketch distinctcountrawthetasketch
        distinctcountrawull distinctcountsmarthll distinctcountsmarthllplus distinctcountsmartull
        distinctcountthetasketch distinctcounttuplesketch distinctcountull distinctsum distinctsummv
        exprmax exprmin fasthll firstwithtime fourthmoment frequentlongssketch frequentstringssketch
        funnelcompletecount funnelcount funneleventsfunctioneval funnelmatchstep funnelmaxstep
        funnelstepdurationstats histogram kurtosis lastwithtime listagg max maxlong maxmv maxstring min
        minlong minmaxrange minmaxrangemv minmv minstring mode percentile percentileest percentileestmv
        percentilekll percentilekllmv percentilemv percentilerawest percentilerawestmv percentilerawkll
        percentilerawkllmv percentilerawtdigest percentilerawtdigestmv percentilesmarttdigest
        percentiletdigest percentiletdigestmv segmentpartitioneddistinctcount skewness stddevpop
        stddevsamp stunion sum sumarraydouble sumarraylong sumint sumlong summv sumprecision
        sumvaluesintegersumtuplesketch varpop varsamp
    """,
    "conditions": """
        and between case casewhen cast clpencodedvarsmatch clpmatch coalesce equals greaterthan
        greaterthanorequal in isdistinctfrom isfalse isnotdistinctfrom isnotfalse isnotnull isnottrue
        isnull istrue lessthan lessthanorequal like not notequals notin nullif or regexplike
        regexplikevar textcontains textmatch
    """,
    "numbers": """
        bitand bitextract bitmask bitnot bitor bitshiftleft bitshiftright bitshiftrightunsigned bitxor
        abs acos add asin atan atan2 ceil ceiling cos cosh cot degrees div divide exp floor gcd greatest
        hypot ifnotfinite intdiv intdivorzero isfinite isinfinite isnan lcm least ln log log10 log2
        minus mod moduloorzero mult negate plus positivemodulo pow power radians round rounddecimal
        roundmv sign sin sinh sqrt sub tan tanh times truncate
    """,
    "texts": """
        chr clpdecode codepoint concat concatws contains endswith generateuniquengrams
        generateuniquengramsmv initcap left leftsubstr length levenshteindistance lower lpad ltrim
        normalize overlay position prefixes prefixeswithprefix regexpextract regexpextractvar regexpreplace
        regexpreplacevar remove repeat replace reverse right rightsubstr rpad rtrim split splitpart
        startswith strcmp stringtoarray strpos strrpos substr substring suffixes suffixeswithsuffix trim
        uniquengrams uniquengramsmv upper
    """,
    "times": """
        ago agomv dateadd dateaddmv datebin datediff datediffmv datediffmvreverse datetimeconvert
        datetrunc datetruncmv day daymv dayofmonth dayofmonthmv dayofweek
        dayofweekmv dayofyear dayofyearmv dow dowmv doy doymv extract fromdatetime fromdatetimemv
        fromepochdays fromepochdaysbucket fromepochdaysbucketmv fromepochdaysmv fromepochhours
        fromepochhoursbucket fromepochhoursbucketmv fromepochhoursmv fromepochminutes
        fromepochminutesbucket fromepochminutesbucketmv fromepochminutesmv fromepochseconds
        fromepochsecondsbucket fromepochsecondsbucketmv fromepochsecondsmv fromiso8601 fromiso8601mv
        fromtimestamp fromtimestampmv hour hourmv millisecond millisecondmv minute minutemv month
        monthmv monthofyear monthofyearmv now quarter quartermv second secondmv timeconvert timestampadd
        timestampaddmv timestampdiff timestampdiffmv timestampdiffmvreverse timezonehour timezonehourmv
        timezoneminute timezoneminutemv todatetime todatetimemv toepochdays toepochdaysbucket
        toepochdaysbucketmv toepochdaysmv toepochdaysrounded toepochdaysroundedmv toepochhours
        toepochhoursbucket toepochhoursbucketmv toepochhoursmv toepochhoursrounded toepochhoursroundedmv
        toepochminutes toepochminutesbucket toepochminutesbucketmv toepochminutesmv
        toepochminutesrounded toepochminutesroundedmv toepochseconds toepochsecondsbucket
        toepochsecondsbucketmv toepochsecondsmv toepochsecondsrounded toepochsecondsroundedmv toiso8601
        toiso8601mv totimestamp totimestampmv week weekmv weekofyear weekofyearmv year yearmv yearofweek
        yearofweekmv yow yowmv
    """,
    "JSON": """
        isjson jsonextractindex jsonextractkey jsonextractscalar jsonformat jsonkeyvaluearraytomap
        jsonmatch jsonpath jsonpatharray jsonpatharraydefaultempty jsonpathdouble jsonpathexists
        jsonpathlong jsonpathstring jsonstringtoarray jsonstringtolistormap jsonstringtomap tojsonmapstr
    """,
    "arrays and vectors": """
        array arrayaverage arrayconcatdouble arrayconcatfloat arrayconcatint arrayconcatlong
        arrayconcatstring arraycontainsint arraycontainsstring arraydistinctint arraydistinctstring
        arrayelementatdouble arrayelementatfloat arrayelementatint arrayelementatlong
        arrayelementatstring arrayindexesofdouble arrayindexesoffloat arrayindexesofint
        arrayindexesoflong arrayindexesofstring arrayindexofint arrayindexofstring arraylength arraymax
        arraymin arraypushbackdouble arraypushbackfloat arraypushbackint arraypushbacklong
        arraypushbackstring arraypushfrontdouble arraypushfrontfloat arraypushfrontint
        arraypushfrontlong arraypushfrontstring arrayremoveint arrayremovestring arrayreverseint
        arrayreversestring arraysliceint arrayslicestring arraysortint arraysortstring arraysoverlap
        arraysum arraysumint arraysumlong arraytostring arrayunionint arrayunionstring
        arrayvalueconstructor cardinality cosinedistance dotproduct euclideandistance
        generatedoublearray generatefloatarray generateintarray generatelongarray hammingdistance
        innerproduct intersectindices item l1distance l2distance mapvalue valuein vectordims vectornorm
        vectorsimilarity
    """,
    "hashes and bytes": """
        adler32 base64decode base64encode bigdecimaltobytes bytestobigdecimal bytestohex byteswapint
        byteswaplong cityhash128 cityhash32 cityhash64 crc32 crc32c fromascii frombase64 frombytes
        fromutf8 fromuuidbytes hexdecimaltolong hextobytes longtohexdecimal md2 md5 murmurhash2
        murmurhash2bit64 murmurhash2utf8 murmurhash3bit128 murmurhash3bit32 murmurhash3bit64
        murmurhash3x64bit128 murmurhash3x64bit32 murmurhash3x64bit64 sha sha224 sha256 sha512 toascii
        tobase64 tobytes toutf8 touuidbytes
    """,
    "URLs and addresses": """
        cutfragment cutquerystring cutquerystringandfragment cuttofirstsignificantsubdomain
        cuttofirstsignificantsubdomainwithwww cuturlparameter cuturlparameters cutwww decodeurl
        encodeurl extracturlparameter extracturlparameternames extracturlparameters ipprefix ipsubnetmax
        ipsubnetmin issubnetof urldecode urldecodeformcomponent urldomain urldomainwithoutwww urlencode
        urlencodeformcomponent urlfirstsignificantsubdomain urlfragment urlhierarchy urlnetloc urlpath
        urlpathhierarchy urlpathwithquery urlport urlprotocol urlquerystring urlquerystringandfragment
        urltopleveldomain
    """,
    "geometry and places": """
        decodegeohash decodegeohashlat decodegeohashlatitude decodegeohashlon decodegeohashlongitude
        encodegeohash geotoh3 griddisk griddistance starea stasbinary stasgeojson stastext stcontains
        stdistance stequals stgeogfromgeojson stgeogfromtext stgeogfromwkb stgeometrytype
        stgeomfromgeojson stgeomfromtext stgeomfromwkb stpoint stpolygon stwithin togeometry
        tosphericalgeography
    """,
}
ALLOWED: Final = frozenset(name for names in _NAMES.values() for name in names.split())
"""Functions that an assertion may call."""
PERCENTILE: Final = re.compile(r"percentile(?:est|tdigest|kll|rawest|rawtdigest|rawkll)?[0-9]{1,2}(?:mv)?")
"""Those whose name says which percentile: `PERCENTILE95`, `PERCENTILETDIGEST99MV`."""

_REFUSED: Final = {
    "runs code on Pinot's servers": "groovy",
    "reads another table": "lookup insubquery inpartitionedsubquery",
    "makes or takes the values of another query": "idset inidset",
    "sets options of the query": "option set",
    "makes a server wait": "sleep",
    "gives another value each time": "rand",
    "makes as many values of one as its windows overlap": "datetimeconvertwindowhop",
    "is Pinot's own, for the inside of a query": """
        scalar range reqid starttime endtime brokerid cid queryengine stageid workerid timeseriesbucket
        timeseriesaggregate pinotchildaggexprmax pinotchildaggexprmin pinotparentaggexprmax
        pinotparentaggexprmin
    """,
}
REFUSED: Final = {name: why for why, names in _REFUSED.items() for name in names.split()}
"""Functions that an assertion may not call, each with what it does."""


def canonical(name: str) -> str:
    """A function's name as Pinot looks it up; only of letters in ASCII, of which no two are the same."""
    return name.replace("_", "").lower()


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


_few_wildcards: Final = partial(check_wildcards, sign="*")


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
        "levenshteindistance": UNKNOWN_LENGTH,
        **dict.fromkeys(("lpad", "rpad"), partial(by_number, 1)),
        **dict.fromkeys(
            ("generatedoublearray", "generatefloatarray", "generateintarray", "generatelongarray"), by_range
        ),
        **dict.fromkeys(
            words(
                "generateuniquengrams generateuniquengramsmv prefixes prefixeswithprefix suffixes "
                "suffixeswithsuffix uniquengrams uniquengramsmv"
            ),
            partial(by_number, 1),
        ),
        **dict.fromkeys(words("base64encode bytestohex jsonformat tobase64 tojsonmapstr"), 2),
        **dict.fromkeys(words("encodeurl urlencode urlencodeformcomponent"), 3),
        "arraytostring": partial(by_text, (1, 2)),
        "concatws": by_separator,
        "regexpreplace": partial(by_text, (2,)),
        "regexpreplacevar": partial(by_text, (2,)),
        "repeat": partial(by_number, -1),
        "replace": partial(by_text, (2,)),
    },
    unquoted=_unquoted,
    canonical=canonical,
)
