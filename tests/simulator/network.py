"""Messages between servers and controllers: asked, answered, lost on the way there or back, or late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import simpy

from simulator.protocol import NOT_SENT, REQUEST_TIMEOUT_MS, MessageKind, Reason, Reply
from simulator.rows import Built
from simulator.zookeeper import Steps


@dataclass(frozen=True, slots=True)
class Message:
    """What a server says.

    :ivar tar: with the upload, and as metadata with the commit's end.
    :ivar location: with the commit's end: where the tar lies, `peer://…` where only servers have it.
    """

    kind: MessageKind
    segment: str
    server: str
    offset: int
    reason: Reason | None = None
    rows: int = 0
    tar: Built | None = None
    location: str | None = None
    extra_ms: int = 0
    timeout_ms: int = REQUEST_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a message.

    :ivar late_ms: how much later than usual it arrives; past the sender's time-out it is still carried out.
    """

    lost: bool = False
    reply_lost: bool = False
    late_ms: int = 0


ARRIVES = Fate()


@dataclass
class Network:
    """Carries messages to the lead controller.

    :ivar deliver: hands a message to whom servers take for the lead; its value is None where nobody answers.
    :ivar fate: decides what becomes of each message; faults replace it.
    :ivar carried: what came through, in order, for the tests and the trace.
    """

    env: simpy.Environment
    delay_ms: int
    deliver: Callable[[Message], simpy.Event | None]
    fate: Callable[[Message], Fate] = lambda _message: ARRIVES
    carried: list[tuple[int, Message, Reply]] = field(default_factory=list)

    def ask(self, message: Message) -> Steps[Reply]:
        """Send a message and wait for the answer, not longer than its time-out."""
        answer = self.env.process(self._carry(message))
        yield answer | self.env.timeout(message.timeout_ms)
        in_time = answer.processed and isinstance(answer.value, Reply)
        reply: Reply = answer.value if in_time else NOT_SENT  # type: ignore[assignment]
        return reply

    def _carry(self, message: Message) -> Steps[Reply]:
        fate = self.fate(message)
        yield self.env.timeout(self.delay_ms + fate.late_ms)
        if fate.lost:
            yield self.env.timeout(message.timeout_ms)
            return NOT_SENT
        handled = self.deliver(message)
        reply = None
        if handled is not None:
            reply = yield handled
        if not isinstance(reply, Reply):
            # Refused, or reset when the controller died.
            return NOT_SENT
        self.carried.append((int(self.env.now), message, reply))
        yield self.env.timeout(message.timeout_ms if fate.reply_lost else self.delay_ms)
        return NOT_SENT if fate.reply_lost else reply
