"""Every variable of the environment that is read, in the words of docs/reference/configuration.md.

The values themselves are read where they are used (`settings`, `ingest/spark/environment`, `local/paths`, …).
A test holds this list against the source.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pinot_assets.core.connections.waits import Waits
from pinot_assets.core.limits import (
    ANSWER,
    DEEPEST,
    HIGHEST_VALUES,
    MOST_VALUES,
    OBJECT,
    RECEIPT,
    RECEIPTS,
    REPLY,
    VALUES_VARIABLE,
)
from pinot_assets.settings.environment import DEFAULT_CLUSTER, DEFAULT_TABLES, Profile
from pinot_assets.settings.file_limits import COLUMNS, FREE_BYTES, MEMORY, RATIO, UNPACKED, VALUE, FileLimits

_WAITS: Final = Waits()
_FILE: Final = FileLimits()


class Variable(NamedTuple):
    """One of them.

    :ivar kind: what it holds.
    :ivar unit: of a number.
    :ivar default: what counts where it is not set; empty for nothing.
    """

    name: str
    kind: str
    meaning: str
    default: str = ""
    unit: str = ""


_PEM: Final = "path of a PEM file"
_FOLDER: Final = "folder"
_BOOLEAN: Final = "`true` or `false`"

VARIABLES: Final = {
    "Project": (
        Variable(
            "PINOT_ASSETS_PROFILE",
            ", ".join(f"`{p}`" for p in Profile),
            "What kind of installation this is; see [profiles](../deploy.md#profiles).",
            Profile.LOCAL,
        ),
        Variable("PINOT_ASSETS_TABLES", _FOLDER, "Where the table specs lie.", DEFAULT_TABLES),
        Variable(
            "PINOT_ASSETS_POLICY",
            "path of a file",
            "What table specs may reach; see [security](../security.md#what-a-table-spec-may-reach).",
            "the defaults there",
        ),
    ),
    "Pinot": (
        Variable(
            "PINOT_CONTROLLER_URL",
            "URL",
            "Of a controller, or of what stands before it. Without it and `PINOT_ZOOKEEPER`, the "
            "profile `local` takes the local stack.",
        ),
        Variable(
            "PINOT_BROKER_URLS",
            "URLs, separated by commas",
            "Brokers to ask instead of those that the controller names.",
        ),
        Variable(
            "PINOT_ADDRESSES",
            "`host:port`, separated by commas",
            "Brokers and servers that get credentials besides those that ZooKeeper names; see "
            "[security](../security.md#who-gets-pinots-credentials).",
        ),
        Variable("PINOT_CLUSTER", "name", "Of the Helix cluster.", DEFAULT_CLUSTER),
        Variable("PINOT_USER", "text", "User of basic authentication, with `PINOT_PASSWORD`."),
        Variable("PINOT_PASSWORD", "secret", "Its password."),
        Variable(
            "PINOT_TOKEN", "secret", "A token instead; sent as Bearer unless it names its scheme (`Basic …`)."
        ),
        Variable("PINOT_CA_BUNDLE", _PEM, "The authorities to trust.", "the system's"),
        Variable("PINOT_CLIENT_CERT", _PEM, "Our own certificate for mutual TLS."),
        Variable("PINOT_CLIENT_KEY", _PEM, "Its key, where it is not in the same file."),
        Variable(
            "PINOT_GRPC_TLS",
            _BOOLEAN,
            "Whether TLS is spoken at servers' gRPC door (`pinot.server.grpctls`), where the "
            "[audit](../guides/audit.md)'s assertions are asked. `true` is implied by the next ones; `false` "
            "is refused in `production` unless HTTP is allowed.",
            "whether the controller's address is https",
        ),
        Variable(
            "PINOT_GRPC_CA_BUNDLE",
            _PEM,
            "The authorities to trust there. There is no TLS without verification.",
            "`PINOT_CA_BUNDLE`",
        ),
        Variable("PINOT_GRPC_CLIENT_CERT", _PEM, "Our own certificate there.", "`PINOT_CLIENT_CERT`"),
        Variable("PINOT_GRPC_CLIENT_KEY", _PEM, "Its key, where it is not in the same file."),
        Variable(
            "PINOT_GRPC_SERVER_NAME",
            "host",
            "What the servers' certificates are made out to, where that is not the host in their instance "
            "names.",
        ),
        Variable(
            "PINOT_ASSETS_ALLOW_HTTP",
            _BOOLEAN,
            "Let the profile `production` reach another machine over plaintext HTTP.",
            "false",
        ),
    ),
    "ZooKeeper": (
        Variable("PINOT_ZOOKEEPER", "`host:port[,host:port…][/chroot]`", "Pinot's ZooKeeper."),
        Variable(
            "PINOT_ZOOKEEPER_USER",
            "text",
            "A user of ZooKeeper's scheme `digest`; see [ZooKeeper with a "
            "user](../deploy.md#zookeeper-with-a-user).",
        ),
        Variable("PINOT_ZOOKEEPER_PASSWORD", "secret", "Its password."),
        Variable(
            "PINOT_ASSETS_ALLOW_OPEN_ZOOKEEPER",
            _BOOLEAN,
            "Let the profile `production` go without a user of ZooKeeper.",
            "false",
        ),
        Variable(
            "PINOT_ZOOKEEPER_TLS",
            _BOOLEAN,
            "Speak TLS, trusting the system's authorities. Implied by the next ones.",
            "false",
        ),
        Variable("PINOT_ZOOKEEPER_CA_BUNDLE", _PEM, "The authorities to trust, besides the system's."),
        Variable("PINOT_ZOOKEEPER_CLIENT_CERT", _PEM, "Our own certificate."),
        Variable("PINOT_ZOOKEEPER_CLIENT_KEY", _PEM, "Its key, where it is not in the same file."),
    ),
    "Limits": (
        Variable(
            "PINOT_ASSETS_LEASE_SECONDS",
            "1 to 3600",
            "How long a dead run still holds its table: ZooKeeper's session time-out, which "
            "ZooKeeper's own `maxSessionTimeout` bounds. The same for every process.",
            f"{_WAITS.lease:g}",
            "seconds",
        ),
        Variable(
            "PINOT_ASSETS_WRITE_SECONDS",
            "1 to 3600",
            "Longest upload of one segment into Pinot, shorter than the lease. After a run died, the "
            "next one waits so long before it changes Pinot.",
            f"{_WAITS.pinot_write:g}",
            "seconds",
        ),
        Variable(
            "PINOT_ASSETS_STALL_MINUTES",
            "1 to 10000",
            "A run without a sign of progress (a finished file, rows read of one, a segment of it "
            "written, a write to Pinot) for so long lets go of its table and fails. Longer than it "
            "takes to copy the largest file, or to build one segment.",
            f"{_WAITS.stall / 60:g}",
            "minutes",
        ),
        *(
            Variable(
                limit.variable,
                "1 to 1048576",
                f"The most that is read of {limit.what}; more is refused before it is in memory.",
                str(limit.mib),
                "MiB",
            )
            for limit in (REPLY, ANSWER, OBJECT, RECEIPT, RECEIPTS)
        ),
        Variable(
            VALUES_VARIABLE,
            f"1 to {HIGHEST_VALUES}",
            "Most values of one JSON text, lists and objects counted twice; more is refused before it is "
            f"taken apart. It may be nested {DEEPEST} levels deep, whatever is set here.",
            str(MOST_VALUES),
            "values",
        ),
        Variable(
            "PINOT_ASSETS_HOLD_HOURS",
            "1 to 10000",
            "And so does one that has held it for so long. What it has built is kept.",
            f"{_WAITS.hold / 3600:g}",
            "hours",
        ),
    ),
    "Limits of one file": (
        Variable(
            COLUMNS,
            "number",
            "Most columns that a file may have, wanted or not.",
            f"{_FILE.columns}",
        ),
        Variable(
            VALUE,
            "size (`64m`, `1g`)",
            "Largest text or bytes value of a JSON, Parquet, ORC or Avro file. A row of CSV may have 4 MB, "
            "a JSON document 64 MB.",
            f"{_FILE.value_bytes >> 20}m",
        ),
        Variable(
            UNPACKED,
            "size",
            f"Most bytes that a packed file may unpack to. Where this is not set, one that unpacks to "
            f"more than {FREE_BYTES >> 20} MB may not be more than {RATIO:,} times its packed size, either.",
            f"{_FILE.unpacked_bytes >> 30}g",
        ),
        Variable(
            MEMORY,
            "size",
            "Most memory that a worker's process may take. A file that needs more fails with "
            "`OUT_OF_MEMORY`. `spark.executor.pyspark.memory` sets a limit of Spark's own; the lower one "
            "counts.",
            "four fifths of the memory of its machine or container",
        ),
    ),
    "Spark": (
        Variable(
            "PINOT_ASSETS_SPARK_MASTER",
            "master",
            "`k8s://…`, `spark://…`, `yarn`, `local[4]`. Not Spark Connect (`sc://`).",
            "profile `local`: a small one in the run's process",
        ),
        Variable(
            "PINOT_ASSETS_SPARK_PROPERTIES",
            "path of a file",
            "Properties as in `spark-defaults.conf`; the master above goes before its `spark.master`.",
        ),
    ),
    "S3": (
        Variable("AWS_REGION", "name", "Region of tables whose spec names none."),
        Variable("AWS_DEFAULT_REGION", "name", "The same, where the one above is not set."),
        Variable(
            "AWS_ENDPOINT_URL_S3", "URL", "S3 service of tables whose spec names none; told to the executors."
        ),
        Variable("AWS_ENDPOINT_URL", "URL", "The same, where the one above is not set."),
    ),
    "Telling people": (
        Variable(
            "PINOT_ASSETS_WEBHOOK_URL",
            "URL",
            "Where [failed runs](../dagster.md#failed-runs) are posted as JSON. May hold a secret; "
            "never shown.",
        ),
        Variable("DAGSTER_WEBSERVER_URL", "URL", "Of the Dagster UI, for links in those notices."),
        Variable(
            "PINOT_ASSETS_PUSHGATEWAY",
            "URL",
            "Prometheus' Pushgateway, which is told a run's numbers at its end.",
        ),
        Variable("PINOT_ASSETS_PUSHGATEWAY_USER", "text", "User of basic authentication there."),
        Variable("PINOT_ASSETS_PUSHGATEWAY_PASSWORD", "secret", "Its password."),
    ),
    "The drill of a REALTIME table in Dagster": (
        Variable(
            "PINOT_ASSETS_DRILL_BREAK",
            "command",
            "Makes the deep store unwritable, for the job `<table>_realtime_drill`.",
        ),
        Variable("PINOT_ASSETS_DRILL_MEND", "command", "Undoes that."),
        Variable(
            "PINOT_ASSETS_DRILL_LOAD_FROM_PEERS", "command", "Makes a server load segments from others."
        ),
    ),
    "The local stack": (
        Variable(
            "PINOT_ASSETS_HOME",
            _FOLDER,
            "State, configuration, logs and data of the local stack.",
            ".pinot-assets",
        ),
        Variable("PINOT_ASSETS_CACHE", _FOLDER, "The jars.", "pinot-assets in the one below"),
        Variable("XDG_CACHE_HOME", _FOLDER, "The user's cache.", "~/.cache"),
        Variable("PINOT_HOME", _FOLDER, "An unpacked Pinot distribution, used instead of 0.11.0 from Maven."),
        Variable("JAVA_HOME", _FOLDER, "The Java of everything, 17 or newer.", "the one on `PATH`"),
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
"""Sections of the page, and their variables."""
