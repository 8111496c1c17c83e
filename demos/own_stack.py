"""A local stack for one demo: started, pointed at, and gone at the end, however the demo ends."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from pinot_assets.core.machine import deaf_shell
from pinot_assets.local.stack import Stack, StartProgress
from pinot_assets.settings.local_stack import StackState

# Where the demo was killed, or did not come to the end of its own clearing up.
_AFTERWARDS: Final = r"""
read -r over && exit
"$1" -m pinot_assets local down --purge --home "$2/stack"
rm -rf -- "$2"
"""


@contextmanager
def own_stack(home: Path, console: Console, *, realtime: bool = False) -> Iterator[tuple[Stack, StackState]]:
    """Start a stack and have this process, and the commands that it starts, talk to it.

    :param home: for the stack and all else that the demo writes; removed before and after.
    :param realtime: with Kafka, and with servers that put committed segments into the deep store themselves.
    """
    os.environ["PINOT_ASSETS_HOME"] = str(home / "stack")
    stack = Stack(home / "stack", progress=StartProgress(done=lambda text: console.print(text, style="dim")))
    stack.down(purge=True)
    shutil.rmtree(home, ignore_errors=True)
    afterwards = deaf_shell(_AFTERWARDS, sys.executable, str(home))
    assert afterwards.stdin is not None
    try:
        parts = "ZooKeeper, controller, 2 brokers, 2 servers" + (", Kafka" if realtime else "")
        console.print(f"starting the local stack: {parts}")
        state = stack.up(kafka=realtime, segment_store=realtime)
        _point_at(state)
        yield stack, state
    finally:
        stack.down(purge=True)
        shutil.rmtree(home, ignore_errors=True)
        afterwards.communicate(b"over\n")
        console.print("the local stack is down, nothing is left running", style="dim")


def _point_at(state: StackState) -> None:
    for name in ("PINOT_BROKER_URLS", "PINOT_CA_BUNDLE", "PINOT_TOKEN", "PINOT_USER", "PINOT_PASSWORD"):
        os.environ.pop(name, None)
    os.environ["PINOT_CONTROLLER_URL"] = state.controller_url
    os.environ["PINOT_ZOOKEEPER"] = state.zookeeper
    os.environ["PINOT_CLUSTER"] = state.cluster
