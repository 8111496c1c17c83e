"""Spark's own readers, set up so that they lose nothing in silence.

Times are UTC, a value that does not fit is an error (ANSI), names are what they are (case counts), dates are
Gregorian throughout, and a file is one partition whatever its size.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Final, cast
from urllib.parse import unquote

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    StringType,
    StructField,
    StructType,
)

from pinot_assets.core.file_errors import Unreadable, one_line
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.ingest.contract.csv_settings import CsvSettings, twice
from pinot_assets.ingest.formats.content import BLOCK_BYTES
from pinot_assets.ingest.spark.file_checks import LONGEST_ROW
from pinot_assets.ingest.spark.tasks import CORRUPT
from pinot_assets.source.allowed_places import refused_by_spark
from pinot_assets.source.uris import parse_root

_WHOLE_FILE: Final = 1 << 60  # no file is larger, and with the same cost of opening no two share a partition
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.columnNameOfCorruptRecord": CORRUPT,
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # a row is judged by all of its cells
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),  # in the JVM's memory; Spark 4
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxPartitionBytes": str(_WHOLE_FILE),
    "spark.sql.files.openCostInBytes": str(_WHOLE_FILE),
    "spark.sql.json.enableExactStringParsing": "true",  # Spark 4: of an object, the text that stands there
    "spark.sql.icu.caseMappings.enabled": "false",  # upper and lower are Java's
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "true",  # 1e5 in JSON; see exact_types
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.orc.mergeSchema": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.sources.ignoreDataLocality": "true",
    "spark.sql.variable.substitute": "false",  # nothing of the environment gets into an expression
}
"""What the session that reads is set to, whatever the user's own session says."""

_MOST_DIGITS: Final = 38
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_COMMON: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


def reading_session(session: SparkSession) -> SparkSession:
    """A session of its own on the same Spark."""
    own = session.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own


def use_in_thread(session: SparkSession) -> None:
    """Have its settings count in this thread: casts are ANSI or not as they are when they are made.

    Otherwise those of the session that the thread found count, with which a text that is no number is null.
    """
    classes = getattr(SparkSession, "_get_j_spark_session_class", lambda jvm: jvm.SparkSession)  # 4, and 3.5
    classes(session._jvm).setActiveSession(session._jsparkSession)


def check_readers(session: SparkSession, build_spec: BuildSpec) -> None:
    """Whether Spark has what it takes to read the build spec's files.

    :raises BuildError: it is not set up for their store, or a jar is missing.
    :raises SettingError: the policy refuses that Spark opens it.
    """
    hadoop_path(build_spec.source_uri)
    for refusal in refused_by_spark(
        parse_root(build_spec.source_uri), build_spec.source_props, build_spec.policy
    ):
        raise refusal.error(build_spec.source_uri)
    jvm: JavaObject = session._jvm
    loader = session._jsparkSession.sharedState().jarClassLoader()
    if build_spec.source_uri.startswith("s3:") and not _has(lambda: loader.loadClass(_S3A), Py4JJavaError):
        raise BuildError(
            "Spark cannot read s3 by itself",
            why=f"{_S3A} is not on its class path",
            hint="add hadoop-aws of Spark's Hadoop version and set spark.hadoop.fs.s3a.*, or leave out "
            "transforms, filter and engine: spark",
        )
    # Spark 4 has some of the classes without the data source.
    formats = jvm.org.apache.spark.sql.execution.datasources.DataSource
    conf = session._jsparkSession.sessionState().conf()
    is_avro = build_spec.input_format == "avro"
    if is_avro and not _has(lambda: formats.lookupDataSource("avro", conf), AnalysisException):
        raise BuildError(
            "Spark cannot read Avro by itself",
            why="spark-avro is not on its class path",
            hint="set spark.jars.packages to org.apache.spark:spark-avro_<Scala>:<Spark>, or leave out "
            "transforms, filter and engine: spark",
        )


def open_file(
    session: SparkSession, build_spec: BuildSpec, uri: str, texts: frozenset[str] = frozenset()
) -> DataFrame | None:
    """A file's rows, nothing of them read but what says the columns' names and types.

    CSV: all columns are text. JSON: types as Spark infers them, decimals exactly; with a column `CORRUPT`.

    :param texts: columns of JSON files whose values are taken as the text that stands there, where this Spark
        can do that: as a structure, an object has the members of all rows and none of their order.
    :returns: None if the file has no columns: a blank one.
    :raises Unreadable: its columns cannot be told.
    :raises TooLarge: it has too many of them.
    """
    path = hadoop_path(uri)
    if path.rpartition("/")[2].startswith(("_", ".")):
        raise Unreadable("Spark leaves out files whose names start with _ or .", hint="name it otherwise")
    reader = session.read.option("__globPaths__", "false")
    if build_spec.input_format == "json":
        # Spark 3.5 writes an object's text anew, its fractions as doubles.
        keeps_texts = int(session.version.partition(".")[0]) >= 4
        frame = _json(reader, path, texts if keeps_texts else frozenset())
    elif build_spec.input_format == "csv":
        frame = _csv(reader, build_spec, path)
    else:
        frame = reader.format(build_spec.input_format).load(path)
    if frame is None or not frame.columns:
        return None
    build_spec.limits.check_columns(len(frame.columns))
    if len(frame.inputFiles()) != 1:
        raise Unreadable(
            "Spark does not find the file by its name",
            hint="start Spark in a UTF-8 locale (LANG=C.UTF-8), or name the file otherwise",
        )
    return frame


