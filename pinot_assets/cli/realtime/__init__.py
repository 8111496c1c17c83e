"""`pinot-assets realtime …`; the files are named as those of `pinot_assets.realtime` that do the work."""
