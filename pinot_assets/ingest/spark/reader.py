"""Spark's own readers, set up so that they lose no value silently.

Times are UTC, a value that does not fit is an error (ANSI), names are case-sensitive, dates are Gregorian
throughout, and a file is one partition whatever its size.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Final, cast
from urllib.parse import unquote

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
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

_WHOLE_FILE: Final = 1 << 60  # no file is larger; with an equal open cost no two files share a partition
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.columnNameOfCorruptRecord": CORRUPT,
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # checks each row by all of its cells
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),  # in the JVM's memory; Spark 4
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    # As for tasks without SQL. If it were on, SQL would have a Python daemon and workers of its own.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxPartitionBytes": str(_WHOLE_FILE),
    "spark.sql.files.openCostInBytes": str(_WHOLE_FILE),
    "spark.sql.json.enableExactStringParsing": "true",  # Spark 4: keeps the text of an object as it is
    "spark.sql.icu.caseMappings.enabled": "false",  # upper and lower as Java does them
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "true",  # 1e5 in JSON; see exact_types
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.orc.mergeSchema": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.sources.ignoreDataLocality": "true",
    "spark.sql.variable.substitute": "false",  # keeps the environment's variables out of expressions
}
"""Settings of the session that reads, whatever the user's own session has."""

_MOST_DIGITS: Final = 38
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_COMMON: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


def reading_session(session: SparkSession) -> SparkSession:
    """Return a new session for reading, on the same Spark."""
    own = session.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own


def use_in_thread(session: SparkSession) -> None:
    """Make the session's settings apply in this thread: Spark reads ANSI mode when a cast is created.

    Otherwise the thread's earlier session applies, where a text that is no number may become null.
    """
    classes = getattr(SparkSession, "_get_j_spark_session_class", lambda jvm: jvm.SparkSession)  # 4, and 3.5
    classes(session._jvm).setActiveSession(session._jsparkSession)


def check_readers(session: SparkSession, build_spec: BuildSpec) -> None:
    """Check that Spark's own readers can read the build spec's files.

    :raises BuildError: Spark cannot reach their store, or a jar is missing.
    :raises SettingError: the policy does not let Spark open it.
    """
    hadoop_path(build_spec.source_uri)
    for refusal in refused_by_spark(
        parse_root(build_spec.source_uri), build_spec.source_props, build_spec.policy
    ):
        raise refusal.error(build_spec.source_uri)
    loader: JavaObject = session._jsparkSession.sharedState().jarClassLoader()
    if build_spec.source_uri.startswith("s3:") and not _has(lambda: loader.loadClass(_S3A), Py4JJavaError):
        raise BuildError(
            "Spark alone cannot read s3",
            why=f"{_S3A} is not on its class path",
            hint="add hadoop-aws of Spark's Hadoop version and set spark.hadoop.fs.s3a.*, or remove "
            "transforms, filter and engine: spark",
        )


def open_file(
    session: SparkSession, build_spec: BuildSpec, uri: str, texts: frozenset[str] = frozenset()
) -> DataFrame | None:
    """Return a file's rows; read only what names and types of the columns need.

    CSV: all columns are text. JSON: types as Spark infers them, decimals exactly; with a column `CORRUPT`.

    :param texts: columns of JSON files to keep as the file's text, if this Spark can (4 and later). As a
        structure, an object would get the members of all rows and lose their order.
    :returns: None if the file has no columns: it is blank.
    :raises Unreadable: its columns cannot be found out.
    :raises TooLarge: it has too many columns.
    """
    path = hadoop_path(uri)
    if path.rpartition("/")[2].startswith(("_", ".")):
        raise Unreadable(
            "Spark leaves out files whose names start with _ or .", hint="give the file another name"
        )
    reader = session.read.option("__globPaths__", "false")
    if build_spec.input_format == "json":
        # Spark 3.5 would write an object's text anew, with its fractions as doubles.
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
            hint="start Spark in a UTF-8 locale (LANG=C.UTF-8), or give the file another name",
        )
    return frame


def size_for_spark(session: SparkSession, uri: str) -> int:
    """Return the size of a file in bytes, as Spark's own file system reports it.

    :raises Py4JError: the file system reports no size.
    """
    jvm: JavaObject = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(hadoop_path(uri))
    settings = session._jsparkSession.sessionState().newHadoopConf()
    return int(path.getFileSystem(settings).getFileStatus(path).getLen())


def hadoop_path(uri: str) -> str:
    """Return a file's URI as Hadoop spells it, without percent-encoding.

    :raises BuildError: Spark is not set up for such a store.
    """
    scheme, _, rest = uri.partition("://")
    if scheme not in ("file", "s3"):
        raise BuildError(
            f"Spark's own readers are not set up for {scheme}",
            hint="remove transforms, filter, engine: spark and Pinot's transformConfigs and filterConfig",
        )
    return f"{'s3a' if scheme == 's3' else scheme}://{unquote(rest)}"


def _json(reader: DataFrameReader, path: str, texts: frozenset[str]) -> DataFrame | None:
    # By default Spark's parser takes texts up to 20 MB; a line may be as long as the task's check allows. Do
    # not set an encoding (the task's check found UTF-8): only then the parser works on bytes, and only from
    # bytes does it return an object's text unchanged.
    reader = reader.options(**_COMMON, multiLine=False, maxStringLen=LONGEST_ROW)
    # Hadoop silently drops longer lines; the task has already refused them in the bytes.
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
    """Return the types of a JSON file, with exact decimals for its fractions.

    :param decimals: types that Spark infers if it prefers decimals; text of digits is decimal, too.
    :param plain: types that Spark infers otherwise.
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
        # Without a schema Spark would infer one: it would take the name for a pattern and read further.
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
    """Return the names in a first row, read as a row of one cell: with more cells, Spark calls it corrupt."""
    if row is None:
        return (cell or "",)
    try:
        return tuple(settings.first_row(row)[0])
    except csv.Error as error:
        raise Unreadable("the file has no header that can be read", why=one_line(error)) from error


def _has(look_up: Callable[[], object], absent: type[Exception]) -> bool:
    """Whether `look_up` succeeds; False on an `absent` error, any other error is raised."""
    try:
        look_up()
    except absent:
        return False
    return True
