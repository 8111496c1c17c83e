"""Published files: immutable manifests, the ledger, history."""
