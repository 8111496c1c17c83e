"""Table specs from what configures other ways of ingestion: what `pinot-assets tables import` writes.

`settings_found` finds the settings in a table config or a job spec, `block` takes them over, key by key, and
writes them down. All of it is pure.
"""
