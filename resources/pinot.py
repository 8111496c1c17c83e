"""Where Pinot is, as a Dagster resource."""

import dagster as dg

from pinot_assets.pinot.connection import BasicAuth, PinotConnection, Tls, TokenAuth
from pinot_assets.settings import DEFAULT_CLUSTER, Settings, load_settings


class PinotResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Pinot cluster and its ZooKeeper.

    Left empty, the environment decides (PINOT_CONTROLLER_URL, PINOT_ZOOKEEPER, PINOT_CLUSTER,
    PINOT_USER and PINOT_PASSWORD or PINOT_TOKEN, PINOT_CA_BUNDLE), and without it the local stack.
    Give secrets as `dg.EnvVar`.
    """

    controller_url: str = ""
    zookeeper: str = ""
    cluster: str = DEFAULT_CLUSTER
    broker_urls: list[str] = []  # noqa: RUF012 — pydantic copies it
    username: str = ""
    password: str = ""
    token: str = ""
    ca_bundle: str = ""
    client_cert: str = ""
    client_key: str = ""

    def settings(self) -> Settings:
        """Addresses and credentials.

        :raises PinotAssetsError: there is no Pinot to talk to, or a setting is missing.
        """
        if not self.controller_url:
            return load_settings()
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
