"""A worker or an executor that died: what Spark says of it, and the failure of its file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.machine_trouble import ADVICE, tells_of_memory
from pinot_assets.snapshot.failure_code import OUT_OF_MEMORY, WORKER_DIED
from pinot_assets.snapshot.receipt import Failure

_TASK: Final = re.compile(r"Task ([0-9]+) in stage [0-9.]+ failed [0-9]+ times")
_DEAD: Final = re.compile(
    r"Python worker exited unexpectedly"
    r"|PYTHON_WORKER_EXITED_UNEXPECTEDLY"
    r"|ExecutorLostFailure"
    r"|Executor heartbeat timed out"
)
_OF_MEMORY: Final = re.compile(
    r"Container killed by YARN for exceeding|OOMKilled|exit(?:ed with)? code:? (?:52|137)\b"
)
"""What resource managers say: 52 is the end of a JVM without memory, 137 that of a process by SIGKILL."""
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
    is_dead = _DEAD.search(text) is not None and not _RAISED.search(text)
    of_memory = tells_of_memory(text) or (is_dead and _OF_MEMORY.search(text) is not None)
    if not (is_dead or of_memory):
        return None
    found = _TASK.search(text)
    return Death(None if found is None else int(found[1]), of_memory)


def death_of_memory(build_spec: BuildSpec, task: FileTask, how: str) -> Failure:
    """The failure of a file whose worker was ended for its memory."""
    reason = f"the worker had too little memory for the file: {how} → {ADVICE}"
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, OUT_OF_MEMORY, reason)


def death_of_executor(build_spec: BuildSpec, task: FileTask, why: str) -> Failure:
    """The failure of a file whose worker, or executor, died again and again.

    :param why: Spark's words.
    """
    reason = f"what built the file died, alone as well: {why} → see Spark's log for its end"
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, WORKER_DIED, reason)
