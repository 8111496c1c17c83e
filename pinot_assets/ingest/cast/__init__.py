"""Values of a file become values of the table's schema."""
