"""The checks of `pinot-assets doctor` for the environment, and what it shows about Pinot.

The checks read each setting as a run would. They never show a value, because any value may be a secret.

For Pinot, the doctor shows what its version lacks and what we do instead, and the open segment replacements:
a push that died half way leaves its lineage entry behind, and Pinot then refuses the next push that touches
the same segments.
"""

from __future__ import annotations

import difflib
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Column, Table

from pinot_assets.core.check_result import CheckResult, failed, hours, passed, warned
from pinot_assets.core.connections import S3_ENDPOINTS, origin_of
from pinot_assets.core.installation_policy import POLICY
from pinot_assets.core.untrusted import ANSWER, OBJECT, RECEIPT, RECEIPTS, REPLY, most_values
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.health.serving import owned
from pinot_assets.pinot import HttpPinotClient, Timeouts, versions
from pinot_assets.pinot.client.user_rights import NoRights
from pinot_assets.pinot.lineage import LineageEntry, LineageState
from pinot_assets.segment.column.target import target_for
from pinot_assets.session.values.state import seq_of
from pinot_assets.settings.environment import (
    PROFILE,
    TABLES,
    Profile,
    load_profile,
    load_settings,
    named_settings,
    tables_directory,
    unused_settings,
)
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.settings.variables import VARIABLES
from pinot_assets.table_spec.yaml.policy_file import policy_notes, policy_of
from pinot_assets.zookeeper import cluster_client

_TIMEOUTS: Final = Timeouts(connect=1.0, call=3.0)
_PATIENCE_S: Final = 3.0
_URLS: Final = (*S3_ENDPOINTS, "PINOT_ASSETS_WEBHOOK_URL", "DAGSTER_WEBSERVER_URL")
_HALVES: Final = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ("PINOT_ASSETS_PUSHGATEWAY_USER", "PINOT_ASSETS_PUSHGATEWAY_PASSWORD"),
)
_KNOWN: Final = frozenset(variable.name for section in VARIABLES.values() for variable in section)
_PREFIX: Final = "PINOT_ASSETS_"
"""Prefix that only this project's variables have; variables of other programs may begin with PINOT_, too."""
_SURELY_MEANT: Final = 0.93
"""Similarity above which a name counts as a typing error: one or two letters missing, added or exchanged."""


def check_environment(env: Mapping[str, str]) -> list[CheckResult]:
    """Run all checks of the environment; checks that others depend on come first."""
    checks: list[CheckResult] = []
    with _as_check(checks, "profile"):
        profile = load_profile(env)
        checks.append(passed("profile", f"{profile}{'' if env.get(PROFILE) else ', since none is set'}."))
        with _as_check(checks, "settings"):
            _check_cluster(checks, env, profile)
        with _as_check(checks, "policy"):
            checks += _policy(env)
        with _as_check(checks, "Spark"):
            # Imported here: it does not import Spark, but much else that no other check needs.
            from pinot_assets.ingest.spark.environment import check_settings

            if check_settings(env, profile):
                checks.append(passed("Spark", "its settings can be read."))
    checks += _tables(env)
    _check_limits(checks, env)
    return [*checks, *_urls(env), *_halves(env), *_unknown(env)]


@contextmanager
def _as_check(
    checks: list[CheckResult], name: str, way_out: str = "docs/deploy.md has the settings"
) -> Iterator[None]:
    """Turn an error inside the block into a failed check of that name."""
    try:
        yield
    except PinotAssetsError as error:
        checks.append(failed(name, f"{error.reason.rstrip('.')}.", error.hint or way_out))


# --- Pinot ---------------------------------------------------------------------------------------


def _check_cluster(checks: list[CheckResult], env: Mapping[str, str], profile: Profile) -> None:
    if (settings := named_settings(env, profile)) is None:
        checks.append(_local(env))
        return
    for tls in (settings.pinot.tls, settings.pinot.grpc.tls):  # ZooKeeper's TLS has its own check
        tls.context()
    checks.append(passed("settings", "they name a Pinot and its ZooKeeper."))
    with _as_check(checks, "controller", "check PINOT_CONTROLLER_URL, and that it is up"):
        with HttpPinotClient(replace(settings.pinot, timeouts=_TIMEOUTS)) as pinot:
            version = pinot.version() or "without a version"
        checks.append(passed("controller", f"it answers: Pinot {version}."))
    with _as_check(checks, "ZooKeeper", "check PINOT_ZOOKEEPER and PINOT_CLUSTER"):
        hosts, cluster, access = settings.zookeeper, settings.cluster, settings.zookeeper_access
        with cluster_client(hosts, cluster, access, timeout_s=_PATIENCE_S):
            checks.append(passed("ZooKeeper", f"it answers, and has the cluster {cluster}."))


