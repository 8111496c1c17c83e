"""Build one file in its own process, after it has ended workers.

The exit code and the output of that process show why it ended; Spark only reports that a worker ended.
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
from pinot_assets.core.this_machine import convert_without_pandas, limit_memory
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.failures import Death, failure_of, tells_of_memory
from pinot_assets.ingest.task import build_file, built_before
from pinot_assets.snapshot.receipt import WORKER_DIED, Failure, Receipt

_STDERR: Final = 1 << 16


def build_alone(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build the file as `build_file` does, in its own process. If that process dies or does not start, return
    a `Failure` of the file."""
    try:
        return built_before(build_spec, task) or _built(build_spec, task)
    except Exception as error:
        # If memory or disk do not suffice for one more process, only this file may fail, not the whole job.
        return failure_of(build_spec, task, error)


def _built(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    with temporary_folder("alone") as folder:
        result, said = folder / "result", folder / "stderr"
        with said.open("wb") as stderr:
            child = subprocess.Popen(
                [sys.executable, "-m", "pinot_assets.ingest.own_process", str(result)],
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert child.stdin is not None
        # This process keeps its end of the pipe open, so the child ends when this process ends.
        with child.stdin as pipe:
            try:
                pipe.write(pickle.dumps((build_spec, task)))
                pipe.flush()
            except BrokenPipeError:
                pass  # the child is dead; its exit code below says why
            code = child.wait()
        if code == 0:
            return cast(Receipt | Failure, pickle.loads(result.read_bytes()))
        return death(build_spec, task, code, _end_of(said))


def death(build_spec: BuildSpec, task: FileTask, code: int, said: str) -> Failure:
    """Return the failure of a file whose process died.

    :param code: the exit code; negative: the number of the signal that ended the process.
    :param said: the process's output and standard error (the last 64 KiB).
    """
    how = f"ended with {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    how += f" ({one_line(RuntimeError(last))})" if last else ""
    if code == -signal.SIGKILL or tells_of_memory(said):
        return Death(None, True).failure(build_spec, task, f"the process that built it alone {how}")
    hint = "check the file, and report it if it is a valid one"
    reason = f"the process that built the file, alone as well, {how} → {hint}"
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, WORKER_DIED, reason)


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _STDERR))
        text = file.read().decode(errors="replace")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _end_with_parent() -> None:
    """Wait until the parent process has ended, then end this process."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def main(result: Path) -> None:
    """Build the file that standard input describes; write the pickled outcome to `result`."""
    order, task = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    convert_without_pandas()
    limit_memory(order.limits.worker_bytes)
    result.write_bytes(pickle.dumps(build_file(order, task)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)  # a normal exit would block: the thread above still reads standard input
