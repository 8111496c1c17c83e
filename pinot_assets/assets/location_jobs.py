"""Jobs of the whole code location: each acts on the one table that its launch names.

A job for each table would be seven jobs a table, and Dagster builds and sends all of them whenever it loads
the location. The launch names the table by its partition, which the launchpad offers as a list. The partition
writes the table into the run's config and, for a job that changes something, into the tag `pinot/table`, by
which the queue keeps runs of one table apart (dagster.yaml). A launch may also name it in the config alone.
Such a run did not wait for its turn, so `claim` refuses it beside another run of the table.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar

import dagster as dg
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARTITION_NAME_TAG

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.runs import TO_START, runs_under_way
from pinot_assets.core.check_result import some
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.table_spec import AnyTableSpec, label_of

S = TypeVar("S", bound=AnyTableSpec)

TAGS = {"dagster/max_retries": "0", "dagster/retry_on_asset_or_op_failure": "false"}
"""Dagster does not retry these runs, however they end: a person asked for the operation once."""
TABLE = "table"
"""Key of the op's config that names the table."""


class TableChoice(Generic[S]):
    """The tables that a job may act on.

    :ivar specs: them by label, as tags and metrics name them.
    """

    def __init__(self, specs: Iterable[S]) -> None:
        self.specs: Mapping[str, S] = {label_of(spec): spec for spec in specs}
        raw = {spec.name: spec for spec in self.specs.values()}
        typed = {spec.name_with_type: spec for spec in self.specs.values()}
        self._names = {**raw, **typed, **self.specs}

    def __bool__(self) -> bool:
        return bool(self.specs)

    @cached_property
    def partitions(self) -> dg.StaticPartitionsDefinition:
        """The tables as partitions, in the order of their names."""
        return dg.StaticPartitionsDefinition(sorted(self.specs))

    def named(self, name: str) -> S:
        """Return the table of that label, raw name, or name with type.

        :raises SpecError: this job knows no such table; names one that is spelled alike.
        """
        if (spec := self._names.get(name)) is not None:
            return spec
        near = difflib.get_close_matches(name, self._names, n=1, cutoff=0.6)
        raise SpecError(
            f"{name} is not a table of this job",
            why=f"the job knows {some(sorted(self.specs), 5)}",
            hint=f"did you mean {near[0]}?" if near else "reload the code location if its spec is new",
        )

    def chosen(self, context: dg.OpExecutionContext) -> S:
        """Return the table that the run's config, its partition or its tag names.

        :raises SpecError: they name none, an unknown one, or different ones.
        """
        tags = context.run.tags
        said = (context.op_config[TABLE], tags.get(PARTITION_NAME_TAG, ""), tags.get(TABLE_TAG, ""))
        specs = {label_of(spec): spec for spec in map(self.named, filter(None, said))}
        if not specs:
            raise SpecError(
                f"{context.job_name} was launched without a table",
                hint="choose a partition in the launchpad, or name one in the config: "
                f"ops: {{{context.op_def.name}: {{config: {{{TABLE}: {next(iter(sorted(self.specs)))}}}}}}}",
            )
        if len(specs) > 1:
            raise SpecError(
                f"{context.job_name} was launched for {' and '.join(sorted(specs))}",
                why="its config, its partition and its tag pinot/table name different tables",
                hint="choose the partition again; the launchpad then writes the config and the tag",
            )
        return next(iter(specs.values()))


def claim(context: dg.OpExecutionContext, spec: AnyTableSpec) -> None:
    """Tag the run with its table, so that later runs of the table wait for it.

    The lease protects the table in any case. Without this check, a run that has not taken it yet would fail.

    :raises PinotAssetsError: another run of the table works already, or the run is one of a backfill.
    """
    label = label_of(spec)
    if BACKFILL_ID_TAG in context.run.tags:
        raise PinotAssetsError(
            f"{context.job_name} does not act on {label} in a backfill",
            why="it changes what queries see, so each table needs its own decision",
            hint=f"launch it for the partition {label} alone",
        )
    if TABLE_TAG not in context.run.tags:
        context.instance.add_run_tags(context.run.run_id, {TABLE_TAG: label})
    for run in runs_under_way(context.instance, spec):
        if run.run_id != context.run.run_id and run.status not in TO_START:
            raise PinotAssetsError(
                f"another run works on {label}",
                why=f"run {run.run_id} ({run.job_name}) has not ended, and this run did not wait for it",
                hint=f"launch it again with the partition {label}: it then waits in the queue for runs of "
                "the table's jobs. A run of assets that you picked by hand has to end first",
            )


def location_job(
    operation: str,
    description: str,
    tables: TableChoice[S],
    act: Callable[..., Iterator[object]],
    config: Mapping[str, dg.Field] | None = None,
) -> dg.JobDefinition:
    """Return the job `pinot_<operation>`, which only reads: no run waits for it, and it waits for none.

    :param act: the body of its op; `tables.chosen` gives it the table.
    :param config: the op's other settings.
    """
    return _job(operation, description, tables, act, config or {}, lambda _: {}, {})


def writing_job(
    operation: str,
    description: str,
    tables: TableChoice[S],
    act: Callable[..., Iterator[object]],
    config: Mapping[str, dg.Field],
) -> dg.JobDefinition:
    """As `location_job`, for an operation that changes something: `act` begins with `claim`."""
    return _job(operation, description, tables, act, config, lambda table: {TABLE_TAG: table}, TAGS)


def _job(
    operation: str,
    description: str,
    tables: TableChoice[S],
    act: Callable[..., Iterator[object]],
    config: Mapping[str, dg.Field],
    tags_of: Callable[[str], Mapping[str, str]],
    tags: Mapping[str, str],
) -> dg.JobDefinition:
    name = f"pinot_{operation}"
    table = dg.Field(
        str,
        default_value="",
        description="The table. If a partition is chosen, the partition names the table.",
    )
    op = dg.op(name=f"{name}_op", out={}, description=description, config_schema={TABLE: table, **config})(
        act
    )
    return dg.GraphDefinition(name, node_defs=[op]).to_job(
        description=f"{description} The partition names the table.",
        tags=tags,
        executor_def=dg.in_process_executor,
        config=dg.PartitionedConfig(
            tables.partitions,
            run_config_for_partition_key_fn=lambda key: run_config(operation, key),
            tags_for_partition_key_fn=tags_of,
        ),
    )


def run_config(operation: str, table: str, **settings: object) -> dict[str, object]:
    """Return the run config with which `pinot_<operation>` acts on the table."""
    return {"ops": {f"pinot_{operation}_op": {"config": {TABLE: table, **settings}}}}
