"""What a policy lets a table spec reach, and that the line it prints allows what it refused."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pinot_assets.core.installation_policy import NEVER_READ, UNLIMITED, Layer, Policy, PolicyRefusal
from pinot_assets.settings.variables import VARIABLES
from pinot_assets.table_spec.yaml.policy_file import read_layer

LOCAL, AWAY = ("loopback",), ()


def usual(*project: Path | str, endpoints: tuple[str, ...] = AWAY) -> Policy:
    return Policy((Layer().with_defaults(endpoints),), tuple(map(str, project)))


def refused(refusal: PolicyRefusal | None) -> PolicyRefusal:
    assert refusal is not None
    return refusal


# --- variables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["TABLE_SECRET", "TABLE_", "PINOT_ASSETS_DATA", "PINOT_ASSETS_STAGING"])
def test_by_default_variables_of_tables_may_be_read(name: str) -> None:
    assert usual().refuses_variable(name) is None


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "HOME", "table_x", "MY_TABLE_X", "GOOGLE_APPLICATION_CREDENTIALS"]
)
def test_by_default_no_other_ones(name: str) -> None:
    refusal = refused(usual().refuses_variable(name))
    assert name in refusal.reason
    assert "PINOT_ASSETS_POLICY" in refusal.fix
    assert refusal.line in refusal.fix


_SECRETS = sorted(
    variable.name for section in VARIABLES.values() for variable in section if variable.kind == "secret"
)
_GREEDY = Policy((Layer(variables=("*", "PINOT_*", "PINOT_PASSWORD")),))


@pytest.mark.parametrize(
    "name",
    [
        *_SECRETS,
        "PINOT_ZOOKEEPER_USER",
        "PINOT_ASSETS_WEBHOOK_URL",
        "DAGSTER_PG_PASSWORD",
        "OPENLINEAGE_API_KEY",
    ],
)
@pytest.mark.parametrize("policy", [_GREEDY, UNLIMITED, usual()])
def test_this_projects_own_are_never_readable(name: str, policy: Policy) -> None:
    refusal = refused(policy.refuses_variable(name))
    assert refusal.line == ""
    assert "no table spec" in refusal.reason


def test_a_pattern_allows() -> None:
    policy = Policy((Layer(variables=("LAKE_*", "ONE")),))
    assert policy.refuses_variable("LAKE_KEY") is policy.refuses_variable("ONE") is None
    assert policy.refuses_variable("ONE_MORE") is not None


# --- endpoints and credentials ---------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000", "http://localhost:1", "https://[::1]"])
def test_this_machine_is_an_endpoint_where_the_local_stack_is(url: str) -> None:
    assert usual(endpoints=LOCAL).refuses_endpoint(url) is None
    assert usual().refuses_endpoint(url) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://0.0.0.0:9000",
        "http://169.254.169.254",
        "ftp://127.0.0.1",
        "http://127.0.0.1:99999",
        "localhost:9000",
        "",
    ],
)
def test_by_default_no_other_machine_is(url: str) -> None:
    assert usual(endpoints=LOCAL).refuses_endpoint(url) is not None


def test_an_endpoint_is_its_scheme_host_and_port() -> None:
    policy = Policy((Layer(endpoints=("https://minio.example",)),))
    assert policy.refuses_endpoint("https://MINIO.example:443/") is None
    for other in ("http://minio.example", "https://minio.example:444", "https://minio.example.evil"):
        assert policy.refuses_endpoint(other) is not None


def test_credentials_of_this_machine_go_to_the_cloud_alone() -> None:
    policy = usual(endpoints=LOCAL)
    assert policy.refuses_credentials(None) is None
    for named in ("http://127.0.0.1:9000", "https://minio.example"):
        assert "own credentials" in refused(policy.refuses_credentials(named)).reason
    none = Policy((Layer(credentials=()),))
    assert refused(none.refuses_credentials(None)).line == "ambientCredentials: [provider]"


def test_a_refusal_repeats_no_more_of_an_endpoint_than_where_it_is() -> None:
    refusal = refused(usual().refuses_endpoint("https://me:s3cret@evil.example/s3cret?s3cret"))
    assert "https://evil.example:443" in refusal.reason
    assert "s3cret" not in f"{refusal}"
    assert "s3cret" not in f"{usual().refuses_endpoint('s3cret')}"


# --- files -----------------------------------------------------------------------------------------


def test_by_default_files_lie_in_the_project(tmp_path: Path) -> None:
    policy = usual(tmp_path)
    assert policy.refuses_path(f"{tmp_path}/in") is policy.refuses_path(str(tmp_path)) is None
    for other in (f"{tmp_path}-other", str(tmp_path.parent), f"{tmp_path}/../x"):
        assert policy.refuses_path(other) is not None


def test_symbolic_links_are_followed_in_paths_and_in_roots(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "lake").mkdir()
    (tmp_path / "project" / "way out").symlink_to(tmp_path / "lake")
    (tmp_path / "alias").symlink_to(tmp_path / "project")
    policy = usual(tmp_path / "project")
    assert policy.refuses_path(f"{tmp_path}/project/way out/in") is not None
    assert policy.refuses_path(f"{tmp_path}/alias/in") is None
    through = Policy((Layer(roots=(f"{tmp_path}/project/way out",)),))
    assert through.refuses_path(f"{tmp_path}/lake/in") is None


OWN = (".env", "in/.env", ".git/config", ".git", "dagster.yaml", "tables/orders.YML", "in/policy.yaml")
KEYS = ("storage/runs.db", "deploy/prod.env", "tls/server.key", "tls/store.p12", "setup.cfg")


@pytest.mark.parametrize("name", [*OWN, *KEYS])
def test_what_a_project_holds_beside_data_is_no_data(name: str, tmp_path: Path) -> None:
    refusal = refused(usual(tmp_path).refuses_data(f"{tmp_path}/{name}"))
    assert refusal.line == f"roots: [project, {tmp_path}/{name}]"
    assert usual(tmp_path).refuses_path(f"{tmp_path}/{name}") is None
    for allowed in (f"{tmp_path}/{name}", str(tmp_path)):  # a folder that is spelled is data with all in it
        assert Policy((Layer(roots=("project", allowed)),), (str(tmp_path),)).refuses_data(allowed) is None
    assert UNLIMITED.refuses_data(f"{tmp_path}/{name}") is None


def test_data_are_what_else_lies_in_the_project_and_in_the_local_stack(tmp_path: Path) -> None:
    stack = tmp_path / ".pinot-assets"
    policy = usual(tmp_path, stack)
    for path in (tmp_path, tmp_path / "in" / "a.csv", stack / "data" / "flights" / "a.csv.gz", stack):
        assert policy.refuses_data(str(path)) is None
    for path in (stack / "data" / ".env", stack / "dagster" / "dagster.yaml", tmp_path / ".other" / "a.csv"):
        assert policy.refuses_data(str(path)) is not None
    narrowed = policy.narrowed(Layer(roots=("project",), file="f"))
    assert narrowed.refuses_data(f"{tmp_path}/in") is None
    assert narrowed.refuses_data(f"{tmp_path}/.env") is not None
    assert policy.refuses_data(str(tmp_path.parent)) is not None


def test_a_link_to_what_is_no_data_is_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "in").symlink_to(tmp_path / ".git")
    assert usual(tmp_path).refuses_data(f"{tmp_path}/in") is not None


@pytest.mark.parametrize("policy", [UNLIMITED, Policy((Layer(roots=("/",)),)), usual("/")])
def test_the_systems_own_folders_are_never_data(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    paths = [*NEVER_READ, "/proc/self/environ", "/etc/../etc/ssl", "//etc", "/", f"{tmp_path}/link/ssl"]
    for path in (*paths, "/proc/self/root/etc", f"/proc/self/root{tmp_path}"):
        assert refused(policy.refuses_path(path)).line == "", path
    assert policy.refuses_path(str(tmp_path)) is policy.refuses_path("/dev/shm/x") is None


# --- layers, and the line that allows --------------------------------------------------------------


def test_a_folder_narrows_and_never_widens() -> None:
    wide = Layer(variables=("A*", "B*"), endpoints=("https://a", "https://b"), roots=("/a",), allow_code=True)
    narrow = Layer(
        variables=("B*", "C*"), endpoints=("https://b", "https://c"), roots=("/a/b", "/c"), file="f"
    )
    policy = Policy((wide,)).narrowed(narrow)
    assert [policy.refuses_variable(name) is None for name in ("A1", "B1", "C1")] == [False, True, False]
    urls = ("https://a", "https://b", "https://c")
    assert [policy.refuses_endpoint(url) is None for url in urls] == [False, True, False]
    assert [policy.refuses_path(path) is None for path in ("/a/x", "/a/b/x", "/c/x")] == [False, True, False]
    assert policy.refuses_code() is None
    assert policy.narrowed(Layer(allow_code=False)).refuses_code() is not None
    assert "in f" in refused(policy.refuses_variable("A1")).fix
    assert policy.narrowed(Layer()) != policy
    assert Policy((Layer().with_defaults(()), Layer(allow_code=True))).refuses_code() is not None


def test_a_refusal_says_what_to_write_and_what_to_type() -> None:
    fix = refused(usual("/project").refuses_path("/data/x")).fix
    assert "write the line `roots: [project, /data/x]` into a file" in fix
    assert "`export PINOT_ASSETS_POLICY=$PWD/pinot-policy.yaml`" in fix
    assert "narrows" not in fix


def test_a_line_in_the_policy_of_the_folder_of_tables_is_answered() -> None:
    folder = Layer(roots=("project", "/data/x"), file="/project/tables/policy.yaml")
    fix = refused(usual("/project").narrowed(folder).refuses_path("/data/x")).fix
    assert "/project/tables/policy.yaml cannot allow it" in fix
    assert "only narrows" in fix
    own = refused(usual("/").narrowed(replace(folder, roots=())).refuses_path("/data/x")).fix
    assert own == "allow it with the line `roots: [/data/x]` in /project/tables/policy.yaml"


Ask = Callable[[Policy], PolicyRefusal | None]
REFUSED: list[Ask] = [
    lambda policy: policy.refuses_variable("LAKE_KEY"),
    lambda policy: policy.refuses_endpoint("https://minio.example:9000"),
    lambda policy: policy.refuses_endpoint("http://[fe80::1]:9000"),
    lambda policy: policy.refuses_credentials("https://minio.example:9000"),
    lambda policy: policy.refuses_path("/lake/with: colon, [brackets] #\"quotes\" 'and' *stars"),
    lambda policy: policy.refuses_path("/lake/ü ~x"),
    lambda policy: policy.refuses_data(f"{policy.project[0]}/.env"),
    lambda policy: policy.refuses_code(),
]


@pytest.mark.parametrize("ask", REFUSED)
def test_the_line_that_is_printed_allows_it_and_keeps_what_was_allowed(ask: Ask, tmp_path: Path) -> None:
    before = usual(tmp_path, endpoints=LOCAL)
    line = refused(ask(before)).line
    assert yaml.safe_load(line)
    file = tmp_path / "policy.yaml"
    file.write_text(line + "\n")
    layer, problems = read_layer(file)
    assert problems == []
    after = Policy((layer.with_defaults(LOCAL),), before.project)
    assert ask(after) is None
    assert after.refuses_variable("TABLE_X") is after.refuses_endpoint("http://localhost:1") is None
    assert after.refuses_path(str(tmp_path)) is after.refuses_credentials(None) is None


def test_it_travels() -> None:
    policy = usual("/project").with_resource(["LAKE_KEY"], ["https://minio"])
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert policy.refuses_variable("LAKE_KEY") is None
    assert replace(policy, own_variables=()).refuses_variable("LAKE_KEY") is not None
    assert os.path.isabs(policy.project[0])
