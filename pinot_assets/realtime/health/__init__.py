"""The health checks of a REALTIME table: pure functions of a `RealtimeState`."""
