"""Whether a policy lets a table spec reach a place: asked when a spec is checked, and again at the door.

The door is where a store is opened, on every machine that opens one: what a variable holds there may be
something else than where the spec was checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import pyarrow.compute as pc

from pinot_assets.core.connections import origin_of
from pinot_assets.core.installation_policy import PROJECTS_OWN, Policy, PolicyRefusal
from pinot_assets.errors import SettingError
from pinot_assets.snapshot.receipt import SourceFile
from pinot_assets.source.file_table import columns_of
from pinot_assets.source.settings import is_reference, referenced, resolve_env
from pinot_assets.source.uris import Root, adls_names, parse_root

Refused = tuple[str, PolicyRefusal]
"""The key of a setting (empty for the place itself), and why."""

_ADLS: Final = ("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de")
_SQS: Final = re.compile(
    r"(?:(?:sqs|sqs-fips)\.[a-z0-9-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
    r"|(?:[a-z0-9-]+\.)?queue\.amazonaws\.com)"
)
_OWN_KEYS: Final = {
    "s3": ("accessKey", "secretKey"),
    "gs": ("gcpKey",),
    "abfss": ("accessKey", "sasToken", "clientSecret"),
}
_TOKEN: Final = "sessionToken"
_KEY_FILE: Final = "gcpKey"
_AMAZON: Final = "https://s3.amazonaws.com"
_AMAZONS: Final = re.compile(r"(?:[a-z0-9.-]+\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws)")


def refused_variables(text: str, policy: Policy) -> Iterator[PolicyRefusal]:
    """The variables that a text refers to and a spec may not."""
    for name in sorted(referenced(text)):
        if refusal := policy.refuses_variable(name):
            yield refusal


def refused_place(root: Root, props: Mapping[str, str], policy: Policy) -> Iterator[Refused]:
    """Everything about a place that the policy refuses.

    :param props: suffixes of `*.fs.prop.*` and their values, as they are written. What refers to a variable
        that is not set here is not judged.
    """
    if root.scheme == "file":
        if refusal := policy.refuses_data(root.path):
            yield "", refusal
        return
    for key, text in props.items():
        for refusal in refused_variables(text, policy):
            yield key, refusal
    values = _resolved(props, policy)
    own_keys = any(values.get(key, props.get(key)) for key in _OWN_KEYS[root.scheme])
    written = props.get("endpoint", "")
    endpoint = values.get("endpoint")
    if root.scheme == "abfss" and not endpoint:
        # An account's URI names its host as well, which need not be one of Azure's.
        _, account, host = adls_names(root.bucket)
        endpoint = None if host.removeprefix(f"{account}.blob.") in _ADLS else f"https://{host}"
    yield from _refused_service("endpoint" if written else "", endpoint, written, own_keys, policy)
    key_file = props.get(_KEY_FILE, "")
    if root.scheme == "gs" and key_file and not is_reference(key_file) and policy.layers:
        # A key file lies where data do not, so a variable that the spec may read has to name it.
        yield (
            _KEY_FILE,
            PolicyRefusal(
                "names a key file that table specs may not use here",
                f"set TABLE_GCP_KEY to its path on every machine, and write {_KEY_FILE}: ${{TABLE_GCP_KEY}}",
            ),
        )


def refused_queue(url: str, props: Mapping[str, str], policy: Policy) -> Iterator[PolicyRefusal]:
    """Everything about a queue of SQS that the policy refuses.

    :param url: its references resolved.
    :param props: `props_of_queue`.
    """
    own_keys = any(_resolved(props, policy).get(key, props.get(key)) for key in _OWN_KEYS["s3"])
    for _, refusal in _refused_service("", None if _is_amazons_queue(url) else url, url, own_keys, policy):
        yield refusal


def props_of_queue(url: str, props: Mapping[str, str], policy: Policy) -> dict[str, str]:
    """The settings of a bucket as they count for its queue, too.

    A table spec names the queue. So keys that are those of a resource of the code location, and not the
    spec's, are left out unless the queue is at the resource's own service.

    :param url: its references resolved.
    :param props: of the bucket; where keys of a resource stand in them, so does its endpoint.
    """
    keys = {key: text for key, text in props.items() if key in (*_OWN_KEYS["s3"], _TOKEN)}
    if not any(referenced(text).intersection(policy.own_variables) for text in keys.values()):
        return dict(props)
    endpoint = _resolved(props, policy).get("endpoint") if "endpoint" in props else _AMAZON
    if endpoint is not None and (
        origin_of(endpoint) == origin_of(url) or (_is_amazons(endpoint) and _is_amazons_queue(url))
    ):
        return dict(props)
    return {key: text for key, text in props.items() if key not in keys}


def refused_by_spark(root: Root, props: Mapping[str, str], policy: Policy) -> Iterator[PolicyRefusal]:
    """Why Spark's own readers may not open a place that the policy allows otherwise.

    They open buckets by Spark's settings, with credentials of the machine, whatever keys the spec has: those
    let it list a store of its own, and Spark read a bucket of that name elsewhere.
    """
    written, endpoint = props.get("endpoint", ""), _resolved(props, policy).get("endpoint")
    if root.scheme == "file" or (written and written in policy.own_endpoints):
        return
    refusal = policy.refuses_credentials(None)
    if refusal is None or (endpoint and policy.refuses_credentials(endpoint) is None):
        return
    fix = "leave out transforms, filter, engine: spark and Pinot's transformConfigs and filterConfig"
    reason = "is read by Spark, with this machine's own credentials"
    yield replace(refusal, reason=reason, fix=f"{fix}, or {refusal.fix.partition(', or ')[2]}")


def require_place(root: Root, props: Mapping[str, str], policy: Policy) -> None:
    """Open nothing that the policy refuses.

    :raises SettingError: it does; says which line of the policy would allow it.
    """
    for key, refusal in refused_place(root, props, policy):
        raise refusal.error(f"{key} of {root.uri}" if key else root.uri)


def require_data(uri: str, policy: Policy) -> None:
    """Read no file of this machine that the policy says is no data, whichever folder it was found in.

    :raises SettingError: it does; says which line of the policy would allow it.
    """
    if uri.startswith("file:") and (refusal := policy.refuses_data(parse_root(uri).path)):
        raise refusal.error(uri)


def require_all_data(files: Mapping[str, SourceFile], policy: Policy) -> None:
    """The same of listed files, of which only those are looked at that may be refused.

    :raises SettingError: one is refused.
    """
    uris = columns_of(files).column("uri")
    if not len(uris) or not uris[0].as_py().startswith("file:"):  # all lie below one root
        return
    for uri in uris.filter(pc.match_substring_regex(uris, PROJECTS_OWN)).to_pylist():
        require_data(uri, policy)


def _refused_service(
    key: str, endpoint: str | None, written: str, own_keys: bool, policy: Policy
) -> Iterator[Refused]:
    """:param endpoint: None for the cloud's own."""
    if written and written in policy.own_endpoints:
        return
    if (endpoint is not None and (refusal := policy.refuses_endpoint(endpoint))) or (
        not own_keys and (refusal := policy.refuses_credentials(endpoint))
    ):
        yield key, refusal


def _is_amazons_queue(url: str) -> bool:
    return _is_amazons(url) and _SQS.fullmatch(urlsplit(url).hostname or "") is not None


def _is_amazons(url: str) -> bool:
    is_safe = (origin_of(url) or "").startswith("https:")
    return is_safe and _AMAZONS.fullmatch(urlsplit(url).hostname or "") is not None


def _resolved(props: Mapping[str, str], policy: Policy) -> dict[str, str]:
    resolved = {}
    for key, text in props.items():
        with suppress(SettingError):  # not set here, or refused, which is told
            resolved[key] = resolve_env(text, policy)
    return resolved
