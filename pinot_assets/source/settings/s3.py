"""How to reach a bucket: StarTree's and Pinot's `input.fs.prop.*` suffixes turned into obstore's settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from pinot_assets.core.addresses import s3_endpoint
from pinot_assets.core.policy import Policy
from pinot_assets.errors import SettingError, SourceError
from pinot_assets.source.settings import endpoints
from pinot_assets.source.uris import Root

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

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
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")
"""It becomes part of a host's name, which nothing else may make another one of."""


@dataclass(frozen=True)
class S3Settings:
    """Resolved settings. Holds secrets: lives in one process, is never printed or pickled.

    :ivar config: obstore's `S3Config`.
    :ivar allow_http: whether plain HTTP is let through.
    :ivar credentials: gives obstore the keys when it needs them.
    """

    bucket: str
    config: S3Config
    allow_http: bool
    credentials: Callable[[], Any]

    @classmethod
    def of(cls, root: Root, props: Mapping[str, str], policy: Policy) -> Self:
        """Resolve environment references and check the settings.

        :raises SettingError: an unknown setting, half a key pair, plain HTTP to another machine.
        :raises SourceError: no keys were found.
        """
        values = endpoints.resolve("S3", KNOWN_PROPS, props, policy)
        endpoint = values.get("endpoint") or s3_endpoint(os.environ)
        credentials, region = _credentials(values)
        config: S3Config = {"region": _checked_region(values.get("region") or region or "us-east-1")}
        if endpoint:
            config["endpoint"] = endpoint
        if "serverSideEncryption" in values:
            config["server_side_encryption"] = values["serverSideEncryption"]
        if "ssekmsKeyId" in values:
            config["sse_kms_key_id"] = values["ssekmsKeyId"]
        allow_http = endpoints.allow_http("S3", endpoint, values, "accessKey and secretKey")
        return cls(root.bucket, config, allow_http, credentials)

    def client(self, timeout: timedelta) -> S3Store:
        """Obstore's own store."""
        from obstore.store import S3Store

        return S3Store(
            self.bucket,
            config=self.config,
            client_options={"allow_http": self.allow_http, "timeout": timeout},
            retry_config=endpoints.RETRY,
            credential_provider=self.credentials,
        )

    def __repr__(self) -> str:
        return "S3Settings(…)"


def _checked_region(region: str) -> str:
    if not _REGION.fullmatch(region):
        raise SettingError("region is not the name of an AWS region", hint="write one such as eu-central-1")
    return region


def _credentials(values: Mapping[str, str]) -> tuple[Callable[[], Any], str | None]:
    """Where the keys come from, and the region that their profile names, if any."""
    if ("accessKey" in values) != ("secretKey" in values):
        raise SettingError(
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
    if "sessionToken" in values:  # it belongs to keys, and the chain's have another one or none
        raise SettingError(
            "sessionToken is set for S3, and its keys are not", hint="set accessKey and secretKey as well"
        )
    import boto3
    from botocore.exceptions import PartialCredentialsError
    from obstore.auth.boto3 import Boto3CredentialProvider

    # boto3's chain also knows profiles and SSO, which obstore's own does not.
    try:
        session = boto3.Session()
        found = session.get_credentials()
    except PartialCredentialsError as error:
        raise SettingError(
            "Half of this machine's AWS credentials is set",
            why=str(error).rstrip("."),  # names settings, never a value
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither",
        ) from None
    if found is None:
        raise SourceError(  # may pass: the machine's role is asked over the network
            "No AWS credentials were found",
            hint="set accessKey and secretKey to ${…} references, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role",
        )
    return Boto3CredentialProvider(session), session.region_name
