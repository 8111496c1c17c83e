"""Table specs that are written for the user. Changes nothing in Pinot."""
