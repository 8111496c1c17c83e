"""`pinot-assets watch`: run what is due, until it is ended."""
