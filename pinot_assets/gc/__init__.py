"""What lies around that nothing needs any more: finding it, and taking it away (docs/guides/gc.md)."""
