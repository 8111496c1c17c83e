"""A REALTIME table as plain values. No I/O."""
