"""A REALTIME table and its settings as plain values. No I/O."""