def _local(env: Mapping[str, str]) -> CheckResult:
    if not (unused := unused_settings(env)):
        return passed("settings", "they name no Pinot, so the local stack is used.")
    are = "is" if len(unused) == 1 else "are"
    return warned(
        "settings",
        f"{', '.join(unused)} {are} set and not used: without addresses, pinot-assets uses the local stack.",
        "set PINOT_CONTROLLER_URL and PINOT_ZOOKEEPER, or unset the others",
    )


# --- tables and what they may reach --------------------------------------------------------------


def _policy(env: Mapping[str, str]) -> Iterator[CheckResult]:
    folder = tables_directory(env)
    policy_of(folder, env)
    notes = policy_notes(folder, env)
    for note in notes:
        way_out = f"mount the file, or correct line {note.line} of {note.file}"
        yield warned("policy", f"{note.key}: {note.text}.", way_out)
    if not notes:
        said = f"{POLICY} can be read" if env.get(POLICY) else "the defaults apply"
        yield passed("policy", f"{said}.")


def _tables(env: Mapping[str, str]) -> Iterator[CheckResult]:
    folder = tables_directory(env)
    if folder.is_dir() or not env.get(TABLES):
        return
    yield failed("tables", f"{folder} is not a folder.", f"set {TABLES} to the folder of table specs")


# --- everything else -----------------------------------------------------------------------------


def _check_limits(checks: list[CheckResult], env: Mapping[str, str]) -> None:
    sized = (REPLY, ANSWER, OBJECT, RECEIPT, RECEIPTS)
    reads: list[Callable[[], object]] = [
        most_values,
        lambda: FileLimits.of_environment(env),
        *(lambda limit=limit: limit.bytes for limit in sized),
    ]
    for read in reads:
        with _as_check(checks, "limits"):
            read()


def _urls(env: Mapping[str, str]) -> Iterator[CheckResult]:
    for name in _URLS:
        if not (url := env.get(name, "")):
            continue
        if origin_of(url) is None:
            reason = f"{name} is not an address that can be reached."
            yield failed("addresses", reason, "write http://host[:port] or https://host[:port]")
        elif name in S3_ENDPOINTS and not _listens(url):
            yield warned("addresses", f"nothing answers at the address of {name}.", "check it")


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        socket.create_connection((parts.hostname or "", port), timeout=_PATIENCE_S).close()
    except OSError:
        return False
    return True


def _halves(env: Mapping[str, str]) -> Iterator[CheckResult]:
    for pair in _HALVES:
        for given, lacking in (pair, pair[::-1]):
            if env.get(given) and not env.get(lacking):
                says = f"{given} is set, and {lacking} is not."
                yield failed("credentials", says, f"set {lacking}, or unset {given}")


