"""What Dagster shows of the fields that have a variable, too."""

from __future__ import annotations

from pinot_assets.settings.cluster_fields import ClusterFields, variables_of


def test_a_field_is_explained_by_fields_and_pages_that_can_be_found() -> None:
    told = {name: field.description or "" for name, field in ClusterFields.model_fields.items()}
    assert all(told.values())
    assert [name for name, text in told.items() if "PINOT_" in text or "](" in text] == []
    assert told["grpc_ca_bundle"].endswith("(path of a PEM file; empty: `ca_bundle`)")
    assert told["lease_seconds"].endswith("(1 to 3600; 0: 30 seconds)")
    assert "see docs/security.md" in told["addresses"]


def test_a_schema_says_the_defaults_of_fields() -> None:
    assert variables_of(ClusterFields)["lease_seconds"].default == "30"
    assert ClusterFields.model_json_schema()["properties"]["lease_seconds"]["default"] == 0
