"""Wait for a Spark job, and pass on what its tasks have finished."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final, TypeVar

from pyspark.accumulators import Accumulator

from pinot_assets.snapshot.receipt import FileResult

LOOK_S: Final = 0.2
"""How often the driver looks for finished files."""

T = TypeVar("T")


def running(
    job: Callable[[], T], finished: Accumulator[list[FileResult]], cancel: Callable[[], object]
) -> Generator[FileResult | None, None, Future[T]]:
    """Run `job` in a thread; yield the results of its tasks as they arrive, and None after every wait.

    :param finished: where its tasks add their results.
    :param cancel: ends the job. If the caller leaves early, it is called again and again until the job ended.
    :returns: the job, which has ended.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="spark-job") as pool:
        future = pool.submit(job)
        try:
            passed_on = 0
            while not future.done():
                wait([future], timeout=LOOK_S)
                arrived = finished.value[passed_on:]
                passed_on += len(arrived)
                yield from arrived
                yield None
            yield from finished.value[passed_on:]  # a job that died returns no result itself
        finally:
            while not future.done():  # repeat: the thread may start its job just after a cancel
                with suppress(Exception):  # this may run because Spark itself failed
                    cancel()
                wait([future], timeout=LOOK_S)
        return future
