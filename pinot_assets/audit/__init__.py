"""The checks before a switch; each is one small function."""
