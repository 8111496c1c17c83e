"""A worker or an executor that died: what Spark says of it, and the failure of its file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pinot_assets.build.order import BuildOrder, FileTask
from pinot_assets.build.trouble import ADVICE, tells_of_memory
from pinot_assets.session.failure_code import OUT_OF_MEMORY, WORKER_DIED
from pinot_assets.session.receipt import Failure

_TASK: Final = re.compile(r"Task ([0-9]+) in stage [0-9.]+ failed [0-9]+ times")
_DEAD: Final = re.compile(
    r"Python worker exited unexpectedly"
    r"|PYTHON_WORKER_EXITED_UNEXPECTEDLY"
    r"|ExecutorLostFailure"
    r"|Executor heartbeat timed out"
    r"|^(?:Caused by: )?java\.(?:io\.EOFException|net\.SocketException)",
    re.MULTILINE,
)
_RAISED: Final = re.compile(r"^(?:Caused by: )?\S*\.PythonException\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a job by the death of what ran one of its tasks.

    :ivar task: the task's place in its job, None where Spark does not say.
    :ivar of_memory: whether it was ended because memory ran out, as far as Spark knows.
    """

    task: int | None
    of_memory: bool


def death_of(text: str) -> Death | None:
    """What a Spark error says of a worker that died; None where none did.

    :param text: the whole of it, stack traces included.
    """
    if tells_of_memory(text) or (_DEAD.search(text) and not _RAISED.search(text)):
        found = _TASK.search(text)
        return Death(None if found is None else int(found[1]), tells_of_memory(text))
    return None


def death_of_memory(order: BuildOrder, task: FileTask, how: str) -> Failure:
    """The failure of a file whose worker was ended for its memory."""
    reason = f"the worker had too little memory for the file: {how} → {ADVICE}"
    return Failure(task.file.uri, task.ordinal, order.attempt, OUT_OF_MEMORY, reason)


def death_of_executor(order: BuildOrder, task: FileTask, why: str) -> Failure:
    """The failure of a file whose worker, or executor, died again and again.

    :param why: Spark's words.
    """
    reason = f"what built the file died, alone as well: {why} → see Spark's log for its end"
    return Failure(task.file.uri, task.ordinal, order.attempt, WORKER_DIED, reason)
