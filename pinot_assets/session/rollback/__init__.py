"""Back to a kept snapshot, and how long snapshots are kept."""
