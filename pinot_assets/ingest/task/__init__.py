"""What a worker does with one file. Imports no Spark."""
