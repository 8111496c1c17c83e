"""What runs in the world and can be killed."""

from __future__ import annotations

import simpy

from simulator.zookeeper import Steps, T

KILLED = object()
"""Cause of the interrupt that ends a killed actor's steps."""

STOP = object()
"""Cause of the interrupt by which one step of an actor ends another."""


class Died(Exception):
    """The actor died of its own step (a fault at that very point)."""


class Actor:
    """A process of the cluster: a server or a controller. What it does ends when it is killed.

    :ivar since: when it came or went last.
    """

    def __init__(self, env: simpy.Environment, name: str) -> None:
        self.env = env
        self.name = name
        self.alive = True
        self.since = int(env.now)
        self._running: set[simpy.Process] = set()

    def spawn(self, steps: Steps[T]) -> simpy.Process:
        """Do something beside; the value is None when the actor is killed before its end."""
        assert self.alive, f"{self.name} is dead, and the dead do nothing"
        process = self.env.process(self._until_killed(steps))
        self._running.add(process)
        return process

    def _until_killed(self, steps: Steps[T]) -> Steps[T | None]:
        process = self.env.active_process
        try:
            return (yield from steps)
        except Died:
            return None
        except simpy.Interrupt as interrupt:
            if interrupt.cause is KILLED:
                return None
            raise
        finally:
            if process is not None:
                self._running.discard(process)

    def kill(self) -> None:
        """Die as by kill -9: everything it does ends here."""
        self.alive = False
        self.since = int(self.env.now)
        for process in list(self._running):
            if process.is_alive and process is not self.env.active_process:
                process.interrupt(KILLED)
        self._running.clear()
