"""Policy files: the installation's, and a folder's, which narrows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from fakes.project import ROOT

from pinot_assets.core.installation_policy import Layer
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.table_spec.yaml.policy_file import policy_notes, policy_of, read_layer


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
        ("variables:\n  - TABLE_*\n  - 7", 3, "is not a text"),
        ("endpoints:\n- minio:9000", 2, "kafka://host[:port], or loopback"),
        ("ambientCredentials:\n- everywhere", 2, "loopback or provider"),
        ("allowCode: yes", 1, "neither true nor false"),
        ("[]", 1, "is not a mapping"),
        ("variables: [", 1, "not valid YAML"),
        ("", 1, "is empty. → write one of variables, endpoints, roots"),
        ("# to be filled in\n", 1, "delete the file"),
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


MISREAD = [
    ("roots", "s3:/bucket", "roots only limit those", "one in endpoints"),
    ("roots", "s3://", "roots only limit those", "need no entry"),
    ("roots", "S3://Bucket", "roots only limit those", "need no entry"),
    ("roots", "file:///data/lake", "is a URI", "/data/lake"),
    ("roots", "Project", "is not a root", "did you mean project?"),
    ("roots", "/data/../lake", "has .. after", "write the path that it means"),
    ("roots", "lake/../..", "has .. after", "write the path that it means"),
    ("roots", "~/../x", "has .. after", "write the path that it means"),
    ("roots", "/data/*", "not patterns", "what is below it"),
    ("roots", "/data/**/in", "not patterns", "what is below it"),
    ("roots", "$HOME/lake", "refers to the environment", "write the path"),
    ("roots", "/data/${TABLE_X}", "refers to the environment", "write the path"),
    ("roots", "~nobody-of-that-name/x", "names the home", "write the path"),
    ("roots", " /data", "has a blank", "write /data"),
    ("roots", "/etc/pinot", "which no policy can allow", "remove it"),
    ("roots", "/run/secrets", "which no policy can allow", "remove it"),
    ("roots", "", "is empty", "remove it"),
    ("endpoints", "minio:9000", "is not an endpoint", "https://host[:port]"),
    ("endpoints", "minio.example.org", "is not an endpoint", "https://host[:port]"),
    ("endpoints", "s3://bucket", "is not an endpoint", "https://host[:port]"),
    ("endpoints", "https://me:pw@minio", "is not an endpoint", "https://host[:port]"),
    ("endpoints", "https://*.example.org", "where it is not a pattern", "https://host[:port]"),
    ("endpoints", "https://minio:9000/bucket", "would allow all", "write https://minio:9000"),
    ("endpoints", "https://minio?sig=s3cret", "would allow all", "write https://minio:443"),
    ("endpoints", "kafka://broker:9092 ", "has a blank", "write kafka://broker:9092"),
    ("ambientCredentials", "https://minio:9000/x", "would allow all", "write https://minio:9000"),
    ("ambientCredentials", "Provider", "is not an endpoint", "loopback or provider"),
    ("variables", "${TABLE_X}", "is a reference", "write TABLE_X"),
    ("variables", "$TABLE_X", "is a reference", "write TABLE_X"),
    ("variables", "TABLE-X", "is not the name", "letters, digits and _"),
    ("variables", "TABLE_[AB]", "is not the name", "* means any text"),
    ("variables", "PINOT_PASSWORD", "no policy can let", "TABLE_"),
    ("variables", "DAGSTER_*", "no policy can let", "TABLE_"),
]


@pytest.mark.parametrize(("key", "item", "says", "fix"), MISREAD)
def test_an_item_that_would_be_read_as_something_else_is_refused(
    tmp_path: Path, key: str, item: str, says: str, fix: str
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump({key: [item]}))
    _, (problem,) = read_layer(file)
    assert problem.key.startswith(f"{key}[")
    assert says in problem.reason
    assert fix in (problem.fix or "")
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize(
    ("key", "item"),
    [
        ("roots", "."),
        ("roots", "../../lake"),
        ("roots", "/data/a*b"),
        ("roots", "/"),
        ("roots", "/dev/shm/lake"),
        ("endpoints", "https://minio:9000/"),
        ("endpoints", "HTTPS://[fe80::1]:9000"),
        ("variables", "*"),
        ("variables", "PINOT_ASSETS_*"),
    ],
)
def test_what_means_what_it_says_is_taken(tmp_path: Path, key: str, item: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump({key: [item]}))
    assert read_layer(file)[1] == []


def test_a_relative_root_of_a_folder_that_is_a_link_is_that_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "real" / "tables").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "tables")
    (tmp_path / "real" / "tables" / "policy.yaml").write_text("roots: [../lake]")
    layer, _ = read_layer(tmp_path / "link" / "policy.yaml")
    assert layer.roots == (f"{tmp_path}/real/lake",)


def test_a_root_that_is_not_there_is_a_note_of_its_line(tables: Path, tmp_path: Path) -> None:
    env = named(tables.parent, f"roots:\n- project\n- {tmp_path}/lake\n- projct\n- {tmp_path}/in*\n")
    (tables / "policy.yaml").write_text(f"roots: [., {tmp_path}/narrow]")
    installation, folder = tables.parent / "installation.yaml", tables / "policy.yaml"
    found = policy_notes(tables, env)
    assert [(note.file, note.line, note.key) for note in found] == [
        (installation, 3, "roots[1]"),
        (installation, 4, "roots[2]"),
        (installation, 5, "roots[3]"),
        (folder, 1, "roots[1]"),
    ]
    assert (
        found[0].text == f"{tmp_path}/lake does not exist on this machine, and allows nothing until it does"
    )
    assert "did you mean project?" in found[1].text
    assert "* is not a pattern" in found[2].text
    policy_of(tables, env)  # it can be used all the same
    for name in ("lake", "narrow", "in*"):
        (tmp_path / name).mkdir()
    assert [note.key for note in policy_notes(tables, env)] == ["roots[2]"]
    assert policy_notes(tables, {}) == []


def test_a_policy_that_is_named_and_not_there_is_no_default(tables: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        policy_of(tables, {"PINOT_ASSETS_POLICY": str(tables / "gone.yaml")})


def test_a_folder_narrows_what_the_installation_allows(tables: Path) -> None:
    env = named(tables.parent, "variables: [LAKE_*]")
    (tables / "policy.yaml").write_text("variables: [LAKE_ONE, HOME]\nroots: [., ../lake]")
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
    file = ROOT / "deploy" / "policy.yaml"
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
