"""Numbers of tables for Prometheus.

Values become samples in pure functions, one module for each subject; `looking` reads what they need, and
`collector`, `exposition` and `pushing` are the edges to whoever asks or is told.
"""
