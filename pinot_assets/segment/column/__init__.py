"""What a column is: its type, its field in the schema, how it is stored, which settings are supported."""
