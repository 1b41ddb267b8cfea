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
                    NamedTuple, Optional, Set, Tuple, TypeVar, Union, cast)

from . import _muster, errors

__all__ = ["ALL_COMPLETED", "FIRST_COMPLETED", "FIRST_EXCEPTION", "DoneAndNotDone",
           "Future", "as_completed", "future_of", "wait"]

T = TypeVar("T")
Waitable = Union["cf.Future[Any]", "_muster.RemoteValue"]

_PENDING = "PENDING"
_RUNNING = "RUNNING"
_CANCELLED = "CANCELLED_AND_NOTIFIED"
_NOT_NOTIFIED = "CANCELLED"
_FINISHED = "FINISHED"

# Held for a moment whenever the state of a future changes, or its condition is made: a
# future that nobody waits for needs none of its own.
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
    """Who is told what becomes of a future."""

    cancel_running = False
    cancelled = _CANCELLED      # the state of a future that was cancelled

    def landed(self, count: int) -> None:
        """So many futures that were sent are done."""

    def judge(self, error: BaseException) -> BaseException:
        """The exception that a future gets for an error of its closure."""
        return error

    def lost(self, future: "Future[Any]", error: BaseException) -> bool:
        """Its closure was thrown away with others; whether it is sent again."""
        return False


class _Nobody(Owner):
    """Of a future that somebody else will settle: he tells those who wait for it."""

    cancelled = _NOT_NOTIFIED


_NOBODY = _Nobody()


class Future(cf.Future, Generic[T]):  # type: ignore[type-arg]
    """A future of an Executor: a concurrent.futures.Future that can also be awaited.

    running() is True from when the closure is given to the cluster. cancel() cancels what
    waits for its turn; with Executor(cancel_running=True) also what the cluster has: a
    function that runs is asked to stop, see Run.cancelled(), and its result is dropped.
    """

    # The condition and the lists of the base class are made when somebody asks for them.
    # All in slots: an executor makes and settles a hundred thousand of these a second.
    __slots__ = ("_state", "_result", "_exception", "_call", "_owner", "_value",
                 "_is_shared", "_condition", "_waiters", "_done_callbacks")

    _state: str
    _result: Optional[T]
    _exception: Optional[BaseException]
    _call: Any                  # function, args, kwargs, until it is done
    _owner: Owner
    _value: Optional["_muster.RemoteValue"]     # of one that can be cancelled there
    _is_shared: bool            # others look at it: it has a condition

    def __init__(self) -> None:
        self._state = _PENDING
        self._result = self._exception = self._call = self._value = None
        self._owner = _NOBODY
        self._is_shared = False

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
                self._is_shared = True
                setattr(self, name, made)
                return made

    # ---- states ----

    def _begin(self) -> bool:
        """From now on it cannot be cancelled; False when it was."""
        with _guard:
            if self._state != _PENDING:
                return False
            self._state = _RUNNING
            return True

    def _wait_again(self) -> None:
        """It waits for its turn as before _begin()."""
        with _guard:
            if self._state == _RUNNING:
                self._state = _PENDING

    def _settle(self, state: str, result: Any, exception: Optional[BaseException],
                if_running: bool = True) -> bool:
        """Make it done; False when it is, or runs and should not."""
        expected = (_PENDING, _RUNNING) if if_running else (_PENDING,)
        with _guard:
            if not self._is_shared:
                if self._state not in expected:
                    return False
                self._result, self._exception, self._state = result, exception, state
                self._call = None
                return True
        with self._condition:
            with _guard:
                if self._state not in expected:
                    return False
                self._result, self._exception, self._state = result, exception, state
                self._call = None
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

    def _sent(self, value: "_muster.RemoteValue") -> None:
        """The cluster has it, unless that is over already."""
        with _guard:
            if self._state == _RUNNING:
                self._value = value
                return
        if self._state == _CANCELLED:
            value.cancel()

    def set_running_or_notify_cancel(self) -> bool:
        """For executors: False when it was cancelled."""
        if self._begin():
            return True
        with self._condition:
            if self._state == _NOT_NOTIFIED:
                self._state = _CANCELLED
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

    # ---- for its users ----

    def done(self) -> bool:
        """Whether it has a result or an exception, or was cancelled."""
        return self._state in (_FINISHED, _CANCELLED, _NOT_NOTIFIED)

    def running(self) -> bool:
        """Whether the cluster has it."""
        return self._state == _RUNNING

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._state in (_CANCELLED, _NOT_NOTIFIED)

    def cancel(self) -> bool:
        """Cancel it; False when it is too late: see the class."""
        value = self._value
        if self._settle(self._owner.cancelled, None, None, self._owner.cancel_running):
            if value is not None:
                value.cancel()
        return self.cancelled()

    def result(self, timeout: Optional[float] = None) -> T:
        """What the function returned, within timeout seconds (None: no limit). Raises its
        exception, with the worker's traceback as cause; concurrent.futures.TimeoutError;
        concurrent.futures.CancelledError."""
        if self._state == _FINISHED and self._exception is None:
            return cast(T, self._result)
        self._refuse_fork()
        try:
            return cast(T, super().result(timeout))
        finally:
            self = None  # type: ignore[assignment]  # no cycle with its exception

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """The exception, None when it has a result; waits as result() does."""
        self._refuse_fork()
        return super().exception(timeout)

    def _refuse_fork(self) -> None:
        """ClosedError where it is a parent's, which alone is told what becomes of it."""
        if not _is_forked or self.done():
            return
        of = self._owner if self._value is None else self._value
        coordinator = getattr(of, "coordinator", None)
        if coordinator is not None:
            coordinator.counts()

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()

    # ---- what the cluster says ----


