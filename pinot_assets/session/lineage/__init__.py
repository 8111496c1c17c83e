"""Pinot's side of a session: entries of the segment lineage, uploads, the switch."""
