"""Where Pinot is, as a Dagster resource."""

import dagster as dg
from pydantic import Field

from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot.connection import BasicAuth, PinotConnection, Tls, TokenAuth
from pinot_assets.settings import DEFAULT_CLUSTER, Settings, load_settings


class PinotResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Pinot cluster and its ZooKeeper.

    Left empty, the environment decides (PINOT_CONTROLLER_URL, PINOT_ZOOKEEPER, PINOT_CLUSTER,
    PINOT_USER and PINOT_PASSWORD or PINOT_TOKEN, PINOT_CA_BUNDLE), and without it the local stack.
    Both together are refused: nobody could tell which setting holds. Give secrets as `dg.EnvVar`.
    """

    controller_url: str = ""
    zookeeper: str = ""
    cluster: str = DEFAULT_CLUSTER
    broker_urls: list[str] = Field(default_factory=list)
    username: str = ""
    password: str = Field(default="", repr=False)
    token: str = Field(default="", repr=False)
    ca_bundle: str = ""
    client_cert: str = ""
    client_key: str = ""

    def settings(self) -> Settings:
        """Addresses and credentials.

        :raises PinotAssetsError: there is no Pinot to talk to, a setting is missing, or two contradict.
        """
        if not self._is_set():
            return load_settings()
        self._refuse_halves()
        auth: BasicAuth | TokenAuth | None = None
        if self.token:
            auth = TokenAuth(self.token)
        elif self.username:
            auth = BasicAuth(self.username, self.password)
        tls = Tls(
            ca_bundle=self.ca_bundle or None,
            client_cert=self.client_cert or None,
            client_key=self.client_key or None,
        )
        connection = PinotConnection(
            self.controller_url, auth=auth, tls=tls, broker_urls=tuple(self.broker_urls)
        )
        return Settings(connection, self.zookeeper, self.cluster)

    def _is_set(self) -> bool:
        return any(
            getattr(self, name) != field.get_default(call_default_factory=True)
            for name, field in type(self).model_fields.items()
        )

    def _refuse_halves(self) -> None:
        for missing, what in (
            (not self.controller_url, "controller_url is not set"),
            (not self.zookeeper, "zookeeper is not set"),
            (bool(self.username) and not self.password, "password is not set, and username is"),
            (bool(self.password) and not self.username, "username is not set, and password is"),
            (bool(self.token) and bool(self.username), "both token and username are set"),
        ):
            if missing:
                raise PinotAssetsError(
                    f"the resource `pinot` cannot be used: {what}",
                    hint="set controller_url and zookeeper with one kind of credentials, or nothing at all: "
                    "then the environment decides",
                )
