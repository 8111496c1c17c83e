"""What of a table config and schema decides over a segment. Reads no rows."""
