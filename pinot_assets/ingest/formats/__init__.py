"""Files of each format become Arrow batches. Imports no Spark."""
