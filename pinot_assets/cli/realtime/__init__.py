"""`pinot-assets realtime …`; one file for commands of a kind."""
