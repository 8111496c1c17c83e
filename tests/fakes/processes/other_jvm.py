"""Errors of a JVM of the tests' own, beside that of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import py4j.java_gateway
import py4j.protocol
import pytest
from py4j.protocol import Py4JJavaError


@contextmanager
def errors_of_py4j() -> Iterator[None]:
    """Errors are py4j's own.

    Once Spark runs in a process, PySpark asks the JVM of Spark what every error of py4j means: that one knows
    nothing of an object of another JVM, or has another one under its number.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
        yield


@contextmanager
def java_fails() -> Iterator[None]:
    """Java throws something."""
    with errors_of_py4j(), pytest.raises(Py4JJavaError):
        yield
