"""Where Pinot is, as a Dagster resource."""

from typing import Any

import dagster as dg
from dagster._check import CheckError
from pydantic import Field

from pinot_assets.errors import PinotAssetsError
from pinot_assets.settings.environment import VARIABLES, Settings, load_profile, load_settings, settings_of

_SECRETS = ("password", "token", "zookeeper_password")


class PinotResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Pinot cluster and its ZooKeeper.

    Left empty, the environment decides (`pinot_assets.settings.environment.VARIABLES` names its variables),
    and without it the local stack, if the profile is `local`. With one field set, the fields alone count:
    half of them and half of the environment's would be a cluster that nobody meant. Secrets are given as
    `dg.EnvVar`; ones that are written out are refused.
    """

    profile: str = Field(
        default="", description="`local`, `staging` or `production`; empty for PINOT_ASSETS_PROFILE."
    )
    controller_url: str = ""
    zookeeper: str = ""
    cluster: str = ""
    broker_urls: list[str] = Field(default_factory=list)
    addresses: list[str] = Field(
        default_factory=list,
        description="`host:port` of brokers and servers that get credentials besides those ZooKeeper names.",
    )
    username: str = ""
    password: str = Field(default="", repr=False)
    token: str = Field(default="", repr=False)
    ca_bundle: str = ""
    client_cert: str = ""
    client_key: str = ""
    grpc_tls: str = Field(
        default="", description="`true` or `false`: TLS at servers' gRPC door; empty: as with the controller."
    )
    grpc_ca_bundle: str = ""
    grpc_client_cert: str = ""
    grpc_client_key: str = ""
    grpc_server_name: str = ""
    zookeeper_username: str = ""
    zookeeper_password: str = Field(default="", repr=False)
    zookeeper_tls: bool = Field(
        default=False,
        description="Speak TLS, trusting the system's authorities; implied where a file for it is named.",
    )
    zookeeper_ca_bundle: str = ""
    zookeeper_client_cert: str = ""
    zookeeper_client_key: str = ""
    allow_http: bool = Field(
        default=False, description="Let `production` reach another machine over plaintext HTTP."
    )
    allow_open_zookeeper: bool = Field(
        default=False, description="Let `production` keep its state in ZooKeeper without a user."
    )
    lease_seconds: int = Field(
        default=0, description="How long a dead run still holds its table (ZooKeeper session); 0 for 30."
    )
    write_seconds: int = Field(
        default=0, description="Longest upload of one segment, shorter than the lease; 0 for 20."
    )
    stall_minutes: int = Field(
        default=0, description="A run without progress for so long lets go of its table; 0 for 120."
    )
    hold_hours: int = Field(default=0, description="And so does one that held it for so long; 0 for 24.")

    def get_resource_definition(self) -> Any:
        """As Dagster takes it in, and shows it.

        :raises PinotAssetsError: a secret is written out.
        """
        for name in _SECRETS if not self._is_resolved() else ():
            value = getattr(self, name)
            if value and not isinstance(value, dg.EnvVar):
                raise PinotAssetsError(
                    f"`{name}` of the resource `pinot` holds a secret",
                    why="resources are shown in Dagster's UI",
                    hint="give it as dg.EnvVar('NAME'), and set NAME where Dagster runs",
                )
        return super().get_resource_definition()

    def _is_resolved(self) -> bool:
        """Whether Dagster made this one for a run: it holds what the variables hold, and is not shown."""
        try:
            self.get_resource_context()
        except CheckError:
            return False
        return True

    def settings(self) -> Settings:
        """Addresses and credentials.

        :raises PinotAssetsError: there is no Pinot to talk to, a setting is missing, or two contradict.
        """
        profile = load_profile(name=self.profile)
        values = {name: _text(getattr(self, name)) for name in VARIABLES}
        if not any(values.values()):
            return load_settings(profile=profile)
        return settings_of(values, profile, lambda name: f"pinot.{name}")


def _text(value: str | bool | int | list[str]) -> str:
    """As the environment would say it."""
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, bool):
        return "true" if value else ""
    return str(value or "")
