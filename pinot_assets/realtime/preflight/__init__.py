"""The preflight of a REALTIME table: the rules that must hold before a change of its config."""
