"""Repairs a REALTIME table: plans steps from one state, does them, verifies their effect in a later one."""
