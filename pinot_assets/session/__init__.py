"""The consistent-push machine: `driver` is what callers see; ARCHITECTURE.md has its parts."""
