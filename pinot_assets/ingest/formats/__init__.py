"""Read files of each format as Arrow tables. Imports no Spark."""
