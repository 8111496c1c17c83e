"""Finish the work of a driver that died; repair a lost or stale pointer."""