def size_for_spark(session: SparkSession, uri: str) -> int:
    """Bytes of a file as Spark's own file system tells them.

    :raises Py4JError: it cannot.
    """
    jvm: JavaObject = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(hadoop_path(uri))
    settings = session._jsparkSession.sessionState().newHadoopConf()
    return int(path.getFileSystem(settings).getFileStatus(path).getLen())


def hadoop_path(uri: str) -> str:
    """A file's URI as Hadoop spells it: nothing is percent-encoded.

    :raises BuildError: Spark cannot reach such a store.
    """
    scheme, _, rest = uri.partition("://")
    if scheme not in ("file", "s3"):
        raise BuildError(
            f"Spark's own readers are not set up for {scheme}",
            hint="leave out transforms, filter, engine: spark and Pinot's transformConfigs and filterConfig",
        )
    return f"{'s3a' if scheme == 's3' else scheme}://{unquote(rest)}"


def _json(reader: DataFrameReader, path: str, texts: frozenset[str]) -> DataFrame | None:
    # Its parser takes texts of 20 MB by itself; a line is as long as the task allows. No encoding is said
    # (the task found UTF-8): then the parser has bytes, and of those alone it gives an object's text as
    # it stands.
    reader = reader.options(**_COMMON, multiLine=False, maxStringLen=LONGEST_ROW)
    # Hadoop leaves out lines that are longer; the task has found them in the bytes.
    reader = reader.option("mapreduce.input.linerecordreader.line.maxlength", str(2 * LONGEST_ROW))
    schema = reader.option("prefersDecimal", True).json(path).schema
    if not schema.fields:
        return None
    if "decimal" in schema.simpleString():
        plain = reader.option("prefersDecimal", False).json(path).schema
        schema = cast(StructType, exact_types(schema, plain))
    fields = [
        StructField(field.name, StringType()) if field.name in texts else field
        for field in schema.fields
        if field.name != CORRUPT
    ]
    return reader.schema(StructType([*fields, StructField(CORRUPT, StringType())])).json(path)


def exact_types(decimals: DataType, plain: DataType) -> DataType:
    """Types of JSON with decimals for its fractions.

    :param decimals: as Spark infers them where it prefers decimals: for text of digits, too.
    :param plain: as it does otherwise.
    """
    if isinstance(decimals, StructType) and isinstance(plain, StructType):
        return StructType(
            [
                StructField(field.name, exact_types(field.dataType, plain[field.name].dataType))
                for field in decimals.fields
            ]
        )
    if isinstance(decimals, ArrayType) and isinstance(plain, ArrayType):
        return ArrayType(exact_types(decimals.elementType, plain.elementType))
    if isinstance(plain, StringType):
        return plain
    if isinstance(decimals, DecimalType) and decimals.scale < 0:  # 1e5 is one digit and five zeros
        digits = decimals.precision - decimals.scale
        return DecimalType(digits, 0) if digits <= _MOST_DIGITS else DoubleType()
    return decimals


def _csv(reader: DataFrameReader, build_spec: BuildSpec, path: str) -> DataFrame | None:
    settings = CsvSettings.from_reader(build_spec.reader)
    null = settings.nulls[-1]
    options: JsonObject = {
        **_COMMON,
        "encoding": "UTF-8",
        "sep": settings.delimiter,
        "quote": settings.quote,
        "escape": settings.escape or settings.quote,
        "nullValue": null,
        "emptyValue": null,
        "multiLine": True,
        "maxCharsPerColumn": BLOCK_BYTES,
        "enforceSchema": True,
        **({"comment": settings.comment} if settings.comment else {}),
    }
    has_header = settings.header is None or settings.skip_header
    if (names := settings.header) is None:
        # With a schema Spark neither infers one, which takes the name for a pattern, nor reads on.
        cells = reader.options(**options, header=False).schema(f"first string, `{CORRUPT}` string")
        first = cells.csv(path).head(1)
        if not first:
            return None
        names = _header(first[0][0], first[0][1], settings)
    names = tuple(name.removeprefix("\ufeff").strip() for name in names)
    build_spec.limits.check_columns(len(names))
    if again := twice(names):
        raise Unreadable(f"the header names {', '.join(again)} twice")
    fields = [StructField(name or f"#{n}", StringType()) for n, name in enumerate(names)]
    schema = StructType([*fields, StructField(CORRUPT, StringType())])
    return reader.options(**options, header=has_header).schema(schema).csv(path)


def _header(cell: str | None, row: str | None, settings: CsvSettings) -> tuple[str, ...]:
    """Names of a first row that was read as one of a single cell: it is torn where it has more."""
    if row is None:
        return (cell or "",)
    try:
        return tuple(settings.first_row(row)[0])
    except csv.Error as error:
        raise Unreadable("the file has no header that could be read", why=one_line(error)) from error


def _has(look_up: Callable[[], object], absent: type[Exception]) -> bool:
    """Whether Spark has what is looked up; any other error than `absent` comes out."""
    try:
        look_up()
    except absent:
        return False
    return True
