"""Simulates how the settings of a REALTIME table turn out, for `pinot-assets simulate`."""
