"""A Spark that is gone, in a process that goes on: `watch`, a notebook, a code server.

PySpark keeps the JVM and the context that it started for as long as the process lives. A JVM that was killed
(out of memory, by a person) and an application that its cluster ended are given to whoever asks next, and
refuse every call.
"""

from __future__ import annotations

import subprocess
import warnings
from contextlib import suppress
from typing import Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkContext

_ENDING_S: Final = 20.0


def forget_what_is_gone() -> bool:
    """Let the next that asks PySpark for a context start another one, if the one of this process is gone.

    :returns: whether it was the JVM that has ended.
    """
    gateway: JavaGateway | None = SparkContext._gateway
    context = SparkContext._active_spark_context
    if gateway is not None and _has_ended(gateway):
        if context is not None:
            _stop(context)
        with suppress(OSError, Py4JError):
            gateway.shutdown()
        with suppress(OSError, AttributeError):
            gateway.proc.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None
        return True
    if context is not None and is_stopped(context):
        _stop(context)
    return False


def is_stopped(context: SparkContext) -> bool:
    """Whether a context takes no jobs any more."""
    java = context._jsc
    if java is None:
        return True
    try:
        return bool(java.sc().isStopped())
    except (OSError, Py4JError):
        return True


def exit_of_jvm() -> int | None:
    """What the JVM of this process returned, once it has; None of one that goes on, or is not its own.

    One that dies stops its context first, so it is waited for.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(_ENDING_S))
    except subprocess.TimeoutExpired:
        return None


def _has_ended(gateway: JavaGateway) -> bool:
    """Of a JVM that is not this process's own child (`spark-submit`) nothing is known: both end together."""
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def _stop(context: SparkContext) -> None:
    """Take it out of PySpark's hands. Where its JVM does not answer, the first call only forgets the JVM."""
    with warnings.catch_warnings(), suppress(OSError, Py4JError):
        warnings.simplefilter("ignore", RuntimeWarning)
        context.stop()
    context.stop()
