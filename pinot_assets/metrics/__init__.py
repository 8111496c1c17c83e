"""Numbers of tables for Prometheus.

Values become samples in pure functions, one module for each subject; `collector`
and `pushing` are the edges to whoever asks or is told.
"""
