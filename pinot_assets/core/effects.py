"""Records what a piece of work has changed so far, for the error that may end it half way.

One call knows only its own outcome: "no connection" means nothing for the calls before it. So a `recorded`
client of Pinot notes each call that changes something. If the network fails, `progress_in_errors` adds the
notes to the error: what was done, what is unknown, and the command that continues the work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar, cast

from kazoo.exceptions import KazooException

from pinot_assets.core.text import plural
from pinot_assets.errors import (
    LeaseLost,
    PinotAssetsError,
    PinotError,
    PinotUnreachable,
    SourceError,
    SwitchStateUnknown,
)

ClientT = TypeVar("ClientT")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effect:
    """One call that changes something.

    :ivar method: the client's method.
    :ivar subject: the name of the changed lineage entry, table or segment; "" if it is not known.
    :ivar count: number of segments, 0 if the call concerns none.
    """

    method: str
    subject: str = ""
    count: int = 0


@dataclass
class Effects:
    """The calls of one piece of work, in their order.

    :ivar done: Pinot answered, or showed the effect later.
    :ivar unknown: sent, but no answer came, or the caller stopped waiting for one.
    :ivar on_effect: called with each effect, and `done` or `unknown`.
    """

    done: list[Effect] = field(default_factory=list)
    unknown: list[Effect] = field(default_factory=list)
    on_effect: Callable[[Effect, str], None] = lambda _effect, _known: None

    def recorded(self, client: ClientT) -> ClientT:
        """Return the client as one that notes here each call that changes something."""
        return cast(ClientT, _Recorded(client, self))

    def settled(self, verb: str, subject: str) -> None:
        """Move calls of a lineage entry from unknown to done, because Pinot showed their effect.

        :param verb: `start`, `end` or `revert`.
        :param subject: id of the entry.
        """
        happened = [effect for effect in self.unknown if effect.method.endswith(f"{verb}_replace_segments")]
        self.unknown = [effect for effect in self.unknown if effect not in happened]
        self.done += [replace(effect, subject=subject) for effect in happened]

    def call(self, name: str, method: Callable[..., T], *args: object, **options: object) -> T:
        """Make one call that changes something, and record its outcome."""
        try:
            answer = method(*args, **options)
        except BaseException as error:
            refused = isinstance(error, PinotAssetsError) and not isinstance(error, SwitchStateUnknown)
            # If a push is sent in parts, PinotUnreachable means that only the last part was not sent. After
            # Ctrl-C, Dagster's terminate or the watchdog, Pinot continues with what it received.
            if not refused or (name == "push" and isinstance(error, PinotUnreachable)):
                self.unknown.append(_effect(name, args, None))
                self.on_effect(self.unknown[-1], "unknown")
            raise
        self.done.append(_effect(name, args, answer))
        self.on_effect(self.done[-1], "done")
        return answer


class _Recorded:
    """Forwards every call to the client, and records those of `WORDS`."""

    def __init__(self, client: object, effects: Effects) -> None:
        self._client, self._effects = client, effects

    def __getattr__(self, name: str) -> object:
        method = getattr(self._client, name)
        return partial(self._effects.call, name, method) if name in WORDS else method


# --- in words --------------------------------------------------------------------------------------

_START = "lineage entry {subject} opened for {segments}"
_REVERT = "lineage entry {subject} reverted"
_UPLOAD = "an upload to the deep store of {subject} requested"
WORDS: Final[Mapping[str, str]] = {
    "start_replace_segments": _START,
    "force_start_replace_segments": _START,
    "push": "{segments} pushed",
    "end_replace_segments": "lineage entry {subject} ended",
    "revert_replace_segments": _REVERT,
    "force_revert_replace_segments": _REVERT,
    "delete_segments": "{segments} deleted",
    "put_schema": "schema {subject} written",
    "replace_schema": "schema {subject} replaced",
    "delete_schema": "schema {subject} deleted",
    "create_table": "table {subject} created",
    "update_table": "config of table {subject} written",
    "reload_segment": "reloads of segments of {subject} requested",
    "delete_table": "table {subject} deleted",
    "update_realtime_config": "config of table {subject} written",
    "pause": "{subject} paused",
    "resume": "{subject} resumed",
    "force_commit": "a commit of what {subject} consumes requested",
    "rebalance": "a rebalance of {subject} started",
    "delete_from": "{segments} of {subject} and all later ones deleted",
    "run_validation": "a validation of {subject} requested",
    "run_validation_with": "a validation of {subject} requested",
    "upload_to_deep_store": _UPLOAD,
    "force_upload_to_deep_store": _UPLOAD,
    "reset_replica": "a replica of {subject} reset",
    "server_uploads": "an upload by a server of {subject} requested",
    "server_uploads_committed": "an upload by a server of {subject} requested",
    "reingest": "a new consumption of segment {subject} requested",
    "write_segment": "metadata of a segment of {subject} written",
}
"""Every method that changes something, and the words for its effect."""

_OF_SERVERS: Final = frozenset({"server_uploads", "server_uploads_committed", "reingest"})
_STARTS: Final = {"start_replace_segments": 2, "force_start_replace_segments": 2}
_OF_SEGMENTS: Final = {"push": 1, "delete_segments": 1, "delete_from": 1} | _STARTS
"""Index of the argument that holds the segments."""


def _effect(name: str, args: Sequence[object], answer: object) -> Effect:
    """:param args: the call's arguments: names, lists of names, configs."""
    segments = args[_OF_SEGMENTS[name]] if name in _OF_SEGMENTS else ()
    count = len(segments) if isinstance(segments, Sized) else 0
    if name in _STARTS:
        return Effect(name, str(answer or ""), count)
    if name.endswith("_replace_segments") or name in _OF_SERVERS:
        return Effect(name, str(args[1]))
    of = args[0]  # a table name, or a schema or table config
    named = of.get("tableName") or of.get("schemaName") or "" if isinstance(of, Mapping) else of
    return Effect(name, str(named), count)


