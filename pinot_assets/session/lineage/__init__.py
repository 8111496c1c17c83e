"""Pinot's side of a session: `entries` start and end a replacement, `switch` pushes and reads back;
`stale_pointer` tells what was published after a pointer that is behind.
Nothing here writes to ZooKeeper: what became of a switch whose driver died is finished in `session/recover`.
"""
