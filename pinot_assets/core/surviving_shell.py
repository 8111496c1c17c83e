"""A tiny shell that outlives this process, to do what is left to do when it is gone.

Whatever ends this process, `kill -9` included, closes its end of a pipe. The shell reads the other end. It is
deaf to what ends a whole terminal or group, and ends by itself.
"""

from __future__ import annotations

import subprocess
from typing import Final

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
