"""What `pinot-assets doctor` says of the environment: each setting read as a run reads it, before one does.

A value is never shown: any of them may hold a secret.
"""

from __future__ import annotations

import difflib
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core import limits
from pinot_assets.core.addresses import S3_ENDPOINTS, origin_of
from pinot_assets.core.check_result import CheckResult, failed, passed, warned
from pinot_assets.core.policy import POLICY
from pinot_assets.errors import PinotAssetsError
from pinot_assets.metrics.pushing import PASSWORD, USER
from pinot_assets.pinot import HttpPinotClient, Timeouts
from pinot_assets.settings.environment import (
    PROFILE,
    TABLES,
    Profile,
    Settings,
    load_profile,
    named_settings,
    tables_directory,
    unused_settings,
)
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.settings.variables import VARIABLES
from pinot_assets.table_spec.yaml.policy_file import policy_notes, policy_of
from pinot_assets.zookeeper.client import cluster_client

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
        checks += _told("settings", _pinot(env, profile))
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


def _pinot(env: Mapping[str, str], profile: Profile) -> Iterator[CheckResult]:
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
    sized = (limits.REPLY, limits.ANSWER, limits.OBJECT, limits.RECEIPT, limits.RECEIPTS)
    reads: list[Callable[[], object]] = [
        limits.most_values,
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
