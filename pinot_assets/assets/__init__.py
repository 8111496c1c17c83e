"""The Dagster layer: assets, the gate, jobs; one factory per table kind."""
