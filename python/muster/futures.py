"""Futures that concurrent.futures and asyncio understand, and waiting for them.

as_completed() and wait() take futures of concurrent.futures and RemoteValues alike.
"""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import os
import threading
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION
from typing import (Any, Callable, Dict, Generator, Generic, Iterable, Iterator, List,
                    NamedTuple, Optional, Set, Tuple, TypeVar, Union, cast, overload)

from . import _muster, errors

__all__ = ["ALL_COMPLETED", "FIRST_COMPLETED", "FIRST_EXCEPTION", "DoneAndNotDone",
           "Future", "as_completed", "future_of", "wait"]

T = TypeVar("T")
W = TypeVar("W", bound="Waitable")
Waitable = Union["cf.Future[Any]", "_muster.RemoteValue[Any]"]

_PENDING = "PENDING"
_RUNNING = "RUNNING"
_CANCELLED = "CANCELLED_AND_NOTIFIED"
_NOT_NOTIFIED = "CANCELLED"
_FINISHED = "FINISHED"

# Held while a future's condition is created, which most futures never need.
_guard = threading.Lock()
_is_forked = False
_LAZY: Dict[str, Callable[[], Any]] = {
    "_condition": threading.Condition, "_waiters": list, "_done_callbacks": list,
}


def _after_fork() -> None:
    global _guard, _is_forked
    _guard = threading.Lock()
    _is_forked = True


os.register_at_fork(after_in_child=_after_fork)


class Owner:
    """Gets notified of failures and cancellations of its futures."""

    cancel_running = False
    cancelled = _CANCELLED      # the state of a future that was cancelled

    def failed(self, future: "Future[Any]", error: BaseException,
               is_aborted: bool) -> bool:
        """The closure of a running future failed; is_aborted: it was aborted. Settles the
        future; returns False when it sends the closure again instead."""
        if is_aborted:
            future._settle(_CANCELLED, None, None)
        else:
            future._settle(_FINISHED, None, error)
        return True

    def recall(self, future: "Future[Any]", source: Any) -> None:
        """A future of this owner was cancelled while it may be running."""
        future._recall()


class _Nobody(Owner):
    """The owner of futures that other code settles."""

    cancelled = _NOT_NOTIFIED


NOBODY = _Nobody()


