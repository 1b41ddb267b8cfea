"""The event loop of simulated actors: its time is the simulation's, and it runs in turns.

Futures and tasks of asyncio need no more of a loop than this.
"""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING, Any, Callable, Deque

if TYPE_CHECKING:
    from . import Simulation


class Loop(asyncio.AbstractEventLoop):
    """Callbacks run at the end of the turn in which they were called for; timers belong
    to the actor whose turn it is."""

    def __init__(self, simulation: "Simulation") -> None:
        self.simulation = simulation
        self._ready: Deque[asyncio.Handle] = collections.deque()

    def time(self) -> float:
        return self.simulation.now

    def call_soon(self, callback: Any, *args: Any,    # type: ignore[override]
                  context: Any = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Any,     # type: ignore[override]
                   *args: Any, context: Any = None) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any,     # type: ignore[override]
                *args: Any, context: Any = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.simulation.timer(max(when - self.time(), 0.0),
                              lambda: self._ready.append(handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is not called when it is due."""

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **how: Any) -> "asyncio.Task[Any]":
        return asyncio.Task(coro, loop=self, **how)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: Any) -> None:
        """Of futures that nobody awaited, and tasks of actors that are gone."""

    def run_turn(self, turn: Callable[[], Any]) -> Any:
        """A function, and then all that is ready."""
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            result = turn()
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
            return result
        finally:
            asyncio._set_running_loop(outer)
