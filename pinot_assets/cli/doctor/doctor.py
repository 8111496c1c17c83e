"""`pinot-assets doctor`: check whether this machine can run the project, and if not, say what to do.

Each check is one small function that returns one sentence. The checks change nothing. They use the network
only if something has to be fetched, or if the environment names a Pinot or a store.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path

import psutil
import typer
from packaging.requirements import Requirement
from packaging.version import Version
from rich.markup import escape
from rich.table import Column, Table

from pinot_assets.cli.doctor.environment import PinotLook, check_environment, look_at_pinot, show_pinot
from pinot_assets.cli.options import AsJson
from pinot_assets.cli.terminal import Terminal, show_json
from pinot_assets.core.check_result import CheckResult, Severity, failed, passed, warned
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import Java, find_java, run_child
from pinot_assets.errors import LocalStackError, SpecError
from pinot_assets.ingest.contract.sql_extra import INSTALL_SQL, lacks_pandas
from pinot_assets.local import jars, processes
from pinot_assets.local.stack import MINIMUM_FREE_BYTES, PartStatus, Stack
from pinot_assets.session.values.state import utc_iso
from pinot_assets.settings.environment import tables_directory
from pinot_assets.settings.local_stack import Record, default_cache, default_home, load_record

_GB = 10**9
_STACK_MEMORY = 1.6 * _GB  # measured: six small JVMs
_STACK_AND_SPARK_MEMORY = 4 * _GB
_MINIMUM_MAVEN = Version("3.6")
_LAST_JAVA_OF_SPARK_3 = 21


def run_checks(home: Path | None = None, cache: Path | None = None) -> list[CheckResult]:
    """Run all checks; return them in the order in which a user should repair problems.

    :param home: the local stack's folder, `default_home()` if None.
    :param cache: the user's cache, `default_cache()` if None.
    """
    home, cache = home or default_home(), cache or default_cache()
    try:
        record, parts = load_record(home) or Record(), Stack(home).status()
    except LocalStackError as error:
        record, parts = Record(), []
        stack = _refused("local stack", error)
    else:
        stack = _stack(home, parts)
    return [
        _python(),
        *_packages(),
        _sql(tables_directory()),
        *_java(record.pinot_release, cache),
        *_maven(record.pinot_release, cache),
        _memory(parts),
        *_disks(home, cache, record.pinot_release),
        _ports(record, parts),
        stack,
        *check_environment(os.environ),
    ]


def doctor(as_json: AsJson = False) -> None:
    """Check this machine, the installation and the local stack.

    Exits 1 when something would fail.

    Checks in the environment: the profile, the policy and the folder of tables, addresses and whether they
    answer, credentials that are incomplete, Spark, limits, and variables that nothing reads.

    If a Pinot answers, also shows what its version lacks and what pinot-assets does instead, and which
    segment replacements are open: since when, whose, and what ends them.
    """
    checks = run_checks()
    if as_json:
        looked = look_at_pinot()
        rows = [
            {
                "name": check.name,
                "outcome": check.pick("ok", "warn", "fail"),
                "says": check.message,
                "way_out": check.next_step or None,
            }
            for check in checks
        ]
        show_json({"checks": rows, "pinot": None if looked is None else _looked_values(looked)})
    else:
        _show(checks)
    raise typer.Exit(ExitCode.ERROR if any(check.blocks for check in checks) else ExitCode.DONE)


def _looked_values(looked: PinotLook) -> JsonObject:
    """Return Pinot's answers as JSON; the time of an open replacement also in ISO 8601."""
    entries = [
        (table, {**asdict(entry), "timestampAt": utc_iso(entry.timestamp_ms)})
        for table, entry in looked.open or ()
    ]
    return asdict(looked) | ({} if looked.open is None else {"open": entries})


def _show(checks: Iterable[CheckResult]) -> None:
    table = Table("", "check", Column("found", overflow="fold"), box=None, header_style="bold")
    for check in checks:
        mark = check.pick("[green]ok[/]", "[yellow]warn[/]", "[bold red]fail[/]")
        table.add_row(mark, check.name, escape(check.description))
    console = Terminal()
    console.print(table)
    show_pinot(console)


def _refused(name: str, error: LocalStackError) -> CheckResult:
    return failed(name, f"{error.reason}.", error.hint or "")


# --- what is installed ---------------------------------------------------------------------------


