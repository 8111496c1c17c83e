"""Turns `*.fs.prop.*` suffixes into obstore's settings of a bucket of S3 or GCS or a container of ADLS.

For ADLS the URI names account and container.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store
from obstore.store import ObjectStore as Store

from pinot_assets.core.connections import s3_endpoint
from pinot_assets.core.installation_policy import Policy
from pinot_assets.errors import SettingError, SourceError
from pinot_assets.source.settings import allow_http, resolve_references
from pinot_assets.source.uris import Root, adls_names

if TYPE_CHECKING:
    from obstore.store import AzureConfig, GCSConfig, RetryConfig, S3Config

# For lists and HEADs: a page takes seconds at most, so a connection that is silent for a minute is dead.
CALL_TIMEOUT = timedelta(minutes=1)
# For one whole transfer of a large file over a slow line.
TRANSFER_TIMEOUT = timedelta(minutes=30)
# Retry for up to 20 s: a throttled or restarting store is back by then, and a wrong endpoint fails soon.
RETRY: RetryConfig = {
    "max_retries": 8,
    "retry_timeout": timedelta(minutes=1),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")
"""The region becomes part of a host name, so it may hold nothing that would change the host."""
_GOOGLE = "https://storage.googleapis.com"
_PRINCIPAL = ("tenantId", "clientId", "clientSecret")

Credentials = Callable[[], Mapping[str, object]]
"""Returns the keys when obstore needs them."""


@dataclass(frozen=True, repr=False)
class BucketSettings:
    """Resolved settings. They hold secrets: they stay in one process, and are never printed or pickled.

    :ivar make: makes obstore's store.
    :ivar bucket: the bucket, or the container.
    :ivar config: obstore's settings for that cloud.
    :ivar allow_http: whether plain HTTP is allowed.
    :ivar credentials: None if obstore finds them itself: in `config`, or by the cloud's standard chain.
    """

    make: Callable[..., Store]
    bucket: str
    config: Mapping[str, object]
    allow_http: bool
    credentials: Credentials | None = None

    def client(self, timeout: timedelta) -> Store:
        """Return obstore's own store, with this timeout for each call."""
        return self.make(
            self.bucket,
            config=self.config,
            client_options={"allow_http": self.allow_http, "timeout": timeout},
            retry_config=RETRY,
            credential_provider=self.credentials,
        )


def bucket_settings(root: Root, props: Mapping[str, str], policy: Policy) -> BucketSettings:
    """Resolve environment references and check the settings.

    :param props: suffixes of `input.fs.prop.*` (or `output.fs.prop.*`) and their values.
    :param policy: decides which variables may be read.
    :raises SettingError: a setting is unknown, malformed, half of a pair, or unsafe; never shows a value.
    :raises SourceError: no keys for S3 were found.
    """
    values = resolve_references(root.scheme, props, policy)
    return {"s3": _s3, "gs": _gcs, "abfss": _adls}[root.scheme](root.bucket, values)


def _s3(bucket: str, values: Mapping[str, str]) -> BucketSettings:
    endpoint = values.get("endpoint") or s3_endpoint(os.environ)
    credentials, region = _s3_credentials(values)
    region = values.get("region") or region or "us-east-1"
    if not _REGION.fullmatch(region):
        raise SettingError("region is not the name of an AWS region", hint="write one such as eu-central-1")
    config: S3Config = {"region": region}
    if endpoint:
        config["endpoint"] = endpoint
    if "serverSideEncryption" in values:
        config["server_side_encryption"] = values["serverSideEncryption"]
    if "ssekmsKeyId" in values:
        config["sse_kms_key_id"] = values["ssekmsKeyId"]
    lets_http = allow_http("S3", endpoint, values, "accessKey and secretKey")
    return BucketSettings(S3Store, bucket, config, lets_http, credentials)


