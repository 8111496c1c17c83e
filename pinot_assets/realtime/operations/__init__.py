"""What a person starts on a REALTIME table: in each a function decides from a state, and a class does it."""
