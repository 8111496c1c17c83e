"""How to reach a container of ADLS: `*.fs.prop.*` suffixes, ADLSGen2PinotFS' where it has them.

Account and container stand in the URI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from pinot_assets.core.policy import Policy
from pinot_assets.errors import SettingError
from pinot_assets.source.settings import endpoints
from pinot_assets.source.uris import Root, adls_names

if TYPE_CHECKING:
    from obstore.store import AzureConfig, AzureStore

# What each setting means; `sasToken`, `endpoint` and `allowHttp` are this project's own.
KNOWN_PROPS = {
    "accessKey": "the account's key",
    "sasToken": "a shared access signature that may list, read, create, write and delete",
    "tenantId": "of a service principal",
    "clientId": "of a service principal",
    "clientSecret": "of a service principal",
    "endpoint": "URL of another service than Azure's, with the account as its path",
    "allowHttp": "true: let an endpoint that is not this machine be used without TLS",
}
_PRINCIPAL = ("tenantId", "clientId", "clientSecret")


@dataclass(frozen=True)
class AdlsSettings:
    """`BucketSettings` (see there) of ADLS.

    :ivar config: obstore's `AzureConfig`. Without credentials obstore asks the standard chain:
        AZURE_STORAGE_ACCOUNT_KEY and the like, workload identity, managed identity.
    :ivar credentials: gives obstore the key or the signature when it needs it.
    """

    container: str
    config: AzureConfig
    allow_http: bool
    credentials: Callable[[], Any] | None

    @classmethod
    def of(cls, root: Root, props: Mapping[str, str], policy: Policy) -> Self:
        """As `BucketSettings.of`."""
        values = endpoints.resolve("ADLS", KNOWN_PROPS, props, policy)
        container, account, host = adls_names(root.bucket)
        endpoint = values.get("endpoint")
        config: AzureConfig = {"account_name": account, "endpoint": endpoint or f"https://{host}"}
        credentials = _credentials(values)
        if "clientId" in values:
            config["tenant_id"] = values["tenantId"]
            config["client_id"] = values["clientId"]
            config["client_secret"] = values["clientSecret"]
            config["credential_type"] = "client_secret"  # else a key in the environment would go first
        allow_http = endpoints.allow_http("ADLS", endpoint, values, "accessKey or sasToken")
        return cls(container, config, allow_http, credentials)

    def client(self, timeout: timedelta) -> AzureStore:
        """As `BucketSettings.client`."""
        from obstore.store import AzureStore

        return AzureStore(
            self.container,
            config=self.config,
            client_options={"allow_http": self.allow_http, "timeout": timeout},
            retry_config=endpoints.RETRY,
            credential_provider=self.credentials,
        )

    def __repr__(self) -> str:
        return "AdlsSettings(…)"


def _credentials(values: Mapping[str, str]) -> Callable[[], Any] | None:
    """A provider and not plain config: obstore would let the environment's go first."""
    ways = [name for name in ("accessKey", "sasToken") if name in values]
    principal = [name for name in _PRINCIPAL if name in values]
    if len(ways) + bool(principal) > 1:
        raise SettingError(
            f"ADLS is given {', '.join(ways + principal)} at once",
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
