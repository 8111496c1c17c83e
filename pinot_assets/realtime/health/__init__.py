"""Whether a REALTIME table is well: pure checks of a `RealtimeState`, beside those of OFFLINE tables."""
