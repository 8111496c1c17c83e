"""`pinot-assets realtime …`, one file a command."""
