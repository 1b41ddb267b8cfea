"""Actors as their worker has them: called by the extension (src/hosting)."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import logging
import sys
import threading
import time
import types
from typing import (Any, AsyncIterator, Callable, Coroutine, Dict, Iterator, List,
                    NoReturn, Optional, Tuple)

from .. import _muster, _pickling, errors
from .about import describe, pack_about

STREAMS_MAX = 1000      # open at a time in one actor
ITEMS_MAX = 32          # of a stream in one answer; the next ones may be under way
_GATHER_SECONDS = 0.005     # an answer with fewer leaves after this time
_CLASSES_MAX = 64
_CLASS_BYTES_MAX = 1 << 20

_classes: "collections.OrderedDict[bytes, Any]" = collections.OrderedDict()
_lock = threading.Lock()


def same(value: Any) -> Any:
    """What a pickle has in place of a RemoteValue: its content."""
    return value


# ---- making objects ----

def class_of(data: bytes) -> Any:
    """The class of a pickle: one object for all actors of it."""
    with _lock:
        if data in _classes:
            _classes.move_to_end(data)
            return _classes[data]
    cls = _pickling.loads(data)
    with _lock:
        if len(data) <= _CLASS_BYTES_MAX:
            cls = _classes.setdefault(data, cls)
        while len(_classes) > _CLASSES_MAX:
            _classes.popitem(last=False)
    return cls


def make(data: bytes, where: str, args: Tuple[Any, ...],
         kwargs: Optional[Dict[str, Any]]) -> Any:
    """The object of an actor."""
    if where == "process":
        from .children import Child

        return Child(data, args, kwargs or {})
    return class_of(data)(*args, **(kwargs or {}))


def make_kept(data: bytes, saved: Optional[List[Any]], args: Tuple[Any, ...],
              kwargs: Optional[Dict[str, Any]]) -> Any:
    """That of a kept actor; saved: what is recorded of it."""
    from .keeping import Kept

    cls = class_of(data)
    return Kept(lambda: cls(*args, **(kwargs or {})), cls, saved)


# ---- ends ----

class Died(BaseException):
    """Ends the actor whose method raises it."""

    ran = 3     # MU_RAN_YES


class Lost(Died):
    """Ends the actor whose process has ended."""

    ran = 2     # MU_RAN_MAYBE


class LostBefore(Lost):
    """The same, before it was asked for anything more."""

    ran = 1     # MU_RAN_NO


def die(reason: str = "") -> NoReturn:
    """End the actor whose method calls this. The callers of what it has not answered get
    an ActorError with the reason."""
    raise Died(reason)


def words_of(exception: BaseException) -> str:
    """An exception in one line."""
    try:
        words = str(exception)
    except Exception:
        words = "<its words raise an exception>"
    if isinstance(exception, Died):
        return words or "it called muster.die()"
    name = type(exception).__name__
    return f"{name}: {words}" if words else name


def tell_exception(name: str, what: str, words: str) -> None:
    """Log an exception for which perhaps nobody waits."""
    logging.getLogger("muster").warning("%s: %s: %s", name, what, words)


# ---- the run ----

class ActorRun:
    """The run of an actor's method, for current_run(): like that of a function, without
    what belongs to a closure."""

    attempt = 1
    closure = 0

    def __init__(self, node: "_muster.Node", name: str) -> None:
        self.node = node
        self.name = name

    @property
    def worker(self) -> int:
        """Task index of the worker."""
        return int(self.node.task.rpartition(":")[2])

    @property
    def worker_type(self) -> str:
        """The worker's task type."""
        return self.node.task.split("/")[1].partition(":")[2]

    def cancelled(self) -> bool:
        """Whether the result is not needed any more: never known of an actor's call."""
        return False

    def log(self, line: Any) -> None:
        """Write a line to the worker's standard error."""
        sys.stderr.write(f"{self.name}: {line}\n")

    def report_metric(self, name: str, number: float, step: int = 0) -> None:
        """Send a number to the chief, for its status and Node.get_metric()."""
        self.node.report_metric(name, number, step)

    def __getattr__(self, name: str) -> Any:
        if hasattr(_muster.Run, name):
            raise errors.FailedPreconditionError(
                f"the method of an actor has no {name}(): its writes to variables are "
                "made at once, by the methods of the variable")
        raise AttributeError(name)


# ---- asynchronous methods ----

# The run of the method whose task this is.
_current: "contextvars.ContextVar[Optional[ActorRun]]" = contextvars.ContextVar(
    "muster_actor_run", default=None)

_loop: Optional[asyncio.AbstractEventLoop] = None


def set_current(run: Any) -> None:
    """The run of all that this thread does."""
    _current.set(run)


