"""What was published: immutable manifests, the ledger, history."""
