"""`pinot-assets realtime …`: one module for each group of related commands."""
