"""A real ZooKeeper like the local stack's, without Pinot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fakes.waiting import until

from pinot_assets.core.this_machine import find_java
from pinot_assets.local import jars, parts, processes
from pinot_assets.local.parts import Site
from pinot_assets.settings.local_stack import Record


@contextmanager
def zookeeper_server(home: Path) -> Iterator[str]:
    """`host:port` of one that runs for the length of the block."""
    part = parts.PINOT[0]
    site = Site(home, Record(ports={part.name: {"client": processes.free_port(())}}))
    site.data(part.name).mkdir(parents=True)
    class_path = ":".join(map(str, jars.class_path(part.jars)))
    command = [str(find_java().executable), "-cp", class_path, *part.arguments(site)]
    process = processes.find(processes.spawn(command, home / "zookeeper.log"))
    assert process is not None
    try:
        until(lambda: part.missing(site) is None)
        yield f"127.0.0.1:{site.port(part.name, 'client')}"
    finally:
        processes.stop_processes([process], grace=5)
