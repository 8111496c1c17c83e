"""List the modules that lead `pinot-assets run` from the command to the switch, from a real run.

    python -m tools.trace_run TABLE

It runs the command in this process. At each effect of the run (a write to ZooKeeper or to the staging area,
the build, each request that changes something in Pinot, up to the end of the lineage entry), it notes which
modules of this project are on the stack: these lead the run to the effect. It does not note modules that were
called and have returned (a parser, a value, a check). The last lines are the modules and their number.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
from kazoo.client import TransactionRequest

import pinot_assets
from pinot_assets.__main__ import main
from pinot_assets.ingest.spark.on_demand import SparkOnDemand
from pinot_assets.source.bucket_store import BucketObjectStore
from pinot_assets.source.local_store import LocalObjectStore

PACKAGE: Final = Path(pinot_assets.__file__).parent
EFFECTS: Final[tuple[tuple[type, str], ...]] = (
    (TransactionRequest, "commit"),
    (LocalObjectStore, "put_if_absent"),
    (LocalObjectStore, "put_file_if_absent"),
    (BucketObjectStore, "put_if_absent"),
    (BucketObjectStore, "put_file_if_absent"),
    (SparkOnDemand, "build"),
    (httpx.Client, "send"),
)
_SWITCH: Final = "endReplaceSegments"


class Trace:
    """:ivar modules: the effect at which each module was on the stack first, up to the switch."""

    def __init__(self) -> None:
        self.modules: dict[Path, str] = {}
        self._switched = False

    def watch(self, of: type, method: str) -> None:
        """From now on, note the modules on the stack at each call of this method."""
        call = getattr(of, method)

        @functools.wraps(call)
        def watched(*args: object, **options: object) -> object:
            effect = _effect(method, args)
            if effect and not self._switched:
                for path in _leading_here():
                    if path.is_relative_to(PACKAGE):
                        self.modules.setdefault(path, effect)
                self._switched = _SWITCH in effect
            return call(*args, **options)

        setattr(of, method, watched)

    def lines(self) -> Iterator[str]:
        """Yield a line for each module, and the last line."""
        lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in self.modules}
        for path, effect in self.modules.items():
            yield f"{lengths[path]:4} {path.relative_to(PACKAGE)} ({effect})"
        end = f"{len(lengths)} modules, the longest of {max(lengths.values(), default=0)} lines"
        yield end if self._switched else f"{end}; it did not switch"


def _effect(method: str, args: tuple[object, ...]) -> str:
    request = args[1] if method == "send" else None
    if not isinstance(request, httpx.Request):
        return method
    path = request.url.path
    return "" if request.method == "GET" or "query" in path else f"{request.method} {path}"


def _leading_here() -> Iterator[Path]:
    return (Path(frame.filename) for frame in reversed(inspect.stack(context=0)))


if __name__ == "__main__":
    trace = Trace()
    for effect in EFFECTS:
        trace.watch(*effect)
    sys.argv = ["pinot-assets", "run", *sys.argv[1:]]
    try:
        main()
    finally:
        sys.stdout.write("\n".join(trace.lines()) + "\n")
