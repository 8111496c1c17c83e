"""Policy files: the installation's, and a folder's, which narrows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.policy import Layer
from pinot_assets.spec.policy_file import policy_of, read_layer


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "tables"
    folder.mkdir(parents=True)
    return folder


def named(folder: Path, text: str) -> dict[str, str]:
    file = folder / "installation.yaml"
    file.write_text(text)
    return {"PINOT_ASSETS_POLICY": str(file)}


def test_everything_that_a_policy_says(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "variables: [TABLE_*, LAKE_KEY]\n"
        "endpoints: [loopback, 'https://minio:9000']\n"
        "roots: [project, /data, ../lake, ~/x]\n"
        "ambientCredentials: [provider, https://minio:9000]\n"
        "allowCode: true\n"
    )
    layer, problems = read_layer(file)
    assert problems == []
    assert layer == Layer(
        variables=("TABLE_*", "LAKE_KEY"),
        endpoints=("loopback", "https://minio:9000"),
        roots=("project", "/data", f"{tmp_path.parent}/lake", str(Path("~/x").expanduser())),
        credentials=("provider", "https://minio:9000"),
        allow_code=True,
        file=str(file),
    )


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("variables: []\nendpoint: []", 2, "did you mean endpoints?"),
        ("\n\nroots: /data", 3, "roots: []"),
        ("variables:\n  - TABLE_*\n  - 7", 3, "is no text"),
        ("endpoints:\n- minio:9000", 2, "kafka://host[:port], or loopback"),
        ("ambientCredentials:\n- everywhere", 2, "loopback or provider"),
        ("allowCode: yes", 1, "neither true nor false"),
        ("[]", 1, "is no mapping"),
        ("variables: [", 1, "not valid YAML"),
        ("", 1, "is empty"),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_what_is_wrong_is_said_with_its_line(
    tables: Path, text: str, line: int, says: str, own: bool
) -> None:
    """And no table spec is read without the policy that was meant."""
    env = {} if own else named(tables.parent, text)
    if own:
        (tables / "policy.yaml").write_text(text)
    with pytest.raises(SpecError, match=r"cannot be used") as caught:
        policy_of(tables, env)
    assert f".yaml:{line}: " in str(caught.value)
    assert says in str(caught.value)


def test_a_policy_that_is_named_and_not_there_is_no_default(tables: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        policy_of(tables, {"PINOT_ASSETS_POLICY": str(tables / "gone.yaml")})


def test_a_folder_narrows_what_the_installation_allows(tables: Path) -> None:
    env = named(tables.parent, "variables: [LAKE_*]")
    (tables / "policy.yaml").write_text("variables: [LAKE_ONE, HOME]\nroots: [/etc, ., ../lake]")
    policy = policy_of(tables, env)
    assert policy.refuses_variable("LAKE_ONE") is None
    for name in ("LAKE_TWO", "HOME", "TABLE_X"):
        assert policy.refuses_variable(name) is not None
    assert policy.refuses_path(str(tables.parent / "lake")) is None
    assert policy.refuses_path(str(tables.parent / "other")) is not None
    assert policy.refuses_path("/etc") is not None


@pytest.mark.parametrize(("profile", "allowed"), [("", True), ("local", True), ("staging", False)])
def test_this_machine_is_an_endpoint_in_the_profile_local(tables: Path, profile: str, allowed: bool) -> None:
    policy = policy_of(tables, {"PINOT_ASSETS_PROFILE": profile})
    assert (policy.refuses_endpoint("http://127.0.0.1:9000") is None) is allowed


def test_a_profile_that_is_none_is_no_default(tables: Path) -> None:
    with pytest.raises(PinotAssetsError, match="no profile prod"):
        policy_of(tables, {"PINOT_ASSETS_PROFILE": "prod"})


def test_the_project_is_the_folder_around_the_tables_and_the_local_stacks(
    tables: Path, tmp_path: Path
) -> None:
    env = {"PINOT_ASSETS_DATA": str(tmp_path / "d"), "PINOT_ASSETS_STAGING": "s3://lake"}
    policy = policy_of(tables, env)
    for inside in (tables, tables.parent / "data", tmp_path / "d" / "x"):
        assert policy.refuses_path(str(inside)) is None
    assert policy.refuses_path(str(tmp_path / "other")) is not None


def test_the_local_stack_of_a_project_holds_data_wherever_one_stands(tables: Path) -> None:
    policy = policy_of(tables, {})
    assert policy.refuses_data(str(tables.parent / ".pinot-assets" / "data" / "flights")) is None
    assert policy.refuses_data(str(tables.parent / ".git")) is not None


def test_a_home_or_a_whole_disk_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    policy = policy_of(tmp_path / "tables", {})
    assert policy.refuses_path(str(tmp_path / "tables" / "in")) is None
    assert policy.refuses_path(str(tmp_path / ".ssh")) is not None
    assert policy_of(Path("/tables"), {}).refuses_path("/home/somebody") is not None


def test_the_file_to_start_from_says_what_counts_without_one(tables: Path) -> None:
    file = Path(__file__).parents[3] / "deploy" / "policy.yaml"
    production = {"PINOT_ASSETS_PROFILE": "production"}
    (said,) = policy_of(tables, {**production, "PINOT_ASSETS_POLICY": str(file)}).layers
    (usual,) = policy_of(tables, production).layers
    assert replace(said, file="") == usual


def test_a_local_stack_that_lies_on_another_disk_is_part_of_the_project(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tables.parent)
    (tmp_path / "disk").mkdir()
    (tables.parent / ".pinot-assets").symlink_to(tmp_path / "disk")
    assert policy_of(tables, {}).refuses_path(str(tables.parent / ".pinot-assets" / "data")) is None


def test_a_folders_policy_that_cannot_be_read_is_not_one_that_allows_everything(tables: Path) -> None:
    own = tables / "policy.yaml"
    own.symlink_to(tables / "gone.yaml")
    with pytest.raises(SpecError, match="cannot be used"):
        policy_of(tables, {})
    own.unlink()
    own.mkdir()
    with pytest.raises(SpecError, match="cannot be used"):
        policy_of(tables, {})