def _s3_credentials(values: Mapping[str, str]) -> tuple[Credentials, str | None]:
    """Return the provider of the keys, and the region that their profile names, if any."""
    if ("accessKey" in values) != ("secretKey" in values):
        raise SettingError(
            "Half a key pair is set for S3", hint="set both accessKey and secretKey (not empty), or neither"
        )
    if "accessKey" in values:
        # We use a provider, since obstore would add AWS_SESSION_TOKEN of the environment to plain config.
        keys = {
            "access_key_id": values["accessKey"],
            "secret_access_key": values["secretKey"],
            "token": values.get("sessionToken"),
            "expires_at": None,
        }
        return lambda: keys, None
    if "sessionToken" in values:  # it belongs to its keys; keys of the chain have another token or none
        raise SettingError(
            "sessionToken is set for S3, and its keys are not", hint="set accessKey and secretKey as well"
        )
    import boto3
    from botocore.exceptions import PartialCredentialsError
    from obstore.auth.boto3 import Boto3CredentialProvider

    # boto3's chain also knows profiles and SSO; obstore's own chain does not.
    try:
        session = boto3.Session()
        credentials = session.get_credentials()
    except PartialCredentialsError as error:
        raise SettingError(
            "Half of this machine's AWS credentials is set",
            why=str(error).rstrip("."),  # names settings, never a value
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither",
        ) from None
    if credentials is None:
        raise SourceError(  # retrying may help: boto3 asks for the machine's role over the network
            "No AWS credentials were found",
            hint="set accessKey and secretKey to ${…} references, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role",
        )
    return Boto3CredentialProvider(session), session.region_name


def _gcs(bucket: str, values: Mapping[str, str]) -> BucketSettings:
    """Without a key file obstore uses the standard chain: GOOGLE_APPLICATION_CREDENTIALS, gcloud's own file,
    the machine's service account."""
    endpoint = values.get("endpoint")
    config: GCSConfig = {}
    if "gcpKey" in values:
        if values["gcpKey"].lstrip().startswith("{"):
            raise SettingError("gcpKey holds a key", hint="write the path of the key file")
        config["service_account"] = values["gcpKey"]
    if endpoint:
        config["base_url"] = endpoint
    elif "gcpKey" in values:
        # Set although it is the default: a key file may name an endpoint (`gcs_base_url`) past the policy.
        config["base_url"] = _GOOGLE
    return BucketSettings(_gcs_store, bucket, config, allow_http("GCS", endpoint, values, "gcpKey"))


def _gcs_store(bucket: str, **options: object) -> GCSStore:
    store: Callable[..., GCSStore] = GCSStore
    try:
        return store(bucket, **options)
    except (BaseError, OSError, ValueError):
        # We drop obstore's own message, because it may quote the file.
        raise SettingError(
            "The credentials for GCS cannot be used",
            hint="check the key file that gcpKey or GOOGLE_APPLICATION_CREDENTIALS names",
        ) from None


def _adls(bucket: str, values: Mapping[str, str]) -> BucketSettings:
    """Without credentials obstore uses the standard chain: AZURE_STORAGE_ACCOUNT_KEY and similar variables,
    workload identity, managed identity."""
    container, account, host = adls_names(bucket)
    endpoint = values.get("endpoint")
    config: AzureConfig = {"account_name": account, "endpoint": endpoint or f"https://{host}"}
    credentials = _adls_credentials(values)
    if "clientId" in values:
        config |= {
            "tenant_id": values["tenantId"],
            "client_id": values["clientId"],
            "client_secret": values["clientSecret"],
            "credential_type": "client_secret",  # otherwise a key in the environment would win
        }
    lets_http = allow_http("ADLS", endpoint, values, "accessKey or sasToken")
    return BucketSettings(AzureStore, container, config, lets_http, credentials)


def _adls_credentials(values: Mapping[str, str]) -> Credentials | None:
    """Return a provider; with plain config the environment's credentials would win over these."""
    ways = [name for name in ("accessKey", "sasToken") if name in values]
    principal = [name for name in _PRINCIPAL if name in values]
    if len(ways) + bool(principal) > 1:
        raise SettingError(
            f"ADLS has {', '.join(ways + principal)} at the same time",
            hint="set accessKey, or sasToken, or tenantId, clientId and clientSecret",
        )
    if principal and len(principal) < len(_PRINCIPAL):
        raise SettingError(
            "Part of a service principal is set for ADLS",
            hint="set tenantId, clientId and clientSecret (not empty), or none of them",
        )
    if not ways:
        return None
    name = {"accessKey": "access_key", "sasToken": "sas_token"}[ways[0]]
    value = values[ways[0]].removeprefix("?") if name == "sas_token" else values[ways[0]]
    return lambda: {name: value, "expires_at": None}
