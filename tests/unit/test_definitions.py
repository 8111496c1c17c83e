"""What a directory of table specs becomes in Dagster, and that it is packed and deployed whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from contextlib import nullcontext
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster_cloud_cli.config.models import load_dagster_cloud_yaml
from fakes.project import ROOT
from fakes.realtime.specs import write_realtime_table
from fakes.tables import SWAP, SYNC, write_table

import pinot_assets.code_location as code_location
from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.definitions import build_definitions
from pinot_assets.errors import SpecError
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX
from pinot_assets.table_spec.tables.specs import RESERVED, asset_name


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    write_table(tmp_path, "flights")
    write_table(tmp_path, "web-hits", SWAP)
    return build_definitions(tmp_path / "tables")


def test_every_table_becomes_assets_a_job_and_a_sensor(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)
    repository = definitions.get_repository_def()
    keys = {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()}
    tables = ("flights", "web_hits")
    own = {f"{t}/{name}" for t in tables for name in ("source_files", "segments", "snapshot", "waiting")}
    assert keys == own | set(tables) | {"pinot_assets/tables"}
    jobs = {job.name: job for job in repository.get_all_jobs() if not job.name.startswith("__")}
    operations = ("rollback", "resume", "clear", "gc", "compact", "rebuild", "plan", "health")
    shared = {f"pinot_{name}" for name in operations}
    assert set(jobs) == shared | {f"{table}_ingest" for table in tables}
    assert jobs["web_hits_ingest"].tags[TABLE_TAG] == "web-hits"
    sensors = {sensor.name: sensor for sensor in repository.sensor_defs}
    assert set(sensors) == {"flights_files", "web_hits_files", "pinot_sessions", "pinot_tables"}
    assert {sensors[f"{t}_files"].job_name for t in tables} == {f"{t}_ingest" for t in tables}
    assert {job.name for job in sensors["pinot_sessions"].jobs} == {f"{t}_ingest" for t in tables}


def test_only_a_sensor_that_reads_is_on_from_the_start(definitions: dg.Definitions) -> None:
    sensors = definitions.get_repository_def().sensor_defs
    on = {s.name for s in sensors if s.default_status is dg.DefaultSensorStatus.RUNNING}
    assert on == {"pinot_tables"}


def test_more_tables_are_no_more_jobs_of_operations_and_no_more_sensors_of_all(tmp_path: Path) -> None:
    counts = []
    for names in (["a"], ["b", "c"]):
        for name in names:
            write_table(tmp_path, name)
        repository = build_definitions(tmp_path / "tables").get_repository_def()
        counts.append((len(repository.get_all_jobs()), len(repository.sensor_defs)))
    (jobs, sensors), more = counts
    assert more == (jobs + 2, sensors + 2)


def test_the_gate_stands_between_segments_and_snapshot(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    segments, snapshot = dg.AssetKey(["flights", "segments"]), dg.AssetKey(["flights", "snapshot"])
    assert graph.get(snapshot).parent_keys == {segments}
    (check,) = graph.get_check_keys_for_assets({segments, snapshot})
    assert (check.asset_key, check.name) == (segments, "consistent_push")
    assert graph.get_check_spec(check).blocking


def test_all_steps_of_a_run_share_one_process(definitions: dg.Definitions) -> None:
    """The driver of a run holds the lease in that process; a job by hand (the implicit one) too."""
    for job in ("flights_ingest", "__ASSET_JOB"):
        assert definitions.resolve_job_def(job).executor_def is dg.in_process_executor


def test_without_tables_there_is_an_empty_location(tmp_path: Path) -> None:
    dg.Definitions.validate_loadable(build_definitions(tmp_path))


def broken(folder: Path, name: str) -> None:
    """A table with a typo."""
    write_table(folder, name)
    path = folder / "tables" / f"{name}.yaml"
    path.write_text(path.read_text().replace("inputFormat: csv", "inputFormat: cvs"))


def names_of(definitions: dg.Definitions) -> set[str]:
    graph = definitions.resolve_asset_graph()
    return {key.to_user_string() for key in graph.get_all_asset_keys()}


def test_a_wrong_spec_is_shown_as_broken_and_the_others_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_table(tmp_path, "good")
    for name in ("bad-1", "bad2"):
        broken(tmp_path, name)
    (tmp_path / "tables" / "torn.v2.yaml").write_text("[")
    definitions = build_definitions(tmp_path / "tables")
    dg.Definitions.validate_loadable(definitions)
    good = {"good", "good/source_files", "good/segments", "good/snapshot", "good/waiting"}
    assert names_of(definitions) == {*good, "bad_1", "bad2", "torn_v2", "pinot_assets/tables"}
    repository = definitions.get_repository_def()
    assert {"good_ingest", "pinot_rollback"} <= {job.name for job in repository.get_all_jobs()}
    spec = repository.asset_graph.get(dg.AssetKey("bad_1"))
    assert spec.group_name == "bad_1"
    assert "left out, because its table spec is wrong" in (spec.description or "")
    assert "bad-1.yaml:" in (spec.description or "")
    assert "inputFormat" in (spec.description or "")
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == ["left out"] * 3


def test_its_check_fails_by_hand_and_without_anybodys_doing(tmp_path: Path) -> None:
    broken(tmp_path, "flights")
    definitions = build_definitions(tmp_path / "tables")
    key = dg.AssetCheckKey(dg.AssetKey("flights"), "table_spec")
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_implicit_global_asset_job_def()
        done = job.get_subset(asset_selection=set(), asset_check_selection={key}).execute_in_process(
            instance=instance
        )
        (by_hand,) = done.get_asset_check_evaluations()
        sensor = definitions.resolve_sensor_def("pinot_left_out")
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
        repository = definitions.get_repository_def()
        first = sensor.evaluate_tick(dg.build_sensor_context(instance, repository_def=repository))
        (by_itself,) = first.asset_events
        again = sensor.evaluate_tick(
            dg.build_sensor_context(instance, cursor=first.cursor, repository_def=repository)
        )
        assert again.asset_events == []  # what is known is not recorded again and again
    for found in (by_hand, by_itself):
        assert (found.asset_key, found.check_name, found.passed) == (key.asset_key, key.name, False)
        assert found.severity is dg.AssetCheckSeverity.ERROR
        assert "flights.yaml:" in (found.description or "")


def test_two_files_about_one_table_are_one_broken_asset(tmp_path: Path) -> None:
    write_table(tmp_path, "flights")
    write_table(tmp_path, "trains")
    shutil.copyfile(tmp_path / "tables" / "flights.yaml", tmp_path / "tables" / "copy.yaml")
    definitions = build_definitions(tmp_path / "tables")
    assert {"flights", "trains", "trains/segments"} <= names_of(definitions)
    told = definitions.resolve_asset_graph().get(dg.AssetKey("flights")).description or ""
    assert told.count("clashes with") == 2


def test_a_broken_table_takes_no_name_of_another_one(tmp_path: Path) -> None:
    write_table(tmp_path, "web-hits")
    (tmp_path / "tables" / "web.hits.yaml").write_text("[")
    assert {"web_hits", "web_hits_left_out"} <= names_of(build_definitions(tmp_path / "tables"))


def test_tables_that_are_called_as_dagster_calls_its_own_things(tmp_path: Path) -> None:
    """An asset check's input is called as its asset, and some words Dagster takes for no input."""
    for name in ("flights", "config", "input", "type"):
        write_table(tmp_path, name)
    broken(tmp_path, "class")
    definitions = build_definitions(tmp_path / "tables")
    dg.Definitions.validate_loadable(definitions)
    assert {
        "flights",
        "config",
        "config/segments",
        "input_table/segments",
        "type_table",
        "class_table",
    } <= names_of(definitions)
    assert "class_table/segments" not in names_of(definitions)


