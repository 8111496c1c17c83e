"""A segment's folder: columns, metadata, archive. Uses `config`, `values` and `indexes`."""
