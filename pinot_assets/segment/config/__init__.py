"""Read from a table config and schema how a segment is built. Reads no rows."""
