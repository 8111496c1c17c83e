"""Components for `dg`: one for each Pinot table, and one per project for the resources that tables need.

`dg scaffold defs pinot_assets.components.PinotTable my_table` writes a table's component and a table spec
to start from. With `--table-type REALTIME` the spec describes a table that consumes a stream.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import os
from pathlib import Path
from typing import Self

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from pydantic import BaseModel, Field, PrivateAttr

import pinot_assets  # loads its parts on first use: every command of `dg` imports this module
from pinot_assets.authoring.starter import TableType, keep_out_of_git, starting_spec
from pinot_assets.settings.environment import Profile
from pinot_assets.settings.local_stack import HOME

SPEC_FILE = "table.yaml"
"""Name of the table spec file that the scaffolder writes."""


class PinotTableParams(BaseModel):
    """The parameters of `dg scaffold`."""

    table_type: TableType = Field(default=TableType.OFFLINE, description="OFFLINE or REALTIME.")


class PinotTableScaffolder(dg.Scaffolder[PinotTableParams]):
    """Writes the component beside a table spec to start from, both named after the folder."""

    @classmethod
    def get_scaffold_params(cls) -> type[PinotTableParams]:
        """Return the model of the options of `dg scaffold`."""
        return PinotTableParams

    def scaffold(self, request: dg.ScaffoldRequest[PinotTableParams]) -> None:
        """Write `defs.yaml` and `table.yaml`; an existing `table.yaml` is not changed."""
        scaffold_component(request, {"spec": SPEC_FILE})
        file = request.target_path / SPEC_FILE
        if not file.exists():
            file.write_text(starting_spec(request.params.table_type, request.target_path.name))
            if request.params.table_type is TableType.OFFLINE:
                keep_out_of_git(request.target_path.parent / HOME / "staging" / request.target_path.name)


@dg.scaffold_with(PinotTableScaffolder)
class PinotTable(dg.Component, dg.Resolvable, dg.Model):
    """An Apache Pinot table: kept equal to a set of files, all or nothing; or fed by a stream, and watched.

    It needs the resources of `PinotResources`, once per project.
    """

    spec: str = Field(description="The table spec, relative to this file.", examples=[SPEC_FILE])

    _place: tuple[Path, str] = PrivateAttr((Path(), ""))
    _project: dict[Path, dg.Definitions] | None = PrivateAttr(None)

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Load the component as Dagster does, and remember its path for the other tables of the project."""
        table = super().load(attributes, context)
        table._place = (context.path / table.spec).resolve(), context.path.name
        return table

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of an OFFLINE or a REALTIME table; the first table of the project also
        brings the jobs and sensors that all tables share.

        If the spec is wrong, or clashes with that of another component, return a red asset that shows the
        reason. The rest of the project still loads.
        """
        file, _ = self._place
        return (self._project or self._build_project(context))[file]

    def _build_project(self, context: dg.ComponentLoadContext) -> dict[Path, dg.Definitions]:
        """Build the tables of all components together, once: two of them may describe one table, and the
        first one, by its path, also brings what all tables share."""
        from pinot_assets.code_location import build_together
        from pinot_assets.resources import object_store
        from pinot_assets.table_spec.tables.load import read_named

        tables = [self, *context.component_tree.get_all_components(of_type=PinotTable)]
        read = read_named(dict(table._place for table in tables))
        project = build_together(read.specs, read.left_out, object_store(os.environ))
        for table in tables:
            table._project = project
        return project


class PinotResources(dg.Component, dg.Resolvable, dg.Model):
    """What Pinot tables ask for: Pinot with its ZooKeeper, Spark, S3, all of them set by the environment."""

    profile: Profile | None = Field(
        default=None, description="local, staging or production; PINOT_ASSETS_PROFILE where it is left out."
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002
        """Return the resources; this component has no other definitions."""
        return dg.Definitions(resources={**pinot_assets.profile_resources(self.profile)})
