"""What `pinot-assets doctor` says of the environment, and of the Pinot that is there.

Each setting is read as a run reads it, before one does. A value is never shown: any may hold a secret.

Of Pinot: what its version lacks and what we do instead; and the segment replacements that stand open. A push
that died half way leaves its lineage entry behind, and Pinot refuses the next one that touches the same
segments.
"""

from __future__ import annotations

import difflib
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from pinot_assets.core.check_result import CheckResult, failed, hours, passed, warned
from pinot_assets.core.connections import S3_ENDPOINTS, origin_of
from pinot_assets.core.policy import POLICY
from pinot_assets.core.untrusted import ANSWER, OBJECT, RECEIPT, RECEIPTS, REPLY, most_values
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.health.lineage import owned
from pinot_assets.metrics.pushing import PASSWORD, USER
from pinot_assets.pinot import HttpPinotClient, Timeouts
from pinot_assets.pinot.lineage import LineageEntry, LineageState
from pinot_assets.pinot.versions import (
    EXCLUSIVE_DELETE,
    REFERENCE,
    Trait,
    honours_lineage_settings,
    traits_of,
)
from pinot_assets.session.values.state import seq_of
from pinot_assets.settings.environment import (
    PROFILE,
    TABLES,
    Profile,
    Settings,
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
_HALVES: Final = (("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), (USER, PASSWORD))
_KNOWN: Final = frozenset(variable.name for section in VARIABLES.values() for variable in section)
_PREFIX: Final = "PINOT_ASSETS_"
"""Begins variables of this project's alone; others may well be called PINOT_ as well."""
_SURELY_MEANT: Final = 0.93
"""How alike a name is that differs by a letter or two that was left out, added or exchanged."""


def check_environment(env: Mapping[str, str]) -> list[CheckResult]:
    """All checks, those first that others go by."""
    checks = [*_told("profile", _profile(env))]
    if checks[0].passed:
        profile = load_profile(env)
        checks += _told("settings", _cluster_checks(env, profile))
        checks += _told("policy", _policy(env))
        checks += _told("Spark", _spark(env, profile))
    return [*checks, *_tables(env), *_limits(env), *_urls(env), *_halves(env), *_unknown(env)]


def _told(
    name: str, checks: Iterable[CheckResult], way_out: str = "docs/deploy.md has the settings"
) -> Iterator[CheckResult]:
    """What these checks say; an error of theirs is a failure of that name."""
    try:
        yield from checks
    except PinotAssetsError as error:
        yield failed(name, f"{error.reason.rstrip('.')}.", error.hint or way_out)


def _profile(env: Mapping[str, str]) -> Iterator[CheckResult]:
    profile = load_profile(env)
    yield passed("profile", f"{profile}{'' if env.get(PROFILE) else ', since none is set'}.")


# --- Pinot ---------------------------------------------------------------------------------------


def _cluster_checks(env: Mapping[str, str], profile: Profile) -> Iterator[CheckResult]:
    settings = named_settings(env, profile)
    if settings is None:
        yield _local(env)
        return
    for tls in (settings.pinot.tls, settings.pinot.grpc.tls):  # for ZooKeeper its own check tells
        tls.context()
    yield passed("settings", "they name a Pinot and its ZooKeeper.")
    yield from _told("controller", _version(settings), "check PINOT_CONTROLLER_URL, and that it is up")
    yield from _told("ZooKeeper", _cluster(settings), "check PINOT_ZOOKEEPER and PINOT_CLUSTER")


def _local(env: Mapping[str, str]) -> CheckResult:
    unused = unused_settings(env)
    if not unused:
        return passed("settings", "they name no Pinot, so the local stack is meant.")
    are = "is" if len(unused) == 1 else "are"
    return warned(
        "settings",
        f"{', '.join(unused)} {are} set and not used: without addresses the local stack is meant.",
        "set PINOT_CONTROLLER_URL and PINOT_ZOOKEEPER, or unset the others",
    )


def _version(settings: Settings) -> Iterator[CheckResult]:
    with HttpPinotClient(replace(settings.pinot, timeouts=_TIMEOUTS)) as pinot:
        yield passed("controller", f"it answers: Pinot {pinot.version() or 'without a version'}.")


def _cluster(settings: Settings) -> Iterator[CheckResult]:
    with cluster_client(
        settings.zookeeper, settings.cluster, settings.zookeeper_access, timeout_s=_PATIENCE_S
    ):
        yield passed("ZooKeeper", f"it answers, and has the cluster {settings.cluster}.")


# --- tables and what they may reach --------------------------------------------------------------


def _policy(env: Mapping[str, str]) -> Iterator[CheckResult]:
    folder = tables_directory(env)
    policy_of(folder, env)
    notes = policy_notes(folder, env)
    for note in notes:
        way_out = f"mount it, or correct line {note.line} of {note.file}"
        yield warned("policy", f"{note.key}: {note.text}.", way_out)
    if not notes:
        said = f"{POLICY} can be read" if env.get(POLICY) else "the defaults count"
        yield passed("policy", f"{said}.")


def _tables(env: Mapping[str, str]) -> Iterator[CheckResult]:
    folder = tables_directory(env)
    if folder.is_dir() or not env.get(TABLES):
        return
    yield failed("tables", f"{folder} is no folder.", f"point {TABLES} at the folder of table specs")


# --- everything else -----------------------------------------------------------------------------


def _spark(env: Mapping[str, str], profile: Profile) -> Iterator[CheckResult]:
    # Here: it brings nothing of Spark's along, but much that no other check needs.
    from pinot_assets.ingest.spark.environment import check_settings

    if check_settings(env, profile):
        yield passed("Spark", "its settings can be read.")


def _limits(env: Mapping[str, str]) -> Iterator[CheckResult]:
    sized = (REPLY, ANSWER, OBJECT, RECEIPT, RECEIPTS)
    reads: list[Callable[[], object]] = [
        most_values,
        lambda: FileLimits.of_environment(env),
        *(lambda limit=limit: limit.bytes for limit in sized),
    ]
    for read in reads:
        yield from _told("limits", _silent(read))


def _silent(read: Callable[[], object]) -> Iterator[CheckResult]:
    """A value that can be read is no news."""
    read()
    yield from ()


def _urls(env: Mapping[str, str]) -> Iterator[CheckResult]:
    for name in _URLS:
        url = env.get(name, "")
        if not url:
            continue
        if origin_of(url) is None:
            reason = f"{name} is no address that can be reached."
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
    """A slip in a name would be a setting that counts for nothing: a policy, for one."""
    for name in sorted(env.keys() - _KNOWN):
        near = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=_SURELY_MEANT)
        if near or name.startswith(_PREFIX):
            way_out = (
                f"did you mean {near[0]}?" if near else "docs/reference/configuration.md has all of them"
            )
            yield warned("variables", f"{name} is set, and nothing reads it.", way_out)


# --- the Pinot that is there ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PinotLook:
    """What the Pinot of the environment says.

    :ivar version: empty where it names none.
    :ivar guarded: whether segments of an open replacement are safe from other deletes.
    :ivar traits: what this release lacks, and what is done instead.
    :ivar open: (raw) table and lineage entry of the replacements that stand open; None where that cannot be
        told.
    :ivar trouble: why it cannot.
    :ivar unaskable: why servers cannot be asked what assertions ask; empty where they can.
    """

    url: str
    version: str
    guarded: bool
    traits: tuple[Trait, ...]
    open: tuple[tuple[str, LineageEntry], ...] | None
    trouble: str = ""
    unaskable: str = ""


def look_at_pinot() -> PinotLook | None:
    """Ask the controller; None where none is configured or none answers."""
    try:
        connection = replace(load_settings().pinot, timeouts=_TIMEOUTS)
        with HttpPinotClient(connection) as pinot:
            version = pinot.version()
            # As far as this release lets anybody switch it off.
            guarded = (
                not honours_lineage_settings(version) or pinot.controller_setting(EXCLUSIVE_DELETE) != "false"
            )
            unaskable = _unaskable(pinot)
    except PinotAssetsError:
        return None
    traits = tuple(traits_of(version))
    look = PinotLook(connection.controller_url, version, guarded, traits, None, unaskable=unaskable)
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


def _unaskable(pinot: HttpPinotClient) -> str:
    try:
        pinot.require_server_queries()
    except SpecError as error:
        return error.in_one_line
    return ""


def show_pinot(console: Console) -> None:
    """Print what a controller answers; nothing where none is configured or none does."""
    look = look_at_pinot()
    if look is None:
        return
    named = (
        f"Pinot {look.version}"
        if look.version
        else f"This Pinot names no version and is taken for {REFERENCE}"
    )
    console.print(f"\n[bold]{named}[/], at {look.url}")
    console.print(sheet(look.version))
    if not look.guarded:
        console.print(
            f"[yellow]warn[/] {EXCLUSIVE_DELETE} is off on this controller: segments of an open replacement "
            "can be deleted by anybody.\n→ remove the setting from the controller's configuration"
        )
    if look.unaskable:
        console.print(f"[yellow]warn[/] assertions of `audit:` cannot be asked: {look.unaskable}")
    if look.open is None:
        console.print(f"[yellow]warn[/] which segment replacements stand open cannot be told: {look.trouble}")
    elif look.open:
        console.print("\n[bold]Segment replacements that stand open[/]")
        console.print(open_replacements(list(look.open), int(time.time() * 1000)))


def sheet(version: str) -> Table:
    """The rows of `pinot_assets.pinot.versions` that hold for that release."""
    table = _grid("what", "this Pinot", "so here")
    for trait in traits_of(version):
        table.add_row(trait.topic, trait.pinot, trait.here)
    return table


def open_replacements(entries: list[tuple[str, LineageEntry]], now_ms: int) -> Table:
    """Whose they are and what ends them; nothing is forced away here.

    :param entries: each with the (raw) name of its table.
    """
    rows = _grid("table", "lineage entry", "open for", "owner", "way on")
    for table, entry in entries:
        age = f"{hours(now_ms - entry.timestamp_ms)} h"
        rows.add_row(table, entry.id, age, *_owner(table, entry))
    return rows


def _grid(*columns: str) -> Table:
    return Table(*columns, box=None, header_style="bold", padding=(0, 2, 0, 0))


def _owner(table: str, entry: LineageEntry) -> tuple[str, str]:
    if not owned(table, entry):
        return "somebody else", "its owner ends or reverts it; it is never forced away from here"
    sessions = sorted(
        {seq for name in entry.segments_to or entry.segments_from if (seq := seq_of(name)) is not None}
    )
    return (
        ", ".join(f"cp{seq}" for seq in sessions),
        f"the next run of {table} ends it or takes it back; see: pinot-assets session show {table}",
    )
