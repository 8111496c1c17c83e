"""REALTIME tables: what they look like, what is wrong with them, and what mends it."""
