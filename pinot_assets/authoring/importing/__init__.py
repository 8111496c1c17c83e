"""Make a table spec from the config of another way of ingestion: `pinot-assets tables import` writes it.

`settings_found` finds the settings in a table config or a job spec. `block` converts them key by key and
writes the spec's text. All of it is pure.
"""
