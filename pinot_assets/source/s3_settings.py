"""How to reach a bucket: StarTree's and Pinot's `input.fs.prop.*` suffixes turned into obstore's settings."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pinot_assets.errors import SourceError
from pinot_assets.source.env import resolve_env

if TYPE_CHECKING:
    from obstore.store import RetryConfig, S3Config

# What each setting means; `allowHttp` and `sessionToken` are this project's own.
KNOWN_PROPS = {
    "region": "AWS region",
    "endpoint": "URL of another S3 service than AWS",
    "accessKey": "access key id",
    "secretKey": "secret access key",
    "sessionToken": "token of temporary keys",
    "allowHttp": "true: let an endpoint that is not this machine be used without TLS",
    "serverSideEncryption": "aws:kms or AES256, for what is written",
    "ssekmsKeyId": "KMS key for aws:kms",
    "disableAcl": "no use here: no ACL is ever sent",
}

# Listing and looking: a page takes seconds at most, so a minute of silence is a dead connection.
CALL_TIMEOUT = timedelta(minutes=1)
# One whole transfer of a large file on a slow line.
TRANSFER_TIMEOUT = timedelta(minutes=30)
# Up to 20 s of patience: rides out a throttled or restarting store, yet a wrong endpoint is told soon.
RETRY: RetryConfig = {
    "max_retries": 8,
    "retry_timeout": timedelta(minutes=1),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}


@dataclass(frozen=True)
class S3Settings:
    """Resolved settings. Holds secrets: lives in one process, is never printed or pickled.

    :ivar config: obstore's `S3Config`.
    :ivar allow_http: whether plain HTTP is let through.
    :ivar credentials: gives obstore the keys when it needs them.
    """

    config: S3Config
    allow_http: bool
    credentials: Callable[[], Any]

    def __repr__(self) -> str:
        return "S3Settings(…)"


def resolve_settings(props: Mapping[str, str]) -> S3Settings:
    """Resolve environment references and check the settings.

    :raises SourceError: an unknown setting, half a key pair, plain HTTP to another machine, no keys.
    """
    unknown = sorted(set(props) - set(KNOWN_PROPS))
    if unknown:
        raise SourceError(
            f"Unknown S3 setting {', '.join(unknown)}", hint=f"known are {', '.join(KNOWN_PROPS)}"
        )
    values = {name: resolved for name, value in props.items() if (resolved := resolve_env(value))}
    endpoint = values.get("endpoint") or _endpoint_of_environment()
    credentials, region = _credentials(values)
    config: S3Config = {"region": values.get("region") or region or "us-east-1"}
    if endpoint:
        config["endpoint"] = endpoint
    if "serverSideEncryption" in values:
        config["server_side_encryption"] = values["serverSideEncryption"]
    if "ssekmsKeyId" in values:
        config["sse_kms_key_id"] = values["ssekmsKeyId"]
    return S3Settings(config, _allow_http(endpoint, values), credentials)


def _endpoint_of_environment() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _credentials(values: Mapping[str, str]) -> tuple[Callable[[], Any], str | None]:
    """Where the keys come from, and the region that their profile names, if any."""
    if ("accessKey" in values) != ("secretKey" in values):
        raise SourceError(
            "Half a key pair is set for S3", hint="set both accessKey and secretKey (not empty), or neither"
        )
    if "accessKey" in values:
        # A provider and not plain config: obstore would add AWS_SESSION_TOKEN of the environment to it.
        keys = {
            "access_key_id": values["accessKey"],
            "secret_access_key": values["secretKey"],
            "token": values.get("sessionToken"),
            "expires_at": None,
        }
        return lambda: keys, None
    import boto3  # type: ignore[import-untyped]
    from obstore.auth.boto3 import Boto3CredentialProvider

    # boto3's chain also knows profiles and SSO, which obstore's own does not.
    session = boto3.Session()
    if session.get_credentials() is None:
        raise SourceError(
            "No AWS credentials were found",
            hint="set accessKey and secretKey to ${…} references, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role",
        )
    return Boto3CredentialProvider(session), session.region_name


def _allow_http(endpoint: str | None, values: Mapping[str, str]) -> bool:
    allowed = values.get("allowHttp", "false").lower()
    if allowed not in ("true", "false"):
        raise SourceError("allowHttp is neither true nor false", hint="write true or false")
    if endpoint is None:
        return False
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise SourceError(
            "The S3 endpoint is not a plain URL",
            hint="write https://host[:port]; keys go to accessKey and secretKey",
        )
    if parts.scheme == "https":
        return False
    if allowed == "false" and not is_loopback(parts.hostname):
        raise SourceError(
            f"The S3 endpoint {parts.hostname} would be reached without TLS",
            why="what is read and written could be changed on its way",
            hint="use https://, or set allowHttp to true on a network that you trust",
        )
    return True


def is_loopback(host: str) -> bool:
    """Whether a host can only be this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
