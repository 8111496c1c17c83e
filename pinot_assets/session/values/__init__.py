"""What a session stores: pointer, session, plan, hold, counts. No I/O."""
