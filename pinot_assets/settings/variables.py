"""List every variable of the environment that is read, as docs/reference/configuration.md describes it.

The modules that use a value read it (`settings`, `ingest/spark/environment`, …).
A test compares this list with the source.
"""

from __future__ import annotations

from typing import Final

from pinot_assets.core import untrusted
from pinot_assets.core.decision_log import LOG_FORMAT
from pinot_assets.settings.cluster_fields import (
    SECRET,
    PinotFields,
    Variable,
    WaitFields,
    ZooKeeperFields,
    variables_of,
)
from pinot_assets.settings.environment import DEFAULT_TABLES, PROFILE, TABLES, Profile
from pinot_assets.settings.file_limits import COLUMNS, FREE_BYTES, MEMORY, RATIO, UNPACKED, VALUE, FileLimits

_FILE: Final = FileLimits()


_FOLDER: Final = "folder"

VARIABLES: Final = {
    "Project": (
        Variable(
            PROFILE,
            ", ".join(f"`{p}`" for p in Profile),
            "What kind of installation this is; see [profiles](../deploy.md#profiles).",
            Profile.LOCAL,
        ),
        Variable(TABLES, _FOLDER, "The folder of the table specs.", DEFAULT_TABLES),
        Variable(
            LOG_FORMAT,
            "`text`, `json`",
            "What a run writes on standard error; see [logs](../operations.md#logs).",
            "text",
        ),
        Variable(
            "PINOT_ASSETS_POLICY",
            "path of a file",
            "What table specs may reach; see [security](../security.md#what-a-table-spec-may-reach).",
            "the defaults there",
        ),
    ),
    "Pinot": tuple(variables_of(PinotFields).values()),
    "ZooKeeper": tuple(variables_of(ZooKeeperFields).values()),
    "Limits": (
        *variables_of(WaitFields).values(),
        *(
            Variable(
                limit.variable,
                "1 to 1048576",
                f"The most that is read of {limit.what}; pinot-assets refuses more before it is in memory.",
                str(limit.mib),
                "MiB",
            )
            for limit in (
                untrusted.REPLY,
                untrusted.ANSWER,
                untrusted.OBJECT,
                untrusted.RECEIPT,
                untrusted.RECEIPTS,
            )
        ),
        Variable(
            untrusted.VALUES_VARIABLE,
            f"1 to {untrusted.HIGHEST_VALUES}",
            "The most values of one JSON text; lists and objects count twice. More is refused "
            f"before the text is parsed. It may be nested {untrusted.DEEPEST} levels deep; no "
            "setting changes that.",
            str(untrusted.MOST_VALUES),
            "values",
        ),
    ),
    "Limits of one file": (
        Variable(
            COLUMNS, "number", "The most columns that a file may have, needed or not.", f"{_FILE.columns}"
        ),
        Variable(
            VALUE,
            "size (`64m`, `1g`)",
            "The largest text or bytes value of a JSON, Parquet, ORC or Avro file. A row of CSV "
            "may have 4 MB, a JSON document 64 MB.",
            f"{_FILE.value_bytes >> 20}m",
        ),
        Variable(
            UNPACKED,
            "size",
            "The most bytes that a compressed file may have uncompressed. If this is not set, a "
            f"file of more than {FREE_BYTES >> 20} MB uncompressed may not be more than {RATIO:,} "
            "times its compressed size, either.",
            f"{_FILE.unpacked_bytes >> 30}g",
        ),
        Variable(
            MEMORY,
            "size",
            "The most memory that a worker's process may use. A file that needs more fails with "
            "`OUT_OF_MEMORY`. `spark.executor.pyspark.memory` sets Spark's own limit; the lower "
            "of the two applies.",
            "four fifths of the memory of its machine or container",
        ),
    ),
    "Spark": (
        Variable(
            "PINOT_ASSETS_SPARK_MASTER",
            "master",
            "`k8s://…`, `spark://…`, `yarn`, `local[4]`. Not Spark Connect (`sc://`).",
            "profile `local`: a small Spark in the run's process",
        ),
        Variable(
            "PINOT_ASSETS_SPARK_PROPERTIES",
            "path of a file",
            "Properties as in `spark-defaults.conf`; the master above has priority over its `spark.master`.",
        ),
    ),
    "S3": (
        Variable("AWS_REGION", "name", "Region of tables whose spec names none."),
        Variable("AWS_DEFAULT_REGION", "name", "The same, if the one above is not set."),
        Variable(
            "AWS_ENDPOINT_URL_S3",
            "URL",
            "S3 service of tables whose spec names none; the executors get it, too.",
        ),
        Variable("AWS_ENDPOINT_URL", "URL", "The same, if the one above is not set."),
    ),
    "Notices and metrics": (
        Variable(
            "PINOT_ASSETS_WEBHOOK_URL",
            "URL",
            "Where [failed runs](../dagster.md#failed-runs) are posted as JSON. May contain a "
            "secret; never shown.",
        ),
        Variable("DAGSTER_WEBSERVER_URL", "URL", "Address of the Dagster UI, for links in those notices."),
        Variable(
            "PINOT_ASSETS_DOCS_URL",
            "URL",
            "Where you serve the site that `make docs` builds: the check `status` then links to "
            "its instructions.",
        ),
        Variable(
            "PINOT_ASSETS_PUSHGATEWAY",
            "URL",
            "Prometheus' Pushgateway, which gets a run's metrics at its end.",
        ),
        Variable("PINOT_ASSETS_PUSHGATEWAY_USER", "text", "User of basic authentication there."),
        Variable("PINOT_ASSETS_PUSHGATEWAY_PASSWORD", SECRET, "Its password."),
    ),
    "The drill of a REALTIME table in Dagster": (
        Variable(
            "PINOT_ASSETS_DRILL_BREAK",
            "command",
            "Makes the deep store unwritable, for the job `pinot_realtime_drill`.",
        ),
        Variable("PINOT_ASSETS_DRILL_MEND", "command", "Undoes that."),
        Variable(
            "PINOT_ASSETS_DRILL_LOAD_FROM_PEERS",
            "command",
            "Makes a server load segments from other servers.",
        ),
    ),
    "The local stack": (
        Variable(
            "PINOT_ASSETS_HOME",
            _FOLDER,
            "State, configuration, logs and data of the local stack.",
            ".pinot-assets",
        ),
        Variable(
            "PINOT_ASSETS_CACHE",
            _FOLDER,
            "The jars, fetched releases of Pinot, the archive of Spark's classes.",
            "`pinot-assets` in the folder below",
        ),
        Variable("XDG_CACHE_HOME", _FOLDER, "The user's cache.", "~/.cache"),
        Variable("PINOT_HOME", _FOLDER, "An unpacked Pinot distribution, used instead of 0.11.0 from Maven."),
        Variable(
            "JAVA_HOME",
            _FOLDER,
            "The Java for everything: 17 or newer, and what the local Pinot needs (25 after 1.5.1).",
            "the one on `PATH`",
        ),
        Variable(
            "DAGSTER_HOME",
            _FOLDER,
            "Dagster's instance, for `pinot-assets partitions`.",
            ".pinot-assets/dagster",
        ),
        Variable(
            "PINOT_ASSETS_DATA",
            _FOLDER,
            "Files of the sample table; its spec refers to it.",
            ".pinot-assets/data",
        ),
        Variable(
            "PINOT_ASSETS_STAGING",
            _FOLDER,
            "Staging area of the sample table, and of specs that `pinot-assets init` wrote for a bucket.",
            ".pinot-assets/staging",
        ),
    ),
}
"""The variables of each section of the page, by its title."""
