"""Use dagster-aws' `S3Resource` as the default for tables whose spec does not configure its stores.

Spark's executors receive a table's `*.fs.prop.*` settings, so this module converts an `S3Resource` into such
settings: addresses as they are, secrets only as `${NAME}`, which is resolved where a store is opened.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import dagster as dg
from dagster_aws.s3 import S3Resource

from pinot_assets.core.installation_policy import Policy
from pinot_assets.errors import SourceError, SpecError
from pinot_assets.source import resolve_env
from pinot_assets.source.settings import referenced
from pinot_assets.table_spec import TableSpec

_ADDRESS: Final = {"region_name": "region", "endpoint_url": "endpoint"}
_KEYS: Final = {
    "aws_access_key_id": "accessKey",
    "aws_secret_access_key": "secretKey",
    "aws_session_token": "sessionToken",
}


def with_object_store(spec: TableSpec, s3: S3Resource) -> TableSpec:
    """Return the spec with the settings of `s3` for its stores, where the spec itself sets nothing.

    :raises SpecError: see `object_store_defaults`.
    """
    defaults = object_store_defaults(s3)
    own = spec.ingestion
    # The author of the code location chose the resource's variables and endpoint, so the policy allows them.
    variables = {name for text in defaults.values() for name in referenced(text)}
    endpoints = (defaults["endpoint"],) if "endpoint" in defaults else ()
    policy = spec.policy.with_resource(variables, endpoints)
    update = {
        name: _completed(props, defaults)
        for name, props, uri in (
            ("input_props", own.input_props, own.input_dir_uri),
            ("output_props", own.output_props, own.staging_uri),
        )
        if not _is_of_another_cloud(uri, spec.policy)
    }
    return replace(spec, ingestion=own.model_copy(update=update), policy=policy)


def _is_of_another_cloud(uri: str, policy: Policy) -> bool:
    with suppress(SourceError):  # opening the store reports a missing variable
        uri = resolve_env(uri, policy)
    return uri.lower().startswith(("gs:", "abfs:", "abfss:"))


def object_store_defaults(s3: S3Resource) -> dict[str, str]:
    """Return the values for `*.fs.prop.*`, by suffix, from a resource that Dagster has not initialized yet.

    :raises SpecError: a field contains a secret in plain text, or something that executors cannot receive.
    """
    _refuse_unknown(s3)
    values = {ours: getattr(s3, theirs) for theirs, ours in (_ADDRESS | _KEYS).items()}
    for field, name in _KEYS.items():
        if values[name] and not isinstance(values[name], dg.EnvVar):
            raise SpecError(
                f"`{field}` of the resource `s3` contains a secret",
                why="Dagster's UI shows resources",
                hint="give it as dg.EnvVar('NAME'), and set NAME where Dagster and the executors run",
            )
    if not s3.use_ssl:
        values["allowHttp"] = "true"
    return {
        name: "${" + value.env_var_name + "}" if isinstance(value, dg.EnvVar) else value
        for name, value in values.items()
        if value
    }


def _completed(own: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the spec's settings with the defaults added, but do not mix the keys of both. If the spec names
    an endpoint, leave out the resource's keys and `allowHttp`: they are for the resource's own endpoint."""
    keys = set(_KEYS.values())
    left_out = keys if keys & own.keys() else set()
    if "endpoint" in own:
        left_out = keys | {"allowHttp"}
    return {name: value for name, value in defaults.items() if name not in left_out} | dict(own)


def _refuse_unknown(s3: S3Resource) -> None:
    for field, hint in (
        ("profile_name", "set AWS_PROFILE where Dagster and the executors run"),
        ("use_unsigned_session", "give it keys or a role"),
    ):
        if getattr(s3, field):
            raise SpecError(f"`{field}` of the resource `s3` is not supported", hint=hint)
    if s3.verify is False:
        raise SpecError("`verify` of the resource `s3` is off", hint="trust its certificate on every machine")
    endpoint = s3.endpoint_url
    if endpoint and not isinstance(endpoint, dg.EnvVar) and urlsplit(endpoint).username:
        raise SpecError(
            "`endpoint_url` of the resource `s3` contains credentials", hint="give keys as dg.EnvVar"
        )
