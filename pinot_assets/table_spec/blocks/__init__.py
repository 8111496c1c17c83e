"""The blocks of a table spec, each a model that checks itself."""
