"""Reads that model: Pinot, the stream, the deep store."""
