"""The Dagster resource `spark`, for any master; it starts Spark only when a run has to build a file."""

from dagster_pyspark import LazyPySparkResource
from dagster_spark.utils import flatten_dict
from pydantic import Field, PrivateAttr
from pyspark import SparkContext

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.ingest.spark.jvm import is_stopped
from pinot_assets.settings.environment import Profile, load_profile


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy resource, which also knows the environment.

    PINOT_ASSETS_SPARK_MASTER and PINOT_ASSETS_SPARK_PROPERTIES are read when a session is made;
    `spark_config` goes before them. Where none of the three says anything, the profile `local` starts a small
    Spark in this process, and the others refuse.
    """

    spark_config: JsonObject = Field(default_factory=dict)
    profile: str = Field(
        default="", description="`local`, `staging` or `production`; empty for PINOT_ASSETS_PROFILE."
    )

    _context: SparkContext | None = PrivateAttr(default=None)

    @property
    def spark_context(self) -> SparkContext:
        """Return the Spark context. It starts no session: a build without SQL does not need one."""
        if self._context is None or is_stopped(self._context):
            self._context = environment_context(*self._asked())
        return self._context

    def _init_session(self) -> None:
        """Start the session if there is none; the base class calls this before it returns the session."""
        if self._spark_session is None or is_stopped(self._spark_session.sparkContext):
            self._spark_session = environment_session(*self._asked())

    def _asked(self) -> tuple[dict[str, str], Profile]:
        own = {str(key): str(value) for key, value in flatten_dict(self.spark_config)}  # type: ignore[no-untyped-call]
        return own, load_profile(name=self.profile)
