"""Commands of the machine that run for as long as this process waits for them, and no longer.

Whatever ends the wait ends the command and what it started: an error, Ctrl-C, and `kill -9` of this process,
after which a shell does it (see `deaf_shell`). So each command is the leader of a process group of its own.

That shell outlives this process, to do what is left to do when it is gone. Whatever ends this process,
`kill -9` included, closes its end of a pipe. The shell reads the other end. It is deaf to what ends a whole
terminal or group, and ends by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

_DEAF: Final = "trap '' INT TERM HUP QUIT\n"


def deaf_shell(script: str, *arguments: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Start one. Keep what is returned: its standard input is the pipe.

    :param script: for `/bin/sh`; it sees the end of this process as the end of its standard input.
    :param arguments: `$1` and so on.
    :param stdin: the end that is read of another pipe.
    """
    # A session of its own: a signal to this process's group is not for it.
    return subprocess.Popen(
        ["/bin/sh", "-c", _DEAF + script, "pinot-assets-afterwards", *arguments],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


_WATCH: Final = 'read -r group && { read -r over || kill -s KILL -- "-$group"; }'

# Its number goes to the watching shell before the command begins, so that there is no moment in which this
# process can be killed and the command goes on.
_LEAD: Final = 'echo $$ >&0; exec "$@" </dev/null'

Output = int | IO[bytes] | IO[str] | None


@contextmanager
def child(
    command: Sequence[str | Path],
    *,
    stdout: Output = None,
    stderr: Output = None,
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """A running command without standard input; what it prints is text, with what is no UTF-8 replaced.

    Left early, the block ends it with all of its group; else it waits for its end. What the command left
    running on purpose by then goes on.
    """
    watching = deaf_shell(_WATCH)
    assert watching.stdin is not None
    with watching, watching.stdin as pipe:
        with subprocess.Popen(
            ["/bin/sh", "-c", _LEAD, "pinot-assets-child", *map(str, command)],
            stdin=pipe,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            text=True,
            errors="replace",
            process_group=0,
        ) as running:
            try:
                yield running
                running.wait()
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                raise
        with suppress(BrokenPipeError):
            pipe.write(b"over\n")
            pipe.flush()


def run_child(
    command: Sequence[str | Path],
    *,
    stdout: Output = subprocess.PIPE,
    stderr: Output = subprocess.PIPE,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; what it printed and its exit code.

    :param timeout: in seconds.
    :raises subprocess.TimeoutExpired: it took longer, and was ended.
    """
    with child(command, stdout=stdout, stderr=stderr, cwd=cwd) as running:
        out, err = running.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, running.returncode, out, err)
