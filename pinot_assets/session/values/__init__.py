"""Pointer, session, plan, hold, and what a trigger reports. No I/O."""
