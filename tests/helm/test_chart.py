"""The chart, rendered for several sets of values: schemas, secrets, probes, selectors, who reaches whom."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

import pytest
import yaml
from fakes.project import ROOT
from helm.rendering import CHART, NEWEST, OLDEST, VALUES, Pod, Release, helm, release, template

from pinot_assets.core.json_object import JsonObject
from pinot_assets.settings.variables import VARIABLES

every_values = pytest.mark.parametrize("values", VALUES)
OUR_OWN = {"DAGSTER_PG_USER", "DAGSTER_PG_PASSWORD"}
"""Variables of the chart's dagster.yaml: it names them itself."""


@every_values
def test_helm_finds_nothing_to_say(values: str) -> None:
    done = helm("lint", "--strict", str(CHART), "--kube-version", NEWEST, "--values", str(VALUES[values]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


@every_values
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_knows_every_key(
    values: str, version: str, schema_errors: Callable[[Iterable[JsonObject], str], list[str]]
) -> None:
    made = release(values)
    assert schema_errors([*made.documents, made.job()], version) == []


def test_a_key_that_kubernetes_does_not_know_is_noticed(
    schema_errors: Callable[[Iterable[JsonObject], str], list[str]],
) -> None:
    [first, *_] = release("required").of_kind("Deployment").values()
    assert schema_errors([{**first, "spec": {**first["spec"], "replica": 1}}], NEWEST)


def variables(pod: Pod) -> dict[str, JsonObject]:
    return {entry["name"]: entry for entry in pod.container.get("env", [])}


@every_values
def test_no_secret_is_a_value(values: str) -> None:
    made = release(values)
    assert made.of_kind("Secret") == {}
    for pod in made.pods().values():
        for name, entry in variables(pod).items():
            if re.search(r"(PASSWORD|SECRET|TOKEN|WEBHOOK_URL|_KEY)$", name) and name != "TABLE_GCP_KEY":
                assert {*entry["valueFrom"]} == {"secretKeyRef"}, name


def test_each_secret_comes_from_where_the_values_say() -> None:
    made = release("everything")
    wanted = yaml.safe_load(VALUES["everything"].read_text())["secretEnv"]
    for component in ("code", "run"):
        env = variables(made.pods()[component])
        for name, source in wanted.items():
            assert env[name]["valueFrom"]["secretKeyRef"] == {"name": source["secret"], "key": source["key"]}
        assert env["DAGSTER_PG_USER"]["valueFrom"]["secretKeyRef"] == {
            "name": "dagster-postgres", "key": "user",
        }  # fmt: skip
    for component in ("webserver", "daemon"):
        assert {*variables(made.pods()[component])} == {"DAGSTER_HOME", *OUR_OWN}


def test_executors_get_what_tables_refer_to_and_nothing_of_pinot() -> None:
    executor = release("spark").pods()["executor"]
    assert {*variables(executor)} == {
        "AWS_REGION",
        "TABLE_LAKE_KEY",
        "PINOT_ASSETS_STAGING",
        "PYTHONSAFEPATH",
    }
    assert executor.spec["automountServiceAccountToken"] is False


@every_values
def test_every_variable_of_the_chart_is_one_of_the_project(values: str) -> None:
    known = {variable.name for group in VARIABLES.values() for variable in group} | OUR_OWN
    for pod in release(values).pods().values():
        assert {name for name in variables(pod) if name.startswith(("PINOT_", "DAGSTER_"))} <= known


@every_values
def test_every_container_is_confined(values: str) -> None:
    for component, pod in release(values).pods().items():
        assert pod.spec["securityContext"]["runAsNonRoot"] is True
        assert pod.spec["securityContext"]["runAsUser"] == 1000
        assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod.container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        }
        if component != "executor":  # Spark sets those of executors itself, see test_spark.py
            resources = pod.container["resources"]
            assert {*resources["requests"]} == {"cpu", "memory"}
            assert "memory" in resources["limits"]
        [tmp] = [mount for mount in pod.container["volumeMounts"] if mount["mountPath"] == "/tmp"]
        [volume] = [volume for volume in pod.spec["volumes"] if volume["name"] == tmp["name"]]
        assert volume["emptyDir"]["sizeLimit"]


@every_values
def test_every_server_has_probes(values: str) -> None:
    made = release(values)
    behind_a_service = {
        d["spec"]["selector"]["app.kubernetes.io/component"] for d in made.of_kind("Service").values()
    }
    assert {*made.deployed()} == {"webserver", "daemon", "code"}
    for component, pod in made.deployed().items():
        wanted = {"startupProbe", "livenessProbe"} | (
            {"readinessProbe"} if component in behind_a_service else set()
        )
        assert {name for name in pod.container if name.endswith("Probe")} == wanted
        # A slow start is no reason to kill a server: five minutes, whatever the machine does.
        startup = pod.container["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= 300


@every_values
def test_mounts_have_their_volumes_and_volumes_their_mounts(values: str) -> None:
    made = release(values)
    config_maps, claims = {*made.of_kind("ConfigMap"), "table-specs"}, {"table-specs"}
    for pod in made.pods().values():
        volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
        assert {mount["name"] for mount in pod.container["volumeMounts"]} == volumes.keys()
        for volume in volumes.values():
            assert volume.get("configMap", {}).get("name") in {None, *config_maps}
            assert volume.get("persistentVolumeClaim", {}).get("claimName") in {None, *claims}


def selects(selector: JsonObject, pod: Pod) -> bool:
    """Whether a LabelSelector selects a pod."""
    if any(pod.labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In"
        if pod.labels.get(expression["key"]) not in expression["values"]:
            return False
    return True


@every_values
def test_every_selector_finds_its_pods(values: str) -> None:
    made = release(values)
    pods = made.pods()
    for kind, path in (("Deployment", "selector"), ("PodDisruptionBudget", "selector")):
        for document in made.of_kind(kind).values():
            component = document["metadata"]["labels"]["app.kubernetes.io/component"]
            assert [c for c, pod in pods.items() if selects(document["spec"][path], pod)] == [component]
    for service in made.of_kind("Service").values():
        [pod] = [p for p in pods.values() if selects({"matchLabels": service["spec"]["selector"]}, p)]
        [port] = service["spec"]["ports"]
        assert port["targetPort"] in {named["name"] for named in pod.container["ports"]}
    for policy in made.of_kind("NetworkPolicy").values():
        assert any(selects(policy["spec"]["podSelector"], pod) for pod in pods.values())


@every_values
def test_every_account_is_there_and_has_a_token_only_where_it_has_a_role(values: str) -> None:
    made = release(values)
    accounts = made.of_kind("ServiceAccount")
    bound = {d["subjects"][0]["name"]: d["roleRef"]["name"] for d in made.of_kind("RoleBinding").values()}
    assert {*bound} <= {*accounts}
    assert {*bound.values()} == {*made.of_kind("Role")}
    for pod in made.pods().values():
        if pod.component == "executor":
            continue
        assert pod.spec["serviceAccountName"] in accounts
        assert pod.spec["automountServiceAccountToken"] == (pod.spec["serviceAccountName"] in bound)
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())


def rules(made: Release, direction: str, pod: Pod) -> Iterator[JsonObject]:
    """All rules of one direction (`ingress`, `egress`) that hold for a pod."""
    for policy in made.of_kind("NetworkPolicy").values():
        if selects(policy["spec"]["podSelector"], pod):
            yield from policy["spec"].get(direction, [])


def ports_between(made: Release, source: str, target: str) -> set[int]:
    """TCP ports of `target` that `source` reaches by rules that name pods, on both sides."""
    pods = made.pods()
    if source not in pods or target not in pods:
        return set()

    def allowed(direction: str, peers: str, of: Pod, other: Pod) -> set[int]:
        return {
            port["port"]
            for rule in rules(made, direction, of)
            for peer in rule.get(peers, [])
            if "namespaceSelector" not in peer
            and "podSelector" in peer
            and selects(peer["podSelector"], other)
            for port in rule["ports"]
            if port["protocol"] == "TCP"
        }

    outgoing = allowed("egress", "to", pods[source], pods[target])
    return outgoing & allowed("ingress", "from", pods[target], pods[source])


COMPONENTS = ("webserver", "daemon", "code", "run", "executor")


@pytest.mark.parametrize("values", ["required", "everything", "spark"])
def test_pods_reach_those_of_the_release_that_they_need_and_no_others(values: str) -> None:
    made = release(values)
    between = {
        (source, target): ports
        for source in COMPONENTS
        for target in COMPONENTS
        if (ports := ports_between(made, source, target))
    }
    spark = {
        ("executor", "run"): {7078, 7079},
        ("run", "executor"): {7079},
        ("executor", "executor"): {7079},
    }
    assert between == {
        ("webserver", "code"): {4000},
        ("daemon", "code"): {4000},
        **(spark if values == "spark" else {}),
    }
    code = made.pods()["code"].container
    assert [port["containerPort"] for port in code["ports"]] == [4000]


def ports_outside(made: Release, pod: Pod) -> set[int]:
    """TCP ports of anything that is not of the release."""
    return {
        port["port"]
        for rule in rules(made, "egress", pod)
        if not any({*peer} == {"podSelector"} for peer in rule.get("to", []))
        for port in rule["ports"]
        if port["protocol"] == "TCP"
    }


def test_what_lies_outside_is_reached_by_those_who_need_it() -> None:
    made = release("spark")
    outside = {component: ports_outside(made, pod) for component, pod in made.pods().items()}
    project = {53, 5432, 443, 8099, 8090, 2181, 2281}
    assert outside == {
        "webserver": {53, 5432, 443, 6443},
        "daemon": {53, 5432, 443, 6443},
        "code": project,
        "run": project | {6443},
        "executor": {53, 443},
    }
    plain = release("required")
    assert 6443 not in ports_outside(plain, plain.pods()["run"]), "it starts no pods"
    everything = release("everything")
    assert {6432, 9092} <= ports_outside(everything, everything.pods()["run"])


@pytest.mark.parametrize("values", ["required", "everything", "spark"])
def test_everything_else_is_denied(values: str) -> None:
    made = release(values)
    for pod in made.pods().values():
        of_all = [
            policy["spec"]
            for policy in made.of_kind("NetworkPolicy").values()
            if selects(policy["spec"]["podSelector"], pod)
        ]
        assert {"Ingress", "Egress"} <= {kind for spec in of_all for kind in spec["policyTypes"]}
        assert all(
            rule.get("ports") for direction in ("ingress", "egress") for rule in rules(made, direction, pod)
        )


def test_nobody_reaches_the_ui_unless_values_say_so() -> None:
    closed, opened = release("required"), release("everything")
    assert [*rules(closed, "ingress", closed.pods()["webserver"])] == []
    [rule] = rules(opened, "ingress", opened.pods()["webserver"])
    assert rule["ports"] == [{"protocol": "TCP", "port": 3000}]
    [port] = opened.pods()["webserver"].container["ports"]
    assert port["containerPort"] == 3000


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("imagePullPolicy=Always", "imagePullPolicy"),
        ("image.pulPolicy=Always", "pulPolicy"),
        ("env.PINOT_CONTROLER_URL=https://pinot", "PINOT_CONTROLER_URL"),
        ("env.PINOT_TOKEN=abc", "PINOT_TOKEN"),
        ("env.AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY"),
        ("env.PINOT_ASSETS_SPARK_MASTER=yarn", "PINOT_ASSETS_SPARK_MASTER"),
        ("secretEnv.PINOT_TOKEN=abc", "PINOT_TOKEN"),
        ("secretEnv.PINOT_TOKEN.secret=pinot", "key"),
        ("secretEnv.PINOT_TOKENS.secret=pinot,secretEnv.PINOT_TOKENS.key=a", "PINOT_TOKENS"),
        ("spark.master=sc://connect", "master"),
        ("spark.properties.master=local", "invalid propertyName 'master'"),
        ("spark.properties.spark\\.hadoop\\.fs\\.s3a\\.secret\\.key=abc", "secret.key"),
        ("spark.executors.memory=6Gi", "memory"),
        ("networkPolicy.pinot.ports=9000", "ports"),
        ("networkPolicy.pinnot.ports={9000}", "pinnot"),
        ("postgres.password=abc", "password"),
        ("daemon.replicas=2", "replicas"),
        ("policy.allow=true", "allow"),
        ("tables.files.events=text", "invalid propertyName 'events'"),
        ("secretMounts.tls=/opt/venv", "secretMounts"),
    ],
)
def test_a_value_that_the_chart_does_not_know_is_refused(setting: str, named: str) -> None:
    done = template("--values", str(VALUES["required"]), "--set", setting)
    assert done.returncode != 0
    assert "don't meet the specifications of the schema" in done.stderr
    assert named in done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("env.PINOT_CONTROLLER_URL=", "env.PINOT_CONTROLLER_URL is required"),
        ("env.PINOT_ZOOKEEPER=", "env.PINOT_ZOOKEEPER is required"),
        ("postgres.host=", "postgres.host is required"),
        ("postgres.secret=", "postgres.secret is required"),
        ("env.PINOT_CONTROLLER_URL=https://pinot:9999", "networkPolicy.pinot.ports lacks 9999"),
        ("env.PINOT_CONTROLLER_URL=https://pinot", "networkPolicy.pinot.ports lacks 443"),
        ("env.PINOT_ZOOKEEPER=a:2181\\,b:2182/pinot", "lacks the port of b:2182"),
        ("tables.claim=a,tables.configMap=b", "set one of files, configMap and claim"),
        (
            "env.PINOT_USER=a,secretEnv.PINOT_USER.secret=b,secretEnv.PINOT_USER.key=c",
            "PINOT_USER is in env and",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(setting: str, said: str) -> None:
    done = template("--values", str(VALUES["required"]), "--set", setting)
    assert done.returncode != 0
    assert said in done.stderr


def test_every_value_is_explained_and_has_a_schema() -> None:
    """The schema knows each key of values.yaml, and values.yaml each key of the schema."""
    schema = json.loads((CHART / "values.schema.json").read_text())

    def keys(part: JsonObject) -> JsonObject | None:
        part = schema["definitions"][part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part
        return part.get("properties")

    def compare(value: JsonObject, part: JsonObject, place: str) -> None:
        if (known := keys(part)) is None or not value:
            return
        assert value.keys() == known.keys() - {"global"}, place
        for key, below in value.items():
            if isinstance(below, dict):
                compare(below, known[key], f"{place}.{key}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    [version] = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert (chart["version"], chart["appVersion"]) == (version, version)
