"""Decide whether a table is due for a run; the sensors and `watch` call this."""
