"""How to reach a bucket of GCS: `*.fs.prop.*` suffixes, Pinot's GcsPinotFS' where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from pinot_assets.core.policy import Policy
from pinot_assets.errors import SettingError
from pinot_assets.source.settings import endpoints
from pinot_assets.source.uris import Root

if TYPE_CHECKING:
    from obstore.store import GCSConfig, GCSStore

# What each setting means; `endpoint` and `allowHttp` are this project's own.
KNOWN_PROPS = {
    "gcpKey": "path of a service account's key file, on every machine that reads or writes",
    "projectId": "no use here: a bucket's name says enough",
    "endpoint": "URL of another service than Google's",
    "allowHttp": "true: let an endpoint that is not this machine be used without TLS",
}

_GOOGLE = "https://storage.googleapis.com"


@dataclass(frozen=True)
class GcsSettings:
    """`BucketSettings` (see there) of GCS.

    :ivar config: obstore's `GCSConfig`. Without a key file obstore asks the standard chain:
        GOOGLE_APPLICATION_CREDENTIALS, gcloud's own, the machine's service account.
    """

    bucket: str
    config: GCSConfig
    allow_http: bool

    @classmethod
    def of(cls, root: Root, props: Mapping[str, str], policy: Policy) -> Self:
        """As `BucketSettings.of`."""
        values = endpoints.resolve("GCS", KNOWN_PROPS, props, policy)
        endpoint = values.get("endpoint")
        config: GCSConfig = {}
        if "gcpKey" in values:
            if values["gcpKey"].lstrip().startswith("{"):
                raise SettingError("gcpKey holds a key", hint="write the path of the key file")
            config["service_account"] = values["gcpKey"]
        if endpoint:
            config["base_url"] = endpoint
        elif "gcpKey" in values:
            # Said all the same: a key file may name an endpoint, too (`gcs_base_url`), past the policy.
            config["base_url"] = _GOOGLE
        return cls(root.bucket, config, endpoints.allow_http("GCS", endpoint, values, "gcpKey"))

    def client(self, timeout: timedelta) -> GCSStore:
        """As `BucketSettings.client`."""
        from obstore.exceptions import BaseError
        from obstore.store import GCSStore

        try:
            return GCSStore(
                self.bucket,
                config=self.config,
                client_options={"allow_http": self.allow_http, "timeout": timeout},
                retry_config=endpoints.RETRY,
            )
        except (BaseError, OSError, ValueError):
            # Its own words may quote the file.
            raise SettingError(
                "The credentials for GCS cannot be used",
                hint="check the key file that gcpKey or GOOGLE_APPLICATION_CREDENTIALS names",
            ) from None

    def __repr__(self) -> str:
        return "GcsSettings(…)"
