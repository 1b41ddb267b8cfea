"""An actor as its simulated worker has it: the object, its calls, and what is kept."""

from __future__ import annotations

import collections
import inspect
import pickle
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Set, Tuple

from .. import errors
from ..actors.hosting import Died, call_own, open_stream, words_of
from ..actors.keeping import Kept

if TYPE_CHECKING:
    from . import Simulation


class Hosted:
    """One actor. `actor` is the C library's, in a turn of it."""

    def __init__(self, sim: "Simulation", cls: type, args: Tuple[Any, ...], kept: bool,
                 concurrency: int) -> None:
        self._sim, self._cls, self._args = sim, cls, args
        self._concurrency = concurrency
        self._queue: Deque[Tuple[int, bytes]] = collections.deque()
        self._tasks: Set[Any] = set()
        self._streams: Dict[int, Any] = {}
        self._is_kept = kept
        self._is_dying = False
        self._object: Any = None
        self.recorded: List[Any] = []   # of a kept one: the whole state, and records
        self.is_loading = False         # what is replayed is of an earlier life

    # ---- the object ----

    def make(self) -> None:
        """By the constructor, or from what is recorded."""
        def construct() -> Any:
            return self._cls(*self._args)
        if not self._is_kept:
            self._object = construct()
            return
        self._object = Kept(construct, self._cls, list(self.recorded))
        self.is_loading = False
        self.recorded = self._object.muster_changes() or self.recorded

    def look(self) -> Any:
        """That of the class."""
        if self._object is None:
            self.make()
        return self._object._object if isinstance(self._object, Kept) else self._object

    def _record(self, actor: int) -> None:
        """What a call has changed is recorded with this turn."""
        changes = self._object.muster_changes() if self._is_kept else None
        if changes is None:
            return
        if changes[0] is not None:
            self.recorded = changes
            self._sim.record(actor, None)
            return
        for record in changes[1:]:
            self.recorded.append(record)
            self._sim.record(actor, record)

    # ---- calls ----

    def take(self, reply: int, data: bytes) -> None:
        """A call has come."""
        self._queue.append((reply, data))
        self._begin_calls()

    def _begin_calls(self) -> None:
        while self._queue and not self._is_dying and \
                len(self._tasks) < self._concurrency:
            reply, data = self._queue.popleft()
            try:
                result = self._begin(*pickle.loads(data))
            except Died as death:
                self._die(death)
            except Exception as error:
                self._answer(reply, False, error)
            else:
                if not inspect.isawaitable(result):
                    self._answer(reply, True, result)
                    continue
                task = self._sim.loop.create_task(self._finish(reply, result))
                self._tasks.add(task)
                task.add_done_callback(self._end)

    def _begin(self, name: str, args: Any, kwargs: Any) -> Any:
        if self._object is None:
            self.make()
        if name == "muster.stop":
            return self._sim.stop(*args)
        if name.startswith("muster."):
            return call_own(self._streams, self._object, name, args)
        result = getattr(self._object, name)(*args, **kwargs)
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            return open_stream(self._streams, result, self._sim.numbers)
        return result

    async def _finish(self, reply: int, result: Any) -> None:
        try:
            value = await result
        except Died as death:
            self._die(death)
        except Exception as error:
            self._answer(reply, False, error)
        else:
            self._answer(reply, True, value)

    def _die(self, death: Died) -> None:
        self._is_dying = True
        self._sim.die(words_of(death))

    def _end(self, task: Any) -> None:
        self._tasks.discard(task)
        self._begin_calls()

    def _answer(self, reply: int, fine: bool, value: Any) -> None:
        try:
            data = pickle.dumps((fine, value), 5)
        except Exception as error:
            data = pickle.dumps((False, TypeError(str(error))), 5)
        self._record(self._sim.turn_of())
        self._sim.answer(reply, data)


class Stream:
    """The items of a generator method: `for` in a story, `async for` in an actor."""

    def __init__(self, sim: "Simulation", address: bytes, opened: Any) -> None:
        self._sim, self._address, self._opened = sim, address, opened
        self._number: Optional[int] = None
        self._items: Deque[Any] = collections.deque()
        self._is_over = False

    def _ask(self, name: str, *args: Any) -> Any:
        return self._sim.call(self._address, name, (self._number, *args))

    def _take(self, answer: Tuple[List[Any], bool]) -> None:
        items, self._is_over = answer
        self._items.extend(items)

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Any:
        if self._number is None:
            self._number = self._opened
        while not self._items:
            if self._is_over:
                raise StopIteration
            self._is_over = True    # of an iterator that raises, the next item is its end
            self._take(self._ask("muster.next", 32))
        return self._items.popleft()

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Any:
        if self._number is None:
            self._number = await self._opened
        while not self._items:
            if self._is_over:
                raise StopAsyncIteration
            self._is_over = True
            self._take(await self._ask("muster.next", 32))
        return self._items.popleft()

    def close(self) -> Any:
        """No more items are wanted: end the generator."""
        self._items.clear()
        self._is_over = True
        return None if self._number is None else self._ask("muster.close")
