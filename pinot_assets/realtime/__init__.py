"""REALTIME tables: their state, what is wrong with it, and what repairs it."""