def test_broken_tables_take_no_name_of_one_another(tmp_path: Path) -> None:
    for name in ("web-hits", "web_hits_left_out"):
        write_table(tmp_path, name)
    for name in ("web.hits", "web_hits_left.out"):
        (tmp_path / "tables" / f"{name}.yaml").write_text("[")
    definitions = build_definitions(tmp_path / "tables")
    dg.Definitions.validate_loadable(definitions)
    graph = definitions.resolve_asset_graph()
    left_out = [key for key in graph.get_all_asset_keys() if "left out" in (graph.get(key).description or "")]
    assert len(left_out) == 2
    assert {"web_hits/segments", "web_hits_left_out/segments"} <= names_of(definitions)


@pytest.mark.parametrize("name", ["_OFFLINE", "_REALTIME"])
def test_a_table_without_a_name_costs_itself_alone(tmp_path: Path, name: str) -> None:
    write_table(tmp_path, "flights")
    (tmp_path / "tables" / "half.yaml").write_text(f"table: {{tableName: {name}}}\nfileIngestion: {{}}\n")
    definitions = build_definitions(tmp_path / "tables")
    dg.Definitions.validate_loadable(definitions)
    assert {"flights/segments", "half"} <= names_of(definitions)


def test_a_file_whose_name_is_no_text_costs_itself_alone(tmp_path: Path) -> None:
    write_table(tmp_path, "flights")
    (tmp_path / "tables" / os.fsdecode(b"\xff.yaml")).write_text("[")
    definitions = build_definitions(tmp_path / "tables")
    dg.Definitions.validate_loadable(definitions)
    assert "flights/segments" in names_of(definitions)


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")
@pytest.mark.parametrize(
    "word", [*sorted(RESERVED), "match", "case", "Type", "config", "none", "object", "list", "id"]
)
def test_the_words_that_are_reserved_are_dagsters(word: str) -> None:
    assert (word in RESERVED) == (asset_name(word, OFFLINE_SUFFIX) == f"{word}_table")

    def check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    refused = pytest.raises(dg.DagsterInvalidDefinitionError) if word in RESERVED else nullcontext()
    with refused:
        dg.asset_check(asset=dg.AssetKey([word]), name="any")(check)