def _python() -> CheckResult:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return passed("Python", f"Python {version}.")
    return failed("Python", f"Python {version} is not supported.", "use Python 3.11, 3.12 or 3.13")


def _packages() -> Iterator[CheckResult]:
    """Compare installed packages with this project's requirements: dagster's parts pin each other exactly."""
    asked = [Requirement(text) for text in metadata.requires("pinot-assets") or ()]
    wrong = [
        problem
        for requirement in asked
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if (problem := _package_problem(requirement))
    ]
    if wrong:
        yield failed(
            "packages", f"{'; '.join(wrong)}.", "make a fresh virtual environment from the lock file"
        )
        yield _package_index()
    else:
        yield passed("packages", f"dagster {metadata.version('dagster')} and its dependencies.")


def _package_problem(requirement: Requirement) -> str | None:
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(installed, prereleases=True):
        return None
    return f"{requirement.name} is {installed}, {requirement.specifier} is needed"


def _package_index() -> CheckResult:
    """Whether pip, as it is configured, can reach a package index."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "packaging"]
    with temporary_folder("doctor") as folder:
        answer = run_child(command, cwd=folder)
    if answer.returncode == 0:
        return passed("package index", "pip can fetch packages.")
    said = answer.stderr.strip().splitlines()
    return warned(
        "package index",
        f"pip cannot fetch packages: {said[-1] if said else 'it gave no reason'}.",
        "check the network and the index in pip's configuration",
    )


def _sql(folder: Path) -> CheckResult:
    """Check that pandas is there if Spark runs SQL of a table in this folder."""
    if not lacks_pandas():
        return passed("SQL", "pandas is installed, which table specs with SQL need.")
    if tables := _tables_with_sql(folder):
        says = f"pandas is not installed, and these tables have SQL: {', '.join(tables)}."
        return warned("SQL", says, f"{INSTALL_SQL} where Spark's driver runs")
    return passed("SQL", f"pandas is not installed; only table specs with SQL need it: {INSTALL_SQL}.")


def _tables_with_sql(folder: Path) -> list[str]:
    """Return the tables whose rows go through Spark SQL; none if the folder cannot be read."""
    # Imported here, because they import much that no other check needs.
    from pinot_assets.session.begin_and_build import query_of
    from pinot_assets.table_spec.tables.load import read_tables

    try:
        specs = read_tables(folder)
    except SpecError:
        return []  # the checks `policy` and `tables` say why
    return [name for name, spec in specs.items() if query_of(spec.ingestion, spec.table_json) is not None]


def _java(release: str, cache: Path) -> Iterator[CheckResult]:
    """Check the Java, and whether the Pinot of the local stack runs on it if that Pinot is at hand."""
    try:
        java = find_java()
    except LocalStackError as error:
        yield _refused("Java", error)
        return
    yield _java_for_spark(java)
    if jars.is_at_hand("pinot", release, cache=cache):
        yield _pinot(java, release, cache)
    elif release:
        says = f"the local stack has Pinot {release}, which is not in the cache."
        yield warned("Pinot", says, "`pinot-assets local up` fetches it again: about 1 GB")


def _java_for_spark(java: Java) -> CheckResult:
    spark = metadata.version("pyspark")
    if Version(spark) < Version("4") and java.major > _LAST_JAVA_OF_SPARK_3:
        return failed(
            "Java",
            f"PySpark {spark} does not run on Java {java.major}.",
            f"set JAVA_HOME to a JDK 17 or {_LAST_JAVA_OF_SPARK_3}, or install PySpark 4",
        )
    return passed("Java", f"Java {java.major} at {java.executable}.")


def _pinot(java: Java, release: str, cache: Path) -> CheckResult:
    try:
        pinot = jars.find_pinot(release, cache=cache)
        pinot.require(java)
    except LocalStackError as error:
        return _refused("Pinot", error)
    return passed(
        "Pinot", f"the local stack has Pinot {pinot.version}, which needs Java {pinot.java} or newer."
    )


def _maven(release: str, cache: Path) -> Iterator[CheckResult]:
    """Check Maven, unless all jars are in the cache: after that it is not needed."""
    lacking = [
        name
        for name in ("pinot", "kafka", "s3")
        if not jars.is_at_hand(name, release, cache=cache) and not (name == "pinot" and release)
    ]
    if not lacking:
        yield passed("Maven", "not needed any more: it has nothing left to fetch for the local stack.")
        return
    severity = Severity.ERROR if "pinot" in lacking else Severity.WARN  # the other two are optional
    try:
        version = _maven_version(jars.find_maven())
    except LocalStackError as error:
        yield replace(_refused("Maven", error), severity=severity)
        return
    yield passed("Maven", f"Maven {version}; it still has to fetch: {', '.join(lacking)}.")
    try:
        jars.check_reachable()
    except LocalStackError as error:
        yield replace(_refused("Maven repository", error), severity=severity)
    else:
        yield passed("Maven repository", "Maven can fetch from it.")


def _maven_version(executable: Path) -> Version:
    try:
        answer = run_child([executable, "--version"], timeout=60)
        said = answer.stdout + answer.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if (match := re.search(r"Apache Maven (\d+(?:\.\d+)*)", said)) is None:
        raise LocalStackError(
            f"{executable} does not show its version",
            why=said.strip().splitlines()[0] if said.strip() else "it printed nothing",
            hint=f"install Maven {_MINIMUM_MAVEN} or newer",
        )
    version = Version(match.group(1))
    if version < _MINIMUM_MAVEN:
        raise LocalStackError(f"Maven {version} is too old", hint=f"install Maven {_MINIMUM_MAVEN} or newer")
    return version


# --- what the machine has room for ---------------------------------------------------------------


def _memory(parts: list[PartStatus]) -> CheckResult:
    available = psutil.virtual_memory().available
    says = f"{available / _GB:.1f} GB are available."
    if any(part.pid for part in parts):
        return passed("memory", f"the local stack runs, {says}")
    if available < _STACK_MEMORY:
        return failed(
            "memory", says, f"end other programs: the local stack needs {_STACK_MEMORY / _GB:.1f} GB"
        )
    if available < _STACK_AND_SPARK_MEMORY:
        return warned(
            "memory",
            says,
            f"together with Spark, the local stack needs {_STACK_AND_SPARK_MEMORY / _GB:.0f} GB",
        )
    return passed("memory", says)


def _disks(home: Path, cache: Path, release: str) -> Iterator[CheckResult]:
    to_fetch = 0 if jars.is_at_hand("pinot", release, cache=cache) else jars.MINIMUM_FREE_BYTES
    for name, folder, needed, move in (
        ("cache", cache, to_fetch, "PINOT_ASSETS_CACHE"),
        ("home", home, MINIMUM_FREE_BYTES, "PINOT_ASSETS_HOME"),
        ("temporary files", Path(tempfile.gettempdir()), MINIMUM_FREE_BYTES, "TMPDIR"),
    ):
        free = shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free
        says = f"{free / _GB:.1f} GB are free at {folder}."
        if free < needed:
            way_out = (
                f"{needed / _GB:.1f} GB are needed: free some, or set {move} to a disk with enough space"
            )
            yield failed(f"disk: {name}", says, way_out)
        else:
            yield passed(f"disk: {name}", says)


def _ports(record: Record, parts: list[PartStatus]) -> CheckResult:
    """Check the ports of a stopped stack: it needs the same ports again, but other programs may take them."""
    for part in parts:
        taken = [port for port in part.ports.values() if not part.pid and not processes.is_free_port(port)]
        if taken and part.name in record.settled:
            return failed(
                "ports",
                f"{processes.port_holder(taken[0])} uses port {taken[0]} of the stack's {part.name}.",
                "end that process, or start again with `pinot-assets local down --purge`",
            )
    try:
        processes.free_port(())
    except LocalStackError as error:
        return _refused("ports", error)
    return passed("ports", "servers can listen on 127.0.0.1.")


def _stack(home: Path, parts: list[PartStatus]) -> CheckResult:
    if dead := [part.name for part in parts if part.state == "dead"]:
        return failed(
            "local stack",
            f"{', '.join(dead)} died.",
            f"`pinot-assets local up` repairs it; the logs are in {home / 'logs'}",
        )
    if slow := [f"{part.name} ({part.missing})" for part in parts if part.state == "starting"]:
        return warned("local stack", f"not ready: {', '.join(slow)}.", "wait, or run `pinot-assets local up`")
    if any(part.state == "ready" for part in parts):
        return passed("local stack", f"it runs in {home}.")
    return passed("local stack", "it does not run; `pinot-assets local up` starts it.")
