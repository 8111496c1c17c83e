"""One file built in a process of its own, so that how that process ends can be told.

For a file that ended its worker: the worker's end tells Spark nothing but that it ended.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final, cast

from pinot_assets.core.file_errors import one_line
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.machine import limit_memory
from pinot_assets.ingest.contract.build_spec import BuildSpec, Death, FileTask, failure_of, tells_of_memory
from pinot_assets.ingest.task.worker import build_file
from pinot_assets.snapshot.receipt import WORKER_DIED, Failure, Receipt

_STDERR: Final = 1 << 16


def build_alone(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """As `build_file`, in a process of its own; one that dies, or cannot be started, is a `Failure` of the
    file."""
    try:
        return _built(build_spec, task)
    except Exception as error:
        # A machine without memory or disk for one more process must not take the other files' job with it.
        return failure_of(build_spec, task, error)


def _built(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    with temporary_folder("alone") as folder:
        result, said = folder / "result", folder / "stderr"
        with said.open("wb") as stderr:
            child = subprocess.Popen(
                [sys.executable, "-m", "pinot_assets.ingest.task.isolated", str(result)],
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert child.stdin is not None
        # Its end of the pipe stays open: the child ends when this process does.
        with child.stdin as pipe:
            try:
                pipe.write(pickle.dumps((build_spec, task)))
                pipe.flush()
            except BrokenPipeError:
                pass  # it is dead; how it died says more
            code = child.wait()
        if code == 0:
            return cast(Receipt | Failure, pickle.loads(result.read_bytes()))
        return death(build_spec, task, code, _end_of(said))


def death(build_spec: BuildSpec, task: FileTask, code: int, said: str) -> Failure:
    """The failure of a file whose process died.

    :param code: what it returned, negative for the signal that ended it.
    :param said: what it wrote on standard error.
    """
    how = f"ended with {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    how += f" ({one_line(RuntimeError(last))})" if last else ""
    if code == -signal.SIGKILL or tells_of_memory(said):
        return Death(None, True).failure(build_spec, task, f"the process that built it alone {how}")
    hint = "look at the file, and report it if it is a valid one"
    reason = f"the process that built the file, alone as well, {how} → {hint}"
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, WORKER_DIED, reason)


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _STDERR))
        text = file.read().decode(errors="replace")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _end_with_parent() -> None:
    """Wait until the process that started this one has ended, and end this one."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def main(result: Path) -> None:
    """Build what standard input says and leave the outcome in a file."""
    order, task = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_memory(order.limits.worker_bytes)
    result.write_bytes(pickle.dumps(build_file(order, task)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)  # the thread that waits for the parent holds standard input
