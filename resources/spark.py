"""Spark on any master, as a Dagster resource that starts nothing until a file is to be built."""

from typing import Any

from dagster_pyspark import LazyPySparkResource
from dagster_spark.utils import flatten_dict
from pydantic import Field

from pinot_assets.build.environment_spark import environment_session
from pinot_assets.settings import load_profile


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy resource, which also knows the environment.

    PINOT_ASSETS_SPARK_MASTER and PINOT_ASSETS_SPARK_PROPERTIES are read when a session is made;
    `spark_config` goes before them. Where none of the three says anything, the profile `local` starts a small
    Spark in this process, and the others refuse.
    """

    spark_config: dict[str, Any] = Field(default_factory=dict)
    profile: str = Field(
        default="", description="`local`, `staging` or `production`; empty for PINOT_ASSETS_PROFILE."
    )

    def _init_session(self) -> None:
        """What both properties of the class above call first."""
        if self._spark_session is None:
            own = {str(key): str(value) for key, value in flatten_dict(self.spark_config)}  # type: ignore[no-untyped-call]
            self._spark_session = environment_session(own, load_profile(name=self.profile))
