"""Components for `dg`: a Pinot table, and the resources that tables ask for, once per project.

`dg scaffold defs pinot_assets.components.PinotTable my_table` writes one, with a table spec to start from.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import os
from typing import Any

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from pydantic import Field

from pinot_assets.resources import profile_resources, with_object_store
from pinot_assets.resources.profiles import object_store
from pinot_assets.settings import Profile
from pinot_assets.spec import load_table
from pinot_assets.spec.starter import starting_table
from pinot_assets.table_definitions import build_table_definitions

SPEC_FILE = "table.yaml"
"""What the scaffolder calls the table spec."""


class PinotTableScaffolder(dg.Scaffolder[Any]):
    """Writes the component beside a table spec to start from, both named after the folder."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write `defs.yaml` and `table.yaml`, which is left alone if it is there already."""
        scaffold_component(request, {"spec": SPEC_FILE})
        file = request.target_path / SPEC_FILE
        if not file.exists():
            file.write_text(starting_table(request.target_path.name))


@dg.scaffold_with(PinotTableScaffolder)
class PinotTable(dg.Component, dg.Resolvable, dg.Model):
    """An Apache Pinot table, kept equal to a set of files, all or nothing.

    It needs the resources of `PinotResources`, once per project.
    """

    spec: str = Field(description="The table spec, relative to this file.", examples=[SPEC_FILE])

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Assets, gate, jobs, sensors and schedule of the table.

        :raises SpecError: the table spec is wrong; lists every problem.
        """
        spec = load_table((context.path / self.spec).resolve())
        return build_table_definitions(with_object_store(spec, object_store(os.environ)))


class PinotResources(dg.Component, dg.Resolvable, dg.Model):
    """What Pinot tables ask for: Pinot with its ZooKeeper, Spark, S3, all of them set by the environment."""

    profile: Profile | None = Field(
        default=None, description="local, staging or production; PINOT_ASSETS_PROFILE where it is left out."
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002
        """Resources alone."""
        return dg.Definitions(resources={**profile_resources(self.profile)})