def current() -> ActorRun:
    """The run of this task, on the thread of the event loop."""
    run = _current.get()
    if run is None:
        raise errors.FailedPreconditionError("there is no run: this is no method of an "
                                             "actor")
    return run


def _serve_loop(loop: asyncio.AbstractEventLoop) -> None:
    _muster.actor_loop_thread()
    asyncio.set_event_loop(loop)
    loop.run_forever()


def loop_of_actors() -> asyncio.AbstractEventLoop:
    """One for all asynchronous methods of this process."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_serve_loop, args=(_loop,), name="muster-actors",
                             daemon=True).start()
        return _loop


async def _finish(coroutine: "Coroutine[Any, Any, Any]", run: ActorRun,
                  finish: Callable[[bool, Any], None]) -> None:
    _current.set(run)
    try:
        result = await coroutine
    except BaseException as error:
        finish(False, error)
    else:
        finish(True, result)


def start_async(coroutine: "Coroutine[Any, Any, Any]", run: ActorRun,
                finish: Callable[[bool, Any], None]) -> None:
    """Run a method's coroutine on the event loop; finish() is called at its end."""
    asyncio.run_coroutine_threadsafe(_finish(coroutine, run, finish), loop_of_actors())


# ---- streams ----

def _clock() -> float:
    """Of the event loop whose thread this is: that of a simulation is virtual."""
    loop = asyncio._get_running_loop()
    return time.monotonic() if loop is None else loop.time()


class Stream:
    """An iterator in an actor, whose items are asked for in batches."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._error: Optional[BaseException] = None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def next(self, most: int) -> Any:
        """The next items, at least one, and whether these were the last ones. An
        exception comes after the items before it."""
        self._raise_error()
        items: List[Any] = []
        until = _clock() + _GATHER_SECONDS
        try:
            for item in self._iterator:
                items.append(item)
                if len(items) >= most or _clock() >= until:
                    return items, False
        except BaseException as error:
            if not items or isinstance(error, Died):
                raise
            self._error = error
            return items, False
        return items, True

    def close(self) -> Any:
        """Nobody wants more."""
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()


class _AsyncStream(Stream):
    def __init__(self, iterator: AsyncIterator[Any]) -> None:
        self._items = iterator
        self._error = None

    async def next(self, most: int) -> Any:
        self._raise_error()
        items: List[Any] = []
        until = _clock() + _GATHER_SECONDS
        try:
            async for item in self._items:
                items.append(item)
                if len(items) >= most or _clock() >= until:
                    return items, False
        except BaseException as error:
            if not items or isinstance(error, Died):
                raise
            self._error = error
            return items, False
        return items, True

    async def close(self) -> Any:
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()


_numbers = iter(range(1, sys.maxsize))


def open_stream(streams: Dict[int, Stream], result: Any,
                numbers: Iterator[int] = _numbers) -> int:
    """Keep what a generator method has returned; its number in the actor."""
    if len(streams) >= STREAMS_MAX:
        raise errors.ResourceExhaustedError(
            f"{STREAMS_MAX} streams of the actor are open: iterate to their ends, or "
            "close() them")
    number = next(numbers)
    if isinstance(result, Stream):      # of a process
        streams[number] = result
    elif isinstance(result, types.AsyncGeneratorType):
        streams[number] = _AsyncStream(result)
    else:
        streams[number] = Stream(iter(result))
    return number


def _forget(streams: Dict[int, Stream], number: int, ended: bool) -> None:
    if ended:
        streams.pop(number, None)


async def _next_of(streams: Dict[int, Stream], number: int, most: int) -> Any:
    ended = True
    try:
        items, ended = await streams[number].next(most)
    finally:
        _forget(streams, number, ended)
    return items, ended


def _next(streams: Dict[int, Stream], number: int, most: int) -> Any:
    stream = streams.get(number)
    if stream is None:
        raise errors.NotFoundError("the stream was closed, or has ended")
    if isinstance(stream, _AsyncStream):
        return _next_of(streams, number, most)
    ended = True
    try:
        items, ended = stream.next(most)
    finally:
        _forget(streams, number, ended)
    return items, ended


def call_own(streams: Dict[int, Stream], target: Any, name: str,
             args: Tuple[Any, ...]) -> Any:
    """What the package asks of an actor by itself."""
    if name == "muster.about":
        ask = getattr(target, "muster_about", None)     # of a stand-in
        return pack_about(describe(type(target))) if ask is None else ask()
    if name == "muster.next":
        return _next(streams, *args)
    if name == "muster.close":
        stream = streams.pop(args[0], None)
        return None if stream is None else stream.close()
    raise errors.UnimplementedError(f"this version of muster does not know {name}")
