"""Decides whether a policy lets a table spec reach a place: when a spec is checked, and when a store opens.

The second check runs on every machine that opens a store, because a variable may have another value there
than where the spec was checked.
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
"""The setting's key (empty for the place itself), and the reason."""

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
    """Yield a refusal for each variable in a text that the spec may not use."""
    for name in sorted(referenced(text)):
        if refusal := policy.refuses_variable(name):
            yield refusal


def refused_place(root: Root, props: Mapping[str, str], policy: Policy) -> Iterator[Refused]:
    """Yield everything about a place that the policy refuses.

    :param props: suffixes of `*.fs.prop.*` and their values, as written. A value that refers to a variable
        which is not set here is not checked.
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
        # The URI of an account names its host, too, which may be outside Azure.
        _, account, host = adls_names(root.bucket)
        endpoint = None if host.removeprefix(f"{account}.blob.") in _ADLS else f"https://{host}"
    yield from _refused_service("endpoint" if written else "", endpoint, written, own_keys, policy)
    key_file = props.get(_KEY_FILE, "")
    if root.scheme == "gs" and key_file and not is_reference(key_file) and policy.layers:
        # A key file lies outside the data, so only a variable that the spec may read can name it.
        yield (
            _KEY_FILE,
            PolicyRefusal(
                "names a key file that table specs may not use here",
                f"set TABLE_GCP_KEY to its path on every machine, and write {_KEY_FILE}: ${{TABLE_GCP_KEY}}",
            ),
        )


def refused_queue(url: str, props: Mapping[str, str], policy: Policy) -> Iterator[PolicyRefusal]:
    """Yield everything about an SQS queue that the policy refuses.

    :param url: the queue's URL, its references resolved.
    :param props: as `props_of_queue` returns them.
    """
    own_keys = any(_resolved(props, policy).get(key, props.get(key)) for key in _OWN_KEYS["s3"])
    for _, refusal in _refused_service("", None if _is_amazons_queue(url) else url, url, own_keys, policy):
        yield refusal


def props_of_queue(url: str, props: Mapping[str, str], policy: Policy) -> dict[str, str]:
    """Return the settings of a bucket that may be used for its queue, too.

    The table spec names the queue. So if the keys come from a resource of the code location, not from the
    spec, they are left out, unless the queue belongs to the resource's own service.

    :param url: the queue's URL, its references resolved.
    :param props: the bucket's settings; if they have a resource's keys, they have its endpoint, too.
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
    """Yield why Spark's own readers may not open a place that the policy allows otherwise.

    Spark opens buckets by its own settings with the machine's credentials, whatever keys the spec has. So a
    spec could list its own store with its keys and make Spark read a bucket of the same name elsewhere.
    """
    written, endpoint = props.get("endpoint", ""), _resolved(props, policy).get("endpoint")
    if root.scheme == "file" or (written and written in policy.own_endpoints):
        return
    refusal = policy.refuses_credentials(None)
    if refusal is None or (endpoint and policy.refuses_credentials(endpoint) is None):
        return
    fix = "remove transforms, filter, engine: spark and Pinot's transformConfigs and filterConfig"
    reason = "is read by Spark, with this machine's own credentials"
    yield replace(refusal, reason=reason, fix=f"{fix}, or {refusal.fix.partition(', or ')[2]}")


def require_place(root: Root, props: Mapping[str, str], policy: Policy) -> None:
    """Check that the policy allows a place, before it is opened.

    :raises SettingError: the policy refuses it; the hint names the line of the policy that would allow it.
    """
    for key, refusal in refused_place(root, props, policy):
        raise refusal.error(f"{key} of {root.uri}" if key else root.uri)


def require_data(uri: str, policy: Policy) -> None:
    """Check that the policy allows a file of this machine as data, in whichever folder it was found.

    :raises SettingError: the policy refuses it; the hint names the line of the policy that would allow it.
    """
    if uri.startswith("file:") and (refusal := policy.refuses_data(parse_root(uri).path)):
        raise refusal.error(uri)


def require_all_data(files: Mapping[str, SourceFile], policy: Policy) -> None:
    """Like `require_data` for listed files; it looks only at those that the policy could refuse.

    :raises SettingError: one is refused.
    """
    uris = columns_of(files).column("uri")
    if not len(uris) or not uris[0].as_py().startswith("file:"):  # all files are below one root
        return
    for uri in uris.filter(pc.match_substring_regex(uris, PROJECTS_OWN)).to_pylist():
        require_data(uri, policy)


def _refused_service(
    key: str, endpoint: str | None, written: str, own_keys: bool, policy: Policy
) -> Iterator[Refused]:
    """:param endpoint: None means the cloud's own endpoint."""
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
        with suppress(SettingError):  # it is not set here, or is refused and reported elsewhere
            resolved[key] = resolve_env(text, policy)
    return resolved
