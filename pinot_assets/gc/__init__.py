"""Garbage collection: finds what nothing needs any more, and deletes it (docs/guides/gc.md)."""
