"""Numbers of tables for Prometheus.

One module for each subject turns what was looked at into samples; `collector` and `pushing` are the edges to
whoever asks, or is told.
"""