def _unknown(env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Find misspelled variables: such a setting, for example a policy, would have no effect."""
    for name in sorted(env.keys() - _KNOWN):
        near = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=_SURELY_MEANT)
        if near or name.startswith(_PREFIX):
            way_out = (
                f"did you mean {near[0]}?" if near else "docs/reference/configuration.md lists all of them"
            )
            yield warned("variables", f"{name} is set, and nothing reads it.", way_out)


# --- the Pinot that is there ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PinotLook:
    """The answers of the environment's Pinot.

    :ivar version: its version, empty if it names none.
    :ivar servers: what its servers name, by server; None if it could not be read.
    :ivar guarded: whether Pinot protects segments of an open replacement from other deletes.
    :ivar traits: what this release lacks, and what we do instead.
    :ivar open: (raw) table and lineage entry of each open replacement; None if they could not be read.
    :ivar trouble: why they could not be read.
    :ivar unaskable: why assertions cannot query the servers; empty if they can.
    :ivar refused_by_server: how a server refuses what the audit asks; empty if it does not.
    """

    url: str
    version: str
    guarded: bool
    traits: tuple[versions.Trait, ...]
    open: tuple[tuple[str, LineageEntry], ...] | None
    trouble: str = ""
    unaskable: str = ""
    refused_by_server: str = ""
    servers: Mapping[str, str] | None = None


def look_at_pinot() -> PinotLook | None:
    """Ask the controller; return None if none is configured or it does not answer."""
    try:
        connection = replace(load_settings().pinot, timeouts=_TIMEOUTS)
        with HttpPinotClient(connection) as pinot:
            version = pinot.version()
            # Only some releases have a setting that switches the protection off.
            guarded = (
                not versions.honours_lineage_settings(version)
                or pinot.controller_setting(versions.EXCLUSIVE_DELETE) != "false"
            )
            servers = [name for name in pinot.instances() if name.startswith("Server_")]
            refused, unaskable = _refused_by_server(pinot, servers), ""
            named = None
            with suppress(PinotAssetsError):
                named = pinot.versions_of(servers)
            try:
                pinot.require_server_queries()
            except SpecError as error:
                unaskable = error.in_one_line
    except PinotAssetsError:
        return None
    traits = tuple(versions.traits_of(version))
    look = PinotLook(
        connection.controller_url,
        version,
        guarded,
        traits,
        None,
        unaskable=unaskable,
        refused_by_server=refused,
        servers=named,
    )
    try:
        with HttpPinotClient(connection) as pinot:
            entries = (
                (table, entry)
                for table in pinot.offline_tables()
                for entry in pinot.lineage(table).in_state(LineageState.IN_PROGRESS)
            )
            return replace(look, open=tuple(entries))
    except PinotAssetsError as error:
        return replace(look, trouble=error.what)


def _refused_by_server(pinot: HttpPinotClient, servers: Sequence[str]) -> str:
    """Ask servers, at most three, until one answers: the audit asks each one for the CRCs of its segments."""
    for server in servers[:3]:
        try:
            pinot.ask_server(server, "/tables")
        except NoRights as error:
            return f"{server}: {error.in_one_line}"
        except PinotAssetsError:
            continue  # it is down; another one says as much about rights
        break
    return ""


def show_pinot(console: Console) -> None:
    """Print the controller's answers; print nothing if none is configured or it does not answer."""
    if (look := look_at_pinot()) is None:
        return
    named = (
        f"Pinot {look.version}"
        if look.version
        else f"This Pinot names no version and is treated as {versions.REFERENCE}"
    )
    console.print(f"\n[bold]{named}[/], at {look.url}")
    if look.servers:
        console.print(_releases(look.servers.values()))
    table = _grid("what", "this Pinot", "so here")
    for trait in look.traits:
        table.add_row(trait.topic, trait.pinot, trait.here)
    console.print(table)
    if not look.guarded:
        console.print(
            f"[yellow]warn[/] {versions.EXCLUSIVE_DELETE} is off on this controller: anyone can "
            "delete segments of an open replacement.\n→ remove the setting from the controller's "
            "configuration"
        )
    if look.unaskable:
        console.print(
            f"[yellow]warn[/] servers and brokers cannot answer the assertions of `audit:`: {look.unaskable}"
        )
    if look.refused_by_server:
        console.print(
            "[yellow]warn[/] a server refuses what the audit asks it, so no session will switch: "
            f"{look.refused_by_server}"
        )
    if look.open is None:
        console.print(f"[yellow]warn[/] the open segment replacements cannot be listed: {look.trouble}")
    elif look.open:
        console.print("\n[bold]Open segment replacements[/]")
        rows, now_ms = _grid("table", "lineage entry", "open for", "owner", "way on"), int(time.time() * 1000)
        for name, entry in look.open:
            rows.add_row(name, entry.id, f"{hours(now_ms - entry.timestamp_ms)} h", *_owner(name, entry))
        console.print(rows)


def _releases(named: Collection[str]) -> str:
    """Return which releases the servers have, and what `writeFor: auto` makes of that."""
    counts = Counter(text.partition("-")[0] for text in named)
    each = [f"{count} of {text or 'a release before 1.4'}" for text, count in counts.items()]
    known = f"servers that Pinot knows: {', '.join(sorted(each))}"
    try:
        target = target_for(versions.oldest_server(named))
    except ValueError as unknown:
        return f"{known}; no segment can be written for the oldest: {unknown}"
    return f"{known}; a table on all of them would get segments for {target.release}"


def _grid(*columns: str) -> Table:
    folded = (Column(header, overflow="fold") for header in columns)
    return Table(*folded, box=None, header_style="bold", padding=(0, 2, 0, 0))


def _owner(table: str, entry: LineageEntry) -> tuple[str, str]:
    if not owned(table, entry):
        return "somebody else", "its owner ends or reverts it; pinot-assets never does"
    sessions = sorted(
        {seq for name in entry.segments_to or entry.segments_from if (seq := seq_of(name)) is not None}
    )
    return (
        ", ".join(f"cp{seq}" for seq in sessions),
        f"the next run of {table} ends it or reverts it; see: pinot-assets session show {table}",
    )
