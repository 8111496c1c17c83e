"""What a person starts on a REALTIME table: each a pure plan and its execution."""
