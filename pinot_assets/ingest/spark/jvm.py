"""The start of Spark's JVM, which no end of this process leaves half done.

A JVM that is up ends when its standard input does, which is a pipe from this process. One that still starts
may never come to reading it: PySpark, interrupted, removes the folder in which the JVM is to leave its
address, and a JVM that cannot leave it fails without an end. So until it is up a tiny shell watches (see
`deaf_shell`).

The shell needs no number, which this process could be killed before it tells. What it reads from is a pipe,
and all that PySpark starts inherits the end that is read: who has that pipe open is to end. The end that is
written stays in this process, and in its child up to the moment in which that becomes Spark's script.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from pinot_assets.core.machine import deaf_shell
from pinot_assets.ingest.spark.home import usual_signals

_UNTIL_UP: Final = r"""
read -r up && exit
cd /proc || exit
while
  left=
  for each in [0-9]*/fd/"$1"; do
    [ "$each" -ef /dev/fd/0 ] && kill -s KILL "${each%%/*}" && left=some
  done
  [ "$left" ]
do sleep 0.1; done
"""


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM that PySpark will use for the next context, unless this process has one.

    :param settings: Spark's; those that a JVM takes when it starts.
    :raises PySparkRuntimeError: it ends before it is up.
    """
    with SparkContext._lock:
        if SparkContext._gateway is None:
            conf = SparkConf().setAll([*settings.items()])
            with usual_signals(), _ended_unless_up() as inherited:
                gateway = launch_gateway(conf, {"pass_fds": (inherited,)})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway, conf=conf)


@contextmanager
def _ended_unless_up() -> Iterator[int]:
    """A descriptor: whatever inherits it ends where this block does not come to its end."""
    inherited, told = os.pipe()
    with deaf_shell(_UNTIL_UP, str(inherited), stdin=inherited), open(told, "wb") as watching:
        try:
            yield inherited
        finally:
            os.close(inherited)  # before the other end: this process is not to end
        watching.write(b"up\n")
