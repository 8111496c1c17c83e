"""OpenLineage events of what was published."""
