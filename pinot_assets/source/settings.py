"""The settings of buckets, which of them need each other, and whether their values may be used.

The check of a table spec looks at the names only, never at a value. When a bucket is opened, everything is
checked, with the values of that machine's environment. A spec names a variable, `${NAME}`, and the machine
that opens the store has its value: so no plan, no run config and no pickle holds a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core.connections import is_loopback
from pinot_assets.core.installation_policy import Policy
from pinot_assets.errors import SettingError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def is_reference(text: str) -> bool:
    """Whether the text is one `${NAME}` and nothing else; a default would be a literal value again."""
    match = _REFERENCE.fullmatch(text)
    return match is not None and match.group(2) is None


def referenced(text: str) -> set[str]:
    """Return the names of the variables in the text, with or without a default."""
    return {name for name, _ in _REFERENCE.findall(text)}


def resolve_env(value: str, policy: Policy) -> str:
    """Replace `${NAME}` and `${NAME:-default}` by the values of the environment.

    As in a shell, the default also replaces an empty variable.

    :param policy: decides which variables may be read.
    :raises SettingError: a variable is not set or may not be read, or a `${` has neither of the two forms.
        Names the variable, never a value.
    """
    # Also checks defaults: a later reader may have its own variables, such as Hadoop's `${env.NAME}`.
    if "${" in _REFERENCE.sub(lambda reference: reference[2] or "", value):
        raise SettingError(
            "A setting holds a malformed environment reference",
            hint="write ${NAME} or ${NAME:-default}; a name is letters, digits and underscores",
        )
    return _REFERENCE.sub(lambda reference: _look_up(reference, policy), value)


def _look_up(reference: re.Match[str], policy: Policy) -> str:
    name, default = reference.groups()
    if refusal := policy.refuses_variable(name):
        raise refusal.error("A setting")
    value = os.environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        raise SettingError(
            f"The environment variable {name} is not set",
            why="a setting refers to it",
            hint=f"export {name} where Dagster and the Spark executors run",
        )
    return value


_ALLOW_HTTP: Final = "true: allow an endpoint on another machine without TLS"

KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": {
        "region": "AWS region",
        "endpoint": "URL of another S3 service than AWS",
        "accessKey": "access key id",
        "secretKey": "secret access key",
        "sessionToken": "token of temporary keys",
        "allowHttp": _ALLOW_HTTP,
        "serverSideEncryption": "aws:kms or AES256, for what is written",
        "ssekmsKeyId": "KMS key for aws:kms",
        "disableAcl": "has no effect: no ACL is ever sent",
    },
    "gs": {
        "gcpKey": "path of a service account's key file, on every machine that reads or writes",
        "projectId": "has no effect: the name of a bucket is enough",
        "endpoint": "URL of another service than Google's",
        "allowHttp": _ALLOW_HTTP,
    },
    "abfss": {
        "accessKey": "the account's key",
        "sasToken": "a shared access signature that may list, read, create, write and delete",
        "tenantId": "of a service principal",
        "clientId": "of a service principal",
        "clientSecret": "of a service principal",
        "endpoint": "URL of another service than Azure's, with the account as its path",
        "allowHttp": _ALLOW_HTTP,
    },
}
"""The settings of each scheme and their meaning. The names are StarTree's and Pinot's `*.fs.prop.*` suffixes,
except our own `allowHttp`, `sessionToken`, `sasToken`, and `endpoint` of GCS and ADLS."""

_CLOUDS: Final = {"s3": "S3", "gs": "GCS", "abfss": "ADLS"}

NEEDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "s3": {
        "accessKey": ("secretKey",),
        "secretKey": ("accessKey",),
        "sessionToken": ("accessKey", "secretKey"),
    },
    "gs": {},
    "abfss": {
        "tenantId": ("clientId", "clientSecret"),
        "clientId": ("tenantId", "clientSecret"),
        "clientSecret": ("tenantId", "clientId"),
    },
}
"""Settings that need others, and which."""

IN_NEED: Final = frozenset(name for needs in NEEDS.values() for name in needs)
"""All settings that need others."""


def unknown_settings(scheme: str, names: Collection[str]) -> list[str]:
    """Return the names that are not settings of that scheme's buckets."""
    return [name for name in names if name not in KNOWN[scheme]]


def incomplete_settings(scheme: str, names: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the first setting that lacks others, with those that it lacks."""
    for name in names:
        if lacking := [other for other in NEEDS[scheme].get(name, ()) if other not in names]:
            yield name, lacking
            return  # the others of the pair would only lack the same


def resolve_references(scheme: str, props: Mapping[str, str], policy: Policy) -> dict[str, str]:
    """Return the settings that are not empty, with their references resolved.

    :param policy: decides which variables may be read.
    :raises SettingError: a setting is unknown, or a variable is not set or may not be read.
    """
    if unknown := sorted(unknown_settings(scheme, props)):
        raise SettingError(
            f"Unknown {_CLOUDS[scheme]} setting {', '.join(unknown)}",
            hint=f"known settings are {', '.join(KNOWN[scheme])}",
        )
    return {name: resolved for name, value in props.items() if (resolved := resolve_env(value, policy))}


def allow_http(cloud: str, endpoint: str | None, values: Mapping[str, str], keys: str) -> bool:
    """Whether an endpoint may be reached without TLS.

    :param cloud: the cloud's name, for messages.
    :param values: the settings; only `allowHttp` is read.
    :param keys: names of the settings for credentials, for messages.
    :raises SettingError: not a URL; or another machine's without TLS, and `allowHttp` is not true.
    """
    allowed = values.get("allowHttp", "false").lower()
    if allowed not in ("true", "false"):
        raise SettingError("allowHttp is neither true nor false", hint="write true or false")
    if endpoint is None:
        return False
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise SettingError(
            f"The {cloud} endpoint is not a plain URL", hint=f"write https://host[:port]; keys go to {keys}"
        )
    if parts.scheme == "https":
        return False
    if allowed == "false" and not is_loopback(parts.hostname):
        raise SettingError(
            f"pinot-assets would connect to the {cloud} endpoint {parts.hostname} without TLS",
            why="others could change what is read and written on its way",
            hint="use https://, or set allowHttp to true on a network that you trust",
        )
    return True
