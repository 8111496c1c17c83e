"""Whole runs of tables of packs, on a local Pinot."""
