"""Whether a table is due for a run; asked by sensors and by `watch`."""