class Future(_muster.FutureState, cf.Future, Generic[T]):  # type: ignore[type-arg]
    """A future of an Executor: a concurrent.futures.Future that can also be awaited.

    running() is True once the closure was sent to the cluster. cancel() cancels what
    waits for its turn; with Executor(cancel_running=True) also what the cluster has: a
    function that runs is asked to stop, see Run.cancelled(), and its result is dropped.
    """

    # The condition and the lists of the base class are created on first use, and the rest
    # is in FutureState (C): an executor makes and settles a hundred thousand futures a
    # second.
    __slots__ = ("_condition", "_waiters", "_done_callbacks")

    def __init__(self) -> None:
        """FutureState initializes the future."""

    def __getattr__(self, name: str) -> Any:
        make = _LAZY.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute "
                                 f"{name!r}")
        made = make()
        with _guard:
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                self._share()
                setattr(self, name, made)
                return made

    # ---- states ----

    def _begin(self) -> bool:
        """Mark it as running, so that it cannot be cancelled; False when it was
        cancelled."""
        return self._move(_PENDING, _RUNNING)

    def _settle(self, state: str, result: Any, exception: Optional[BaseException],
                if_running: bool = True) -> bool:
        """Make it done; False when it is done already, or runs and must not."""
        if not self._is_shared and \
                self._finish(state, result, exception, if_running, False):
            return True
        with self._condition:
            if not self._finish(state, result, exception, if_running, True):
                return False
            for waiter in self._waiters:
                if state == _NOT_NOTIFIED:
                    break
                if state == _CANCELLED:
                    waiter.add_cancelled(self)
                elif exception is not None:
                    waiter.add_exception(self)
                else:
                    waiter.add_result(self)
            self._condition.notify_all()
        if self._done_callbacks:
            self._invoke_callbacks()
            self._done_callbacks.clear()
        return True

    def set_running_or_notify_cancel(self) -> bool:
        """For executors: False when it was cancelled."""
        if self._begin():
            return True
        with self._condition:
            if self._move(_NOT_NOTIFIED, _CANCELLED):
                for waiter in self._waiters:
                    waiter.add_cancelled(self)
                return False
        raise RuntimeError("Future in unexpected state")

    def set_result(self, result: T) -> None:
        """For executors: make it done."""
        if not self._settle(_FINISHED, result, None):
            raise cf.InvalidStateError(f"{self._state}: {self!r}")

    def set_exception(self, exception: Optional[BaseException]) -> None:
        """For executors: make it fail."""
        if not self._settle(_FINISHED, None, exception):
            raise cf.InvalidStateError(f"{self._state}: {self!r}")

    # ---- the public interface ----

    def done(self) -> bool:
        """Whether it has a result or an exception, or was cancelled."""
        return self._state in (_FINISHED, _CANCELLED, _NOT_NOTIFIED)

    def running(self) -> bool:
        """Whether its closure was sent to the cluster."""
        return self._state == _RUNNING

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._state in (_CANCELLED, _NOT_NOTIFIED)

    def cancel(self) -> bool:
        """Cancel it; False when it is too late: see the class."""
        owner, source = self._owner, self._source
        if self._settle(owner.cancelled, None, None, owner.cancel_running):
            owner.recall(self, source)
        return self.cancelled()

    def result(self, timeout: Optional[float] = None) -> T:
        """What the function returned, within timeout seconds (None: no limit). Raises its
        exception, with the worker's traceback as cause; concurrent.futures.TimeoutError;
        concurrent.futures.CancelledError."""
        if _is_forked:
            self._refuse_fork()
        try:
            # Deliver the result directly to this thread, unless others wait for it, too.
            if self._state != _FINISHED and self._wait(timeout):
                timeout = 0
            if self._state == _FINISHED and self._exception is None:
                return cast(T, self._result)
            return cast(T, super().result(timeout))
        finally:
            self = None  # type: ignore[assignment]  # no cycle with its exception

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """The exception that result() would raise, or None; waits like result()."""
        if _is_forked:
            self._refuse_fork()
        if self._state != _FINISHED and self._wait(timeout):
            timeout = 0
        return super().exception(timeout)

    def __reduce__(self) -> Any:
        raise TypeError("a Future cannot be sent to workers (an argument, or a variable "
                        "that the function uses, is one): send its result(), or the "
                        "RemoteValue of ClusterCoordinator.schedule()")

    def _refuse_fork(self) -> None:
        """Raise ClosedError in a forked child: only the parent gets the result."""
        source = self._source
        of = source if isinstance(source, _muster.RemoteValue) else self._owner
        coordinator = getattr(of, "coordinator", None)
        if coordinator is not None and not self.done():
            coordinator.counts()

    def __await__(self) -> Generator[Any, None, T]:
        # Not by asyncio.wrap_future(), which waits for ever for a StopIteration.
        if not self.done():
            loop = asyncio.get_running_loop()
            arrived: "asyncio.Future[None]" = loop.create_future()

            def finish() -> None:
                if not arrived.done():
                    arrived.set_result(None)

            def tell(_: Any) -> None:
                try:
                    loop.call_soon_threadsafe(finish)
                except RuntimeError:    # the loop was closed in the meantime
                    pass

            self.add_done_callback(tell)
            try:
                yield from arrived
            except asyncio.CancelledError:  # of the waiting task
                self.cancel()
                raise
        if self.cancelled():
            raise asyncio.CancelledError
        return self.result(0)


class _Arrival:
    """Called when the value of a future is ready."""

    __slots__ = ("future",)

    def __init__(self, future: "Future[Any]") -> None:
        self.future: "Optional[Future[Any]]" = future

    def __call__(self, value: "_muster.RemoteValue[Any]") -> None:
        future, self.future = self.future, None
        if future is None:
            return
        try:
            future._settle(_FINISHED, value.fetch(), None)
        except BaseException as error:
            is_aborted = value.state == "aborted"
            future._owner.failed(future, error.with_traceback(None), is_aborted)


def future_of(value: Waitable) -> "cf.Future[Any]":
    """The future of a RemoteValue, which has one; a future is returned unchanged.

    Cancelling it cancels the closure, wherever that is.
    """
    if isinstance(value, cf.Future):
        return value
    if not isinstance(value, _muster.RemoteValue):
        raise TypeError(f"a Future or a RemoteValue was expected, got {value!r}")
    if value._future is not None:
        return cast("Future[Any]", value._future)
    future: "Future[Any]" = _muster.new_future(Future, _OF_VALUE, value)
    with _guard:
        known: "Optional[Future[Any]]" = value._future
        if known is not None:
            return known
        value._future = future
    try:
        value.add_done_callback(_Arrival(future))
    except BaseException:
        value._future = None
        raise
    return future


