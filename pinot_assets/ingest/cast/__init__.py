"""Convert values of a file to values of the table's schema."""
