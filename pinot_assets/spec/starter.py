"""A table spec to start from."""

from __future__ import annotations

from string import Template
from typing import Final

_TEMPLATE: Final = Template(
    """\
# What Pinot is told of the table, and where its files lie. `pinot-assets tables validate` checks it,
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
  inputDirURI: data/$name
  inputFormat: csv
  # Where segments wait and snapshots are kept; outside of Pinot's own data, and not in the directory above.
  output.segment.dir.uri: staging/$name
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


def starting_table(name: str) -> str:
    """YAML of a table of one text column, with comments; it has no problems as it stands.

    :param name: of the table, as Pinot takes it.
    """
    return _TEMPLATE.substitute(name=name)