class _OfValue(Owner):
    """The owner of a future of a RemoteValue."""

    cancel_running = True

    def recall(self, future: "Future[Any]", source: Any) -> None:
        source.cancel()


_OF_VALUE = _OfValue()


class DoneAndNotDone(NamedTuple):
    """What wait() returns."""

    done: Set[Any]
    not_done: Set[Any]


def _futures_of(fs: Iterable[Waitable]) -> Dict["cf.Future[Any]", Any]:
    """The futures of values, with the value of each; duplicates are removed."""
    given = {id(item): item for item in fs}
    return {future_of(item): item for item in given.values()}


class _CountingWaiter(cf._base._Waiter):
    """Waits until a number of futures are done."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._missing = count
        self._lock = threading.Lock()

    def _count(self, future: "cf.Future[Any]") -> None:
        with self._lock:
            self._missing -= 1
            if self._missing <= 0:
                self.event.set()

    add_result = add_exception = add_cancelled = _count


def _wait_for_some(futures: "Set[cf.Future[Any]]", count: int,
                   timeout: Optional[float]) -> None:
    """Wait until so many of the futures are done."""
    with cf._base._AcquireFutures(futures):
        missing = [future for future in futures if not future._state == _FINISHED
                   and not future._state == _CANCELLED]
        waiter = _CountingWaiter(count - (len(futures) - len(missing)))
        if waiter._missing <= 0:
            return
        for future in missing:
            future._waiters.append(waiter)
    try:
        waiter.event.wait(timeout)
    finally:
        for future in missing:
            with future._condition:
                future._waiters.remove(waiter)


def _first_done(fs: Iterable[Waitable], timeout: Optional[float],
                count: int) -> Tuple[List[Any], List[Any]]:
    given = list(fs)
    if len(set(map(id, given))) < len(given):
        raise ValueError("with num_returns each value can be given once only")
    if isinstance(count, bool) or not isinstance(count, int) or \
            not 0 < count <= len(given):
        raise ValueError(f"num_returns is {count!r}, expected 1 to {len(given)}, the "
                         "number of values")
    if sum(item.done() for item in given) < count:
        _wait_for_some({future_of(item) for item in given}, count, timeout)
    done: List[Any] = []
    rest: List[Any] = []
    for item in given:
        (done if len(done) < count and item.done() else rest).append(item)
    return done, rest


@overload
def wait(fs: Iterable[Waitable], timeout: Optional[float] = None,
         return_when: str = ALL_COMPLETED) -> DoneAndNotDone: ...
@overload
def wait(fs: "Iterable[W]", timeout: Optional[float] = None, *,
         num_returns: int) -> "Tuple[List[W], List[W]]": ...
def wait(fs: Iterable[Any], timeout: Optional[float] = None,
         return_when: str = ALL_COMPLETED, *, num_returns: Optional[int] = None) -> Any:
    """Like concurrent.futures.wait(), for futures and RemoteValues: the sets of those
    that are done and of the others, after at most timeout seconds.

    num_returns: as of ray.wait(): wait until so many are done; returns two lists in the
    order of fs, the first with at most num_returns that are done, the second with all
    others, which may be done, too.
    """
    if num_returns is not None:
        if return_when != ALL_COMPLETED:
            raise ValueError("return_when and num_returns were given")
        return _first_done(fs, timeout, num_returns)
    things = _futures_of(fs)
    done, not_done = cf.wait(things, timeout, return_when)
    return DoneAndNotDone({things[future] for future in done},
                          {things[future] for future in not_done})


def as_completed(fs: Iterable[Waitable],
                 timeout: Optional[float] = None) -> Iterator[Any]:
    """Like concurrent.futures.as_completed(), for futures and RemoteValues: yields each
    as soon as it is done. TimeoutError when not all are done within timeout seconds."""
    things = _futures_of(fs)
    for future in cf.as_completed(list(things), timeout):
        thing = things.pop(future)
        del future
        yield thing
        del thing
