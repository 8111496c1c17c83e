"""dagster-aws' `S3Resource` as what holds for tables whose spec says nothing else.

What a table says of its stores travels to Spark's executors, so an `S3Resource` is turned into the same
`*.fs.prop.*` settings: addresses as they are, secrets only as `${NAME}`, resolved where a store is opened.
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
    """The spec, its stores reached as `s3` says where it says nothing itself.

    :raises SpecError: see `object_store_defaults`.
    """
    defaults = object_store_defaults(s3)
    own = spec.ingestion
    # Whoever wrote the code location allows the variables and endpoints of the resource.
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
    with suppress(SourceError):  # a variable that is missing is told where the store is opened
        uri = resolve_env(uri, policy)
    return uri.lower().startswith(("gs:", "abfs:", "abfss:"))


def object_store_defaults(s3: S3Resource) -> dict[str, str]:
    """Suffixes of `*.fs.prop.*` and their values, as a resource that was not yet initialized says them.

    :raises SpecError: a secret is written out, or a field says what the executors cannot be told.
    """
    _refuse_unknown(s3)
    values = {ours: getattr(s3, theirs) for theirs, ours in (_ADDRESS | _KEYS).items()}
    for field, name in _KEYS.items():
        if values[name] and not isinstance(values[name], dg.EnvVar):
            raise SpecError(
                f"`{field}` of the resource `s3` holds a secret",
                why="resources are shown in Dagster's UI",
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
    """Never a key of one and a token of the other. The resource's keys, and its leave for plain HTTP, are for
    its own endpoint: one that the table spec names gets neither."""
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
            "`endpoint_url` of the resource `s3` holds credentials", hint="give keys as dg.EnvVar"
        )
