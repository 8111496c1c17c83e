"""Pinot's side of a session: `entries` starts and ends a replacement, `switch` pushes and reads back;
`stale_pointer` finds what was published after a stale pointer.
Nothing here writes to ZooKeeper: `session/recover` finishes the switch of a driver that died.
"""
