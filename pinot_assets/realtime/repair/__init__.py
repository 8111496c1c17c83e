"""What mends a REALTIME table: a pure plan from one state, and whether a step's effect has come since."""