def test_what_two_tables_call_their_things_cannot_be_the_same(tmp_path: Path) -> None:
    """Each name is the table's asset and an ending: none of one kind ends in another one of that kind, but
    where the assets would have one name, which is refused when the specs are read."""
    write_table(tmp_path, "flights", {**SYNC, "schedule": "0 0 * * * ?"})
    write_realtime_table(tmp_path)
    broken(tmp_path, "torn")
    repository = build_definitions(tmp_path / "tables").get_repository_def()
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    kinds = [
        {job.name for job in jobs},
        {sensor.name for sensor in repository.sensor_defs},
        {schedule.name for schedule in repository.schedule_defs},
        {node.name for job in jobs for node in job.all_node_defs},
    ]
    for names in kinds:
        assets = ("flights", "clicks_realtime", "torn")
        endings = {name.removeprefix(asset) for name in names for asset in assets if name.startswith(asset)}
        shared = {name for name in names if not any(name.startswith(asset) for asset in assets)}
        assert all(name.startswith("pinot_") for name in shared)
        # A table called pinot, or pinot_realtime, has none of these names.
        assert not [name for name in shared for ending in endings if name.endswith(ending)]
        clashing = [(one, other) for one in endings for other in endings if one != other]
        assert not [pair for pair in clashing if pair[0].endswith(pair[1])]


def test_a_good_spec_that_dagster_does_not_take_costs_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path, "flights")
    write_table(tmp_path, "trains")
    whole = code_location.build_table_definitions

    def build(spec: TableSpec) -> dg.Definitions:
        if spec.name == "trains":
            raise dg.DagsterInvalidDefinitionError("the tag is none")
        return whole(spec)

    monkeypatch.setattr(code_location, "build_table_definitions", build)
    definitions = build_definitions(tmp_path / "tables")
    assert {"flights/segments", "trains"} <= names_of(definitions)
    assert "trains/segments" not in names_of(definitions)
    told = definitions.resolve_asset_graph().get(dg.AssetKey("trains")).description or ""
    assert "cannot be shown in Dagster: the tag is none" in told.replace("\\", "")


def test_a_fault_of_ours_costs_one_table_and_quotes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path, "flights")

    def build(_: TableSpec) -> dg.Definitions:
        raise KeyError("hunter2")

    monkeypatch.setattr(code_location, "build_table_definitions", build)
    definitions = build_definitions(tmp_path / "tables")
    told = definitions.resolve_asset_graph().get(dg.AssetKey("flights")).description or ""
    assert "KeyError in test" in told.replace("\\", "")
    assert "hunter2" not in told


def test_a_directory_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="does not exist"):
        build_definitions(tmp_path / "nowhere")


# --- what is shipped -------------------------------------------------------------------------------


def test_the_workspace_loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As `dagster dev` and a code server load it."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.delenv("PINOT_ASSETS_TABLES", raising=False)
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "pinot-assets" in done.stdout + done.stderr


def test_dagster_cloud_yaml_names_the_same_location() -> None:
    cloud = load_dagster_cloud_yaml((ROOT / "dagster_cloud.yaml").read_text())
    (location,) = cloud.locations
    (workspace,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert location.location_name == workspace["python_module"]["location_name"]
    assert location.code_source.module_name == workspace["python_module"]["module_name"]


def test_nothing_shadows_the_workspace() -> None:
    """`dagster dev` takes [tool.dagster] of pyproject.toml first."""
    assert "dagster" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]


def test_dagster_yaml_is_an_instance(tmp_path: Path) -> None:
    shutil.copyfile(ROOT / "dagster.yaml", tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        (limit,) = instance.get_concurrency_config().run_queue_config.tag_concurrency_limits
        assert instance.run_monitoring_max_runtime_seconds == 24 * 3600  # R25: a hung driver ends
    assert limit == {"key": TABLE_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}


def test_a_wheel_holds_the_whole_package(tmp_path: Path) -> None:
    """Built from a copy: the build leaves folders behind."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pinot_assets", "resources", "sensors"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    expected = set()
    for source, target in (
        ("pinot_assets", ""),
        ("resources", "pinot_assets/"),
        ("sensors", "pinot_assets/"),
    ):
        files = (f for f in (ROOT / source).rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        expected |= {f"{target}{file.relative_to(ROOT)}" for file in files}
    assert packed == expected
    assert {"pinot_assets/py.typed", "pinot_assets/local/pinot.xml"} <= packed
    assert {"pinot_assets/resources/__init__.py", "pinot_assets/sensors/__init__.py"} <= packed
