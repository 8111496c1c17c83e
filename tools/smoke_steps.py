"""What `make smoke` does in a new environment that has nothing but the installed wheel.

Run by that environment's own interpreter, in an empty folder. Imports nothing of the repository.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

ROWS: Final = 300
HERE: Final = Path.cwd()


class SmokeFailed(AssertionError):
    """A step did not do what it should."""


def main() -> None:
    """Run all steps, and print the name of each one when it has passed.

    :raises SmokeFailed: a step failed; the later ones are not tried.
    """
    steps: tuple[Callable[[], None], ...] = (
        show_version,
        write_specs,
        scaffold_a_project,
        load_in_dagster,
        build_a_segment,
    )
    for step in steps:
        step()
        sys.stdout.write(f"  ok {step.__name__.replace('_', ' ')}\n")
        sys.stdout.flush()


def show_version() -> None:
    """`--version` names the installed version."""
    _require(_program("--version").strip() == f"pinot-assets {version('pinot-assets')}", "another version")


def write_specs() -> None:
    """`init` makes specs of Parquet and of packed JSON that `tables validate` takes."""
    (HERE / "data" / "orders").mkdir(parents=True)
    (HERE / "data" / "clicks").mkdir()
    orders = {"id": list(range(ROWS)), "shop": ["Bonn", "Mainz", "Trier"] * (ROWS // 3)}
    pq.write_table(pa.table(orders), HERE / "data" / "orders" / "1.parquet")
    clicks = "".join(json.dumps({"page": f"/{n % 7}", "clicks": n}) + "\n" for n in range(ROWS))
    (HERE / "data" / "clicks" / "1.json.gz").write_bytes(gzip.compress(clicks.encode()))
    for table in ("orders", "clicks"):
        _program("init", f"data/{table}")
    validated = _program("tables", "validate")
    for table in ("orders", "clicks"):
        _require(f"ok {table} " in validated, f"{table} is no table: {validated}")


def scaffold_a_project() -> None:
    """`scaffold` writes the files that the docs tell people to use, and they are usable."""
    _program("scaffold")
    printed = json.loads(_program("tables", "json-schema"))["properties"]
    shipped = json.loads((HERE / "tables" / "table.schema.json").read_text())["properties"]
    _require(shipped.keys() == printed.keys(), f"the shipped schema has {[*shipped]}, not {[*printed]}")
    _require("ok flights " in _program("tables", "validate"), "the sample is no table")


def load_in_dagster() -> None:
    """The code location loads, in Dagster's own way and as a module."""
    _python("-m", "dagster", "definitions", "validate", "-w", "workspace.yaml")
    names = _python(
        "-c",
        "from pinot_assets.definitions import defs; print(*(j.name for j in defs.resolve_all_job_defs()))",
    )
    missing = {"orders_ingest", "clicks_ingest", "flights_ingest"} - set(names.split())
    _require(not missing, f"no job {missing}")


def build_a_segment() -> None:
    """A local Spark builds a segment of the Parquet file, without a Pinot."""
    from pinot_assets import load_table
    from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
    from pinot_assets.ingest.spark.builder import SparkBuilder
    from pinot_assets.ingest.spark.jvm import local_session
    from pinot_assets.snapshot.receipt import Failure, Receipt
    from pinot_assets.source import SourceFile, open_store

    table = load_table(HERE / "tables" / "orders.yaml")
    source, staging = (HERE / "data" / "orders").as_uri(), HERE / "staging"
    (staging / "sessions" / "cp1-smoke").mkdir(parents=True)
    build_spec = BuildSpec(
        table="orders",
        session="cp1-smoke",
        attempt=1,
        creation_time_ms=1_700_000_000_000,
        schema=table.schema_json,
        table_config=table.table_json,
        input_format="parquet",
        reader={},
        source_uri=source,
        source_props={},
        staging_uri=(staging / "sessions" / "cp1-smoke").as_uri(),
        segments_uri=(staging / "segments").as_uri(),
        staging_props={},
        max_rows_per_segment=ROWS,
        write_for=table.ingestion.known_target,
        policy=table.policy,
    )
    built: list[Receipt | Failure] = []
    spark = local_session("smoke", 1)
    try:
        (file,) = open_store(source, {}, table.policy).list()
        task = FileTask(SourceFile(file.uri, file.fingerprint), 0)
        SparkBuilder(lambda: spark).build(build_spec, [task], built.append)
    finally:
        spark.stop()
    (receipt,) = built
    if not isinstance(receipt, Receipt):
        raise SmokeFailed(f"the file was not built: {receipt}")
    (output,) = receipt.outputs
    _require(output.rows == ROWS, f"{output.rows} of {ROWS} rows")
    with tarfile.open(unquote(urlsplit(output.tar_uri).path)) as tar:
        files = {Path(name).name for name in tar.getnames()}
    _require({"metadata.properties", "columns.psf", "index_map"} <= files, f"no segment: {files}")


def _program(*words: str) -> str:
    return _run(str(Path(sys.executable).with_name("pinot-assets")), *words)


def _python(*words: str) -> str:
    return _run(sys.executable, *words)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode or "Traceback" in said:
        raise SmokeFailed(f"{' '.join(command[:4])} ended with {done.returncode}:\n{said[-4000:]}")
    return done.stdout


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SmokeFailed(otherwise)


if __name__ == "__main__":
    try:
        main()
    except SmokeFailed as failed:
        sys.exit(f"  failed: {failed}")
