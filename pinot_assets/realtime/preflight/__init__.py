"""The preflight of a REALTIME table: what must be right before a change of its config."""