def in_words(effects: Sequence[Effect]) -> list[str]:
    """Return the effects in words, each once, in their order; segments of several calls are added up."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for effect in effects:
        counts[effect.method, effect.subject] += effect.count
    return [
        " ".join(WORDS[method].format(subject=subject, segments=plural(count, "segment")).split())
        for (method, subject), count in counts.items()
    ]


# --- in errors -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SoFar:
    """The progress at the moment when a piece of work was interrupted.

    :ivar standing: what was done and what is unknown, in words.
    :ivar then: the command that continues the work, and what it does.
    :ivar changed: whether anything was changed, or may have been.
    """

    standing: str
    then: str
    changed: bool


@contextmanager
def progress_in_errors(look: Callable[[], SoFar]) -> Iterator[None]:
    """Add the progress so far to an error of the block if a service did not answer.

    :param look: returns the progress; called only for such an error, and must make no calls itself.
    """
    try:
        yield
    except PinotAssetsError as error:
        silent = (PinotUnreachable, SwitchStateUnknown, SourceError, LeaseLost)
        if isinstance(error, silent) or isinstance(error.__cause__, KazooException):
            progress = look()
            if progress.changed or isinstance(error, PinotError):
                parts = [progress.standing, progress.then, error.hint]
                error.hint = "; ".join(part for part in parts if part)
        raise


@contextmanager
def recording(client: ClientT, again: str) -> Iterator[ClientT]:
    """Yield a recorded client; if a service stops answering in this block, the error shows what was done.

    :param again: the command that continues the work, for the end of the hint.
    """
    effects = Effects()

    def look() -> SoFar:
        done = standing(effects)
        return SoFar(done or "nothing was changed in Pinot", again, changed=bool(done))

    with progress_in_errors(look):
        yield effects.recorded(client)


def standing(effects: Effects, beside: Sequence[str] = ()) -> str:
    """Return what was done and what is unknown; "" if there is neither.

    :param beside: other things that were done, before the effects.
    """
    done = [*beside, *in_words(effects.done)]
    parts = [f"done so far: {', '.join(done)}"] if done else []
    if effects.unknown:
        parts.append(f"not known whether it happened: {', '.join(in_words(effects.unknown))}")
    return "; ".join(parts)