def take_batch(owner: Owner,
               batch: "List[Tuple[Future[Any], _muster.RemoteValue]]") -> None:
    """Settle futures whose values are ready."""
    landed = 0
    guard = _guard
    batch.reverse()
    while batch:
        future, value = batch.pop()
        result, state = None, _FINISHED
        exception: Optional[BaseException] = None
        try:
            result = value.fetch()
        except errors.CancelledError as error:
            if value.state != "aborted":
                exception = error.with_traceback(None)
            elif owner.lost(future, error):
                continue
            else:
                state = _CANCELLED
        except BaseException as error:
            exception = owner.judge(error.with_traceback(None))
        with guard:
            is_settled = future._state == _RUNNING and not future._is_shared and \
                exception is None
            if is_settled:
                future._result = result
                future._state = state
                future._call = None
        if not is_settled:
            future._settle(state, result, exception)
        if future._value is not None:
            future._value = None
        # What waited for it may drop it now: nothing here holds it any more.
        del future, result, exception, value
        landed += 1
    owner.landed(landed)


class _Arrival:
    """Called when the value of a future is ready."""

    __slots__ = ("future",)

    def __init__(self, future: "Future[Any]") -> None:
        self.future: "Optional[Future[Any]]" = future

    def __call__(self, value: "_muster.RemoteValue") -> None:
        future, self.future = self.future, None
        if future is not None:
            batch, owner = [(future, value)], future._owner
            del future
            take_batch(owner, batch)


def future_of(value: Waitable) -> "cf.Future[Any]":
    """The future of a RemoteValue; a future as it is.

    Cancelling it cancels the closure, wherever that is.
    """
    if isinstance(value, cf.Future):
        return value
    if not isinstance(value, _muster.RemoteValue):
        raise TypeError(f"a Future or a RemoteValue was expected, got {value!r}")
    future: "Future[Any]" = Future()
    future._owner = _OF_VALUE
    future._state = _RUNNING
    future._value = value
    value.add_done_callback(_Arrival(future))
    return future


class _OfValue(Owner):
    cancel_running = True


_OF_VALUE = _OfValue()


class DoneAndNotDone(NamedTuple):
    """What wait() returns."""

    done: Set[Any]
    not_done: Set[Any]


def _futures_of(fs: Iterable[Waitable]) -> Dict["cf.Future[Any]", Any]:
    """Their futures, and what each stands for; each thing once."""
    given = {id(item): item for item in fs}
    return {future_of(item): item for item in given.values()}


def wait(fs: Iterable[Waitable], timeout: Optional[float] = None,
         return_when: str = ALL_COMPLETED) -> DoneAndNotDone:
    """As concurrent.futures.wait(), for futures and RemoteValues: sets of those that are
    done and of the others, after at most timeout seconds."""
    things = _futures_of(fs)
    done, not_done = cf.wait(things, timeout, return_when)
    return DoneAndNotDone({things[future] for future in done},
                          {things[future] for future in not_done})


def as_completed(fs: Iterable[Waitable],
                 timeout: Optional[float] = None) -> Iterator[Any]:
    """As concurrent.futures.as_completed(), for futures and RemoteValues: each as soon as
    it is done. TimeoutError when not all are within timeout seconds."""
    things = _futures_of(fs)
    for future in cf.as_completed(list(things), timeout):
        thing = things.pop(future)
        del future
        yield thing
        del thing
