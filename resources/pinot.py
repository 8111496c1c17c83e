"""The Dagster resource `pinot`: how to reach a Pinot cluster."""

import dagster as dg
from dagster._check import CheckError
from dagster._config.pythonic_config.resource import ConfigurableResourceFactoryResourceDefinition
from pydantic import Field

from pinot_assets.errors import PinotAssetsError
from pinot_assets.settings.cluster_fields import SECRET, ClusterFields, variables_of
from pinot_assets.settings.environment import FIELDS, Settings, load_profile, load_settings, settings_of

_SECRETS = [field for field, variable in variables_of(ClusterFields).items() if variable.kind == SECRET]


class PinotResource(ClusterFields, dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Pinot cluster and its ZooKeeper.

    Left empty, the environment decides (`ClusterFields` names its variables),
    and without it the local stack, if the profile is `local`. With one field set, only the fields count:
    half of them and half of the environment's would be a cluster that the user did not mean. Secrets are
    given as `dg.EnvVar`; secrets in plain text are refused.
    """

    profile: str = Field(
        default="", description="`local`, `staging` or `production`; empty for PINOT_ASSETS_PROFILE."
    )

    def get_resource_definition(self) -> ConfigurableResourceFactoryResourceDefinition:
        """Return the definition that Dagster loads and shows in its UI.

        :raises PinotAssetsError: a field contains a secret in plain text.
        """
        for name in _SECRETS if not self._is_resolved() else ():
            value = getattr(self, name)
            if value and not isinstance(value, dg.EnvVar):
                raise PinotAssetsError(
                    f"`{name}` of the resource `pinot` contains a secret",
                    why="Dagster's UI shows resources",
                    hint="give it as dg.EnvVar('NAME'), and set NAME where Dagster runs",
                )
        return super().get_resource_definition()

    def _is_resolved(self) -> bool:
        """Whether Dagster made this instance for a run: it has the variables' values, and is never shown."""
        try:
            self.get_resource_context()
        except CheckError:
            return False
        return True

    def settings(self) -> Settings:
        """Return addresses, credentials and time limits.

        :raises PinotAssetsError: no Pinot is configured, a setting is missing, or two settings contradict.
        """
        profile = load_profile(name=self.profile)
        values = {name: _text(getattr(self, name)) for name in FIELDS}
        if not any(values.values()):
            return load_settings(profile=profile)
        return settings_of(values, profile, lambda name: f"pinot.{name}")


def _text(value: str | bool | int | list[str]) -> str:
    """Return the value as text, as in a variable of the environment."""
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, bool):
        return "true" if value else ""
    return str(value or "")
