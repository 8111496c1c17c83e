"""Table specs to start from, and where the staging area of a new table lies."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Final

from pinot_assets.settings.local_stack import HOME
from pinot_assets.table_spec.yaml.policy_file import project_folder
from pinot_assets.table_spec.yaml.writer import in_line

_OFFLINE: Final = Template(
    """\
# The table in Pinot, and where its files are. `pinot-assets tables validate` checks this file,
# `pinot-assets tables apply` makes the table; docs/tables.md describes every key.
schema:
  schemaName: $name
  # One entry per column of the files that queries are to see.
  dimensionFieldSpecs:
    - {name: id, dataType: STRING}
  metricFieldSpecs: []
  # A time column is needed for retention and for `segmentsConfig.timeColumnName`:
  # dateTimeFieldSpecs:
  #   - {name: at, dataType: TIMESTAMP, format: TIMESTAMP, granularity: "1:MILLISECONDS"}

table:
  tableName: $name
  tableType: OFFLINE
  segmentsConfig:
    replication: "1"
  tenants: {}
  tableIndexConfig:
    loadMode: MMAP
  ingestionConfig:
    batchIngestionConfig:
      # REFRESH keeps what is replaced for a while, so that there is a way back.
      segmentIngestionType: REFRESH
      segmentIngestionFrequency: DAILY
  metadata: {}

fileIngestion:
  # A directory, relative to this file, or s3://bucket/prefix.
  inputDirURI: $data
  inputFormat: csv
  # Where segments wait and snapshots are kept; outside of Pinot's own data, and not in the directory above.
  output.segment.dir.uri: $staging
  # All files of a session are shown at one instant; without this, each one as soon as it is pushed.
  consistentPushEnabled: "true"
  # sync: the table is what the files are; append: rows are only ever added.
  ingestionMode: sync
  consistentPushMaxRetries: "3"
  # Quartz: second, minute, hour, day of the month, month, day of the week.
  # schedule: 0 0 0/4 * * ?

# dagster:
#   owners: [team:data]
#   description: What the rows are.
"""
)


_REALTIME: Final = Template(
    """\
# The table in Pinot, and which stream feeds it. `pinot-assets tables validate` checks this file,
# `pinot-assets tables apply` runs the preflight and makes the table, whose topic must exist.
# docs/tables.md describes every key, docs/guides/realtime.md what to look at before.
schema:
  schemaName: $name
  # One entry per member of the messages that queries are to see.
  dimensionFieldSpecs:
    - {name: id, dataType: STRING}
  metricFieldSpecs: []
  dateTimeFieldSpecs:
    - {name: at, dataType: TIMESTAMP, format: TIMESTAMP, granularity: "1:MILLISECONDS"}

table:
  tableName: $name
  tableType: REALTIME
  segmentsConfig:
    timeColumnName: at
    # With two, a server that dies does not take the only copy along. Pinot before 1.0 reads the second line.
    replication: "2"
    replicasPerPartition: "2"
    retentionTimeUnit: DAYS
    retentionTimeValue: "30"
  tenants: {}
  tableIndexConfig:
    loadMode: MMAP
  metadata: {}

realtime:
  stream:
    streamType: kafka
    stream.kafka.topic.name: $name
    stream.kafka.broker.list: $brokers
    stream.kafka.consumer.type: lowlevel
    stream.kafka.consumer.factory.class.name: org.apache.pinot.plugin.stream.kafka20.KafkaConsumerFactory
    stream.kafka.decoder.class.name: org.apache.pinot.plugin.inputformat.json.JSONMessageDecoder
    # From the first message that the stream still has; `largest`: from now on.
    stream.kafka.consumer.prop.auto.offset.reset: smallest
    # A stream with TLS and a user. What is secret is one whole reference to the environment: Pinot's servers
    # and controllers fill it in from theirs, pinot-assets from its own. So is a file outside of the project.
    # Brokers of another machine need a line in the policy (docs/security.md).
    # security.protocol: SASL_SSL
    # sasl.mechanism: SCRAM-SHA-512
    # sasl.jaas.config: $${TABLE_KAFKA_JAAS_CONFIG}
    # ssl.truststore.type: PEM
    # ssl.truststore.location: $${TABLE_KAFKA_CA_FILE}
  # Deep-store bypass: servers give each other segments, and a commit passes a deep store that is down.
  peerSegmentDownloadScheme: http
  # The next segment is consumed while this one is built and uploaded; Pinot 1.4 or newer.
  # pauselessConsumptionEnabled: true
  # Segments are committed at about that size, or at that age.
  flushThresholdSegmentSize: 200M
  flushThresholdTime: 6h

dagster:
  # How many steps of a repair the table's sensor may start at one look; 0: people start them.
  repairLimit: 0
#   owners: [team:data]
#   description: What the rows are.
"""
)


class TableType(StrEnum):
    """The type of a table, in Pinot's words."""

    OFFLINE = "OFFLINE"
    REALTIME = "REALTIME"


BROKERS: Final = "127.0.0.1:9092"
"""A Kafka on this machine."""


def local_staging(name: str, out: Path) -> Path:
    """Return where a table's staging area lies on this machine: in the project's folder, beside the specs.

    The folder is that of the local stack; `keep_out_of_git` hides it there.

    :param out: path of the table spec.
    """
    folder, here = out.parent.absolute(), Path.cwd()
    project = project_folder(folder)
    if folder.is_relative_to(here) and not project.is_relative_to(here):
        project = here  # the spec lies at the top of the project, and not in a folder of specs
    return project / HOME / "staging" / name


def keep_out_of_git(staging: Path) -> None:
    """Hide the folder of `local_staging` from git, unless it says itself what git sees."""
    folder = staging.parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
        file.write("*\n")


def starting_spec(table_type: TableType, name: str, brokers: str = BROKERS, staging: str = "") -> str:
    """Return the YAML of a table of either type, with comments; it has no problems as it is.

    An OFFLINE table has one text column; a REALTIME table reads the Kafka topic of its name.

    :param name: of the table, as Pinot accepts it.
    :param brokers: `host:port[,host:port…]` of Kafka, for a REALTIME table.
    :param staging: the staging area of an OFFLINE table; empty for one beside the spec's folder.
    """
    template = _REALTIME if table_type is TableType.REALTIME else _OFFLINE
    return template.substitute(
        name=in_line(name),
        data=in_line(f"data/{name}"),
        staging=in_line(staging or f"../{HOME}/staging/{name}"),
        brokers=in_line(brokers),
    )
