"""The coordination service: who is there, key-values, locks, barriers, preemption.

One task of the cluster hosts it, usually the chief; every node registers with it by
itself. All of it goes on while the host is away for a while: what was not answered is
asked again, and applied once all the same.

    service = muster.CoordinationService(node)
    service.key_values.put("config/rate", "0.1")
    with service.lock("export"):
        ...
    service.barrier("epoch-1", timeout=60)

Times are seconds, None: no limit. Errors of all calls: DeadlineExceededError (its words
say what is missing, and since when), ClosedError, InvalidArgumentError,
FailedPreconditionError (this task is not registered), and in the state "error" that
error.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from typing import (Any, Callable, Dict, Generator, Iterator, List, NamedTuple, Optional,
                    Tuple, Union)

from . import _muster, _scope, errors

__all__ = [
    "CoordinationService", "KeyValue", "KeyValueEvent", "KeyValueFuture", "KeyValues",
    "Lock", "Outcome", "Preemption", "PreemptionNotice", "Tasks", "Transaction", "Watch",
]

#: What a value can be: bytes as they are, str as UTF-8.
Value = Union[bytes, bytearray, memoryview, str]


def _bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"a value is bytes or a str, got {type(value).__name__}")


def _key(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, got {key!r}")
    if "\0" in key:
        raise ValueError(f"key {key!r}: a zero byte is in it")
    return key


class KeyValue(NamedTuple):
    """A key with its value.

    key: the path. value: bytes. revision: of the change that made it so; it grows with
    each change of the store.
    """

    key: str
    value: bytes
    revision: int

    @property
    def text(self) -> str:
        """The value as UTF-8."""
        return self.value.decode("utf-8")

    @property
    def number(self) -> int:
        """The value as a decimal number, as increment() keeps it."""
        return int(self.value)


class KeyValueEvent(NamedTuple):
    """A change that a watch tells.

    type: "set", "deleted", or once "current": what was there at the begin was told.
    key: "" of "current". value: bytes of "set", else None. revision: of "set", else 0.
    """

    type: str
    key: str
    value: Optional[bytes]
    revision: int


class Outcome(NamedTuple):
    """What a transaction came to.

    revision: of the last change in the store once it was applied. number: the sum of its
    first increment, else 0.
    """

    revision: int
    number: int


class KeyValueFuture(concurrent.futures.Future):  # type: ignore[type-arg]
    """The answer of a call that does not wait: a concurrent.futures.Future, which can be
    awaited in asyncio, too. It is set on a thread of muster's, where callbacks run."""

    _give_up: Optional[Callable[[], None]] = None

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Give the request up. What changes something may have been applied all the
        same."""
        cancelled = super().cancel()
        if cancelled and self._give_up is not None:
            self._give_up()
        return cancelled

    def _finish(self, get: Callable[[], Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            result = get()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(result)


class Watch(Iterator[KeyValueEvent]):
    """All changes of a key, or of what is below a directory, as they come.

    What is there at the begin comes first, as "set", and then "current" once. Changes of
    one key that were not read yet are one: the last state counts. Made by
    KeyValues.watch(); it is an iterator, which ends once close() was called (by any
    thread), and a context manager.
    """

    def __init__(self, handle: _muster.KeyValueWatch) -> None:
        self._handle = handle

    def next(self, timeout: Optional[float] = None) -> KeyValueEvent:
        """The next event, waiting for it.

        DeadlineExceededError: there was none until then. ResourceExhaustedError: more
        than 65,536 keys had changed and were not read; the watch begins anew with what
        is there then. ClosedError: the watch, or its node, was closed.
        """
        kind, key, value, revision = self._handle.next(timeout)
        return KeyValueEvent(_EVENTS[kind], key or "", value, revision)

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> KeyValueEvent:
        try:
            return self.next()
        except errors.ClosedError:
            if self.closed:
                raise StopIteration from None
            raise

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._handle.closed

    def close(self) -> None:
        """End it: a thread that waits in it stops within a tenth of a second."""
        self._handle.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_EVENTS = {_muster.KV_SET: "set", _muster.KV_DELETED: "deleted",
           _muster.KV_CURRENT: "current"}


class Transaction:
    """Changes of several keys that are made at one moment, all or none, and only if all
    conditions hold.

        outcome = (service.key_values.transaction()
                   .if_absent("leader").put("leader", "me").increment("terms").commit())

    At most 128 conditions and as many changes, and 2 MiB of keys and values together.
    """

    def __init__(self, node: _muster.Node) -> None:
        self._node = node
        self._checks: List[Tuple[int, str, int, bytes]] = []
        self._changes: List[Tuple[int, int, str, bytes, int]] = []

    def if_revision(self, key: str, revision: int) -> Transaction:
        """Only if the key's revision is this one; 0: it is not there."""
        self._checks.append((_muster.KV_IF_REVISION, _key(key), revision, b""))
        return self

    def if_absent(self, key: str) -> Transaction:
        """Only if the key is not there."""
        self._checks.append((_muster.KV_IF_ABSENT, _key(key), 0, b""))
        return self

    def if_present(self, key: str) -> Transaction:
        """Only if the key is there."""
        self._checks.append((_muster.KV_IF_PRESENT, _key(key), 0, b""))
        return self

    def if_value(self, key: str, value: Value) -> Transaction:
        """Only if the key has exactly this value."""
        self._checks.append((_muster.KV_IF_VALUE, _key(key), 0, _bytes(value)))
        return self

    def put(self, key: str, value: Value, *, lease: bool = False) -> Transaction:
        """Set a key, whether it is there or not; lease as of KeyValues.put()."""
        self._changes.append((_muster.KV_PUT, _muster.KV_LEASE if lease else 0, _key(key),
                              _bytes(value), 0))
        return self

    def increment(self, key: str, by: int = 1) -> Transaction:
        """Add to a key that has a number."""
        self._changes.append((_muster.KV_INCREMENT, 0, _key(key), b"", by))
        return self

    def delete(self, key: str) -> Transaction:
        """Delete a key and all below it."""
        self._changes.append((_muster.KV_DELETE, 0, _key(key), b"", 0))
        return self

    def commit(self, timeout: Optional[float] = None) -> Outcome:
        """Apply it.

        FailedPreconditionError: a condition does not hold (its number, from 0, is the
        error's `failed`), or a key that is to be incremented has no number (-1).
        OutOfRangeError: its sum is too large. InvalidArgumentError: a key is changed
        twice. Then nothing was changed.
        """
        return Outcome(*_muster.kv_transact(self._node, tuple(self._checks),
                                            tuple(self._changes), timeout))

    def commit_async(self, timeout: Optional[float] = None) -> KeyValueFuture:
        """The same without waiting: a future of an Outcome."""
        future = KeyValueFuture()

        def get(answer: _muster.KeyValueAnswer) -> Outcome:
            try:
                _, revision, number = answer.get()
            except errors.FailedPreconditionError as error:
                error.failed = answer.number - 1  # type: ignore[attr-defined]
                raise
            return Outcome(revision, number)

        request = _muster.kv_transact_begin(
            self._node, tuple(self._checks), tuple(self._changes), timeout,
            lambda answer: future._finish(lambda: get(answer)))
        future._give_up = lambda: _give_up(self._node, request)
        return future


def _give_up(node: _muster.Node, request: int) -> None:
    if not node.closed:
        _muster.kv_cancel(node, request)


class KeyValues:
    """A store of keys and values that all tasks share.

    A key is a path, "config/rate": outer and repeated slashes are dropped; at most 1,023
    bytes. A value is at most 1 MiB of bytes (a str is UTF-8). All of it is linearizable.
    Keys below "_muster" are the service's own: PermissionDeniedError.
    ResourceExhaustedError: a million keys, or 1 GiB, are there.
    """

    def __init__(self, node: _muster.Node) -> None:
        self._node = node

    @staticmethod
    def _flags(overwrite: bool, revision: Optional[int], lease: bool) -> int:
        flags = _muster.KV_LEASE if lease else 0
        if revision is not None:
            return flags | _muster.KV_OVERWRITE | _muster.KV_COMPARE
        return flags | (_muster.KV_OVERWRITE if overwrite else 0)

    def put(self, key: str, value: Value, *, overwrite: bool = True,
            revision: Optional[int] = None, lease: bool = False,
            timeout: Optional[float] = None) -> int:
        """Set a key; its new revision.

        overwrite: False: a key that is there is an AlreadyExistsError. revision: only if
        the key's revision is this one (0: it is not there), else a
        FailedPreconditionError. lease: the key goes when this task ends, or leaves.
        """
        return _muster.kv_put(self._node, _key(key), _bytes(value),
                              self._flags(overwrite, revision, lease), revision or 0,
                              timeout)

    def get(self, key: str, timeout: Optional[float] = None) -> KeyValue:
        """The key's value, once it is there: waits until somebody puts it."""
        return KeyValue(key, *_muster.kv_get(self._node, _key(key), timeout))

    def try_get(self, key: str, timeout: Optional[float] = None) -> Optional[KeyValue]:
        """The key's value as it is now, None when it is not there."""
        try:
            return KeyValue(key, *_muster.kv_try_get(self._node, _key(key), timeout))
        except errors.NotFoundError:
            return None

    def increment(self, key: str, by: int = 1, timeout: Optional[float] = None) -> int:
        """Add to a key whose value is a decimal number of 64 bits, and return the sum;
        one that is not there counts as 0.

        FailedPreconditionError: the value is no number; OutOfRangeError: the sum is too
        large.
        """
        return _muster.kv_increment(self._node, _key(key), by, timeout)

    def delete(self, key: str, timeout: Optional[float] = None) -> int:
        """Delete a key and all below it; how many there were, which may be 0."""
        return _muster.kv_delete(self._node, _key(key), timeout)

    def list(self, directory: str = "", timeout: Optional[float] = None
             ) -> List[KeyValue]:
        """All that is below a key ("": everything), in order. Large directories come in
        pages: one page is one moment, the whole is not."""
        items = _muster.kv_list(self._node, _key(directory), timeout)
        return [KeyValue(item["key"], item["value"], item["revision"]) for item in items]

    # ---- without waiting ----

    def _begin(self, operation: int, key: str, take: Callable[[bytes, int, int], Any],
               value: bytes = b"", flags: int = 0, revision: int = 0, by: int = 0,
               timeout: Optional[float] = None) -> KeyValueFuture:
        future = KeyValueFuture()
        request = _muster.kv_begin(
            self._node, operation, _key(key), value, flags, revision, by, timeout,
            lambda answer: future._finish(lambda: take(*answer.get())))
        future._give_up = lambda: _give_up(self._node, request)
        return future

    def put_async(self, key: str, value: Value, *, overwrite: bool = True,
                  revision: Optional[int] = None, lease: bool = False,
                  timeout: Optional[float] = None) -> KeyValueFuture:
        """put() without waiting: a future of the new revision. WouldBlockError: 65,536
        requests are under way."""
        return self._begin(_muster.KV_PUT, key, lambda value, new, number: new,
                           _bytes(value), self._flags(overwrite, revision, lease),
                           revision or 0, 0, timeout)

    def get_async(self, key: str, timeout: Optional[float] = None) -> KeyValueFuture:
        """get() without waiting: a future of a KeyValue."""
        return self._begin(_muster.KV_GET, key,
                           lambda value, revision, number: KeyValue(key, value, revision),
                           timeout=timeout)

    def try_get_async(self, key: str, timeout: Optional[float] = None) -> KeyValueFuture:
        """The value as it is now, without waiting: a future of a KeyValue, whose error is
        a NotFoundError when the key is not there."""
        return self._begin(_muster.KV_TRY_GET, key,
                           lambda value, revision, number: KeyValue(key, value, revision),
                           timeout=timeout)

    def increment_async(self, key: str, by: int = 1, timeout: Optional[float] = None
                        ) -> KeyValueFuture:
        """increment() without waiting: a future of the sum."""
        return self._begin(_muster.KV_INCREMENT, key,
                           lambda value, revision, number: number, by=by, timeout=timeout)

    def delete_async(self, key: str, timeout: Optional[float] = None) -> KeyValueFuture:
        """delete() without waiting: a future of how many there were."""
        return self._begin(_muster.KV_DELETE, key,
                           lambda value, revision, number: number, timeout=timeout)

    # ---- several keys, changes, leases ----

    def transaction(self) -> Transaction:
        """Changes of several keys at one moment, under conditions."""
        return Transaction(self._node)

    def watch(self, key: str, below: bool = False, timeout: Optional[float] = None
              ) -> Watch:
        """Watch a key, or with `below` all that is below it; timeout: for the begin."""
        return Watch(_muster.KeyValueWatch.open(self._node, _key(key), below, timeout))

    @contextlib.contextmanager
    def hold(self, key: str, value: Value = b"", timeout: Optional[float] = None
             ) -> Generator[KeyValue, None, None]:
        """Have a key for as long as a `with` lasts, and this task lives: it is put under
        a lease, and deleted at the end. AlreadyExistsError: somebody has it."""
        data = _bytes(value)
        revision = self.put(key, data, overwrite=False, lease=True, timeout=timeout)
        try:
            yield KeyValue(key, data, revision)
        finally:
            with contextlib.suppress(errors.FailedPreconditionError):
                self.transaction().if_revision(key, revision).delete(key).commit(timeout)


class Lock:
    """A lock that one holder in the cluster has at a time; those who wait get it in the
    order in which they came. It goes to the next one when its holder's task ends, leaves
    or is lost.

    A holder that stands still, or is cut off, may be taken for lost and not know it yet:
    what must never be done by two is guarded with `number`, or in a transaction by
    ``if_revision(lock.key, lock.number)``.

    Used as `with service.lock("name"):` or by acquire() and release(). The threads of a
    process are as strangers to each other.
    """

    def __init__(self, node: _muster.Node, name: str,
                 timeout: Optional[float] = None) -> None:
        self._node = node
        self._name = _key(name)
        self._timeout = timeout
        self._held: Optional[_muster.HeldLock] = None

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def acquire(self, timeout: Optional[float] = None) -> Lock:
        """Wait until it is held. DeadlineExceededError says who holds it, and how many
        wait before this one. FailedPreconditionError: this object holds it already."""
        if self._held is not None:
            raise errors.FailedPreconditionError(
                f"the lock \"{self._name}\" is held by this object already", code=9)
        self._held = _muster.HeldLock.acquire(
            self._node, self._name, self._timeout if timeout is None else timeout)
        return self

    def _current(self) -> _muster.HeldLock:
        if self._held is None:
            raise errors.FailedPreconditionError(
                f"the lock \"{self._name}\" is not held", code=9)
        return self._held

    def release(self, timeout: Optional[float] = None) -> None:
        """Let go of it. AbortedError: it was lost before."""
        held = self._current()
        self._held = None
        held.release(timeout)

    @property
    def held(self) -> bool:
        """Whether this object has acquired it; it may have been lost since."""
        return self._held is not None

    @property
    def number(self) -> int:
        """Larger each time that the lock is held, by whomever."""
        return self._current().number

    @property
    def key(self) -> str:
        """The key that is there, under the revision `number`, while it is held."""
        return self._current().key

    def wait_lost(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is lost; whether it is."""
        return self._current().wait_lost(timeout)

    @property
    def lost(self) -> bool:
        """Whether it is known to be lost."""
        return self._current().wait_lost(0)

    def __enter__(self) -> Lock:
        return self.acquire()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        if kind is None:
            held.release(None)
            return
        with contextlib.suppress(errors.MusterError):  # the first error counts
            held.release(5.0)


class Tasks:
    """The tasks of the cluster, as the service sees them.

    A set of tasks is a str, "worker:0-3,ps:0"; None: all. A state is a dict: task, type,
    index, state ("connected", "suspect", "disconnected", "error"), incarnation (a text),
    heard_ms ago, since_ms ago, coordinated, recoverable, progress, error (a dict).
    """

    def __init__(self, node: _muster.Node) -> None:
        self._node = node

    def states(self, tasks: Optional[str] = None, timeout: Optional[float] = None
               ) -> List[Dict[str, Any]]:
        """The states as they are. NotFoundError: a task is not known."""
        return list(_muster.tasks_states(self._node, tasks, timeout))

    def wait(self, tasks: Optional[str] = None, timeout: Optional[float] = None
             ) -> List[Dict[str, Any]]:
        """The same once all of them are connected, each with `devices`; sorted."""
        return list(_muster.tasks_wait(self._node, tasks, timeout))

    def watch(self, tasks: Optional[str] = None, version: int = 0,
              timeout: Optional[float] = None) -> Tuple[int, List[Dict[str, Any]]]:
        """(version, states), as soon as their version is not `version` (0: at once):
        any change of a state of one of them gives it the next one."""
        new, states = _muster.tasks_watch(self._node, tasks, version, timeout)
        return new, list(states)

    def alive(self, tasks: str, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Which of them are alive: called by each member of the set, with the same set;
        all get the same list (task, incarnation) once each one has called or is not
        connected. InvalidArgumentError: this task is not in the set."""
        return list(_muster.tasks_alive(self._node, tasks, timeout))

    def devices(self, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """What the machines of the connected tasks have: task, host, cores,
        memory_bytes, gpus and tpus (lists of name and memory_bytes)."""
        return list(_muster.tasks_devices(self._node, None, timeout))

    def report_error(self, task: str, message: str, code: int = 13,
                     timeout: Optional[float] = None) -> None:
        """Another task ("worker:1") has failed: it is in error as if it had said so
        itself. code: of muster.errors, 13 is InternalError. NotFoundError: the service
        does not know it; FailedPreconditionError: it is not connected."""
        _muster.agent_report_error(self._node, task, -abs(code), message, timeout)

    def reset(self, task: str, timeout: Optional[float] = None) -> None:
        """Another task, which is in error, is not any more: it registers again, or one
        that is started in its place may. FailedPreconditionError: it is not in error."""
        _muster.tasks_reset(self._node, task, timeout)


class PreemptionNotice(NamedTuple):
    """A task, or its machine, will be gone.

    round: how many notices there were. task: which one. reason: words. grace: seconds
    that are left. step: to stop at; valid when `agreed`.
    """

    round: int
    task: str
    reason: str
    grace: float
    step: int
    agreed: bool


class Preemption:
    """Stopping together before a task is gone: all tasks agree on one step, one more
    than the largest that any of them has reached."""

    def __init__(self, node: _muster.Node) -> None:
        self._node = node

    def notice(self, reason: str = "", grace: float = 0.0,
               timeout: Optional[float] = None) -> None:
        """This task will be gone in `grace` seconds. Returns once all know of it. With
        more than 15 minutes they agree on the step that long before the end.

        DeadlineExceededError: who has not answered; the others agree all the same.
        """
        _muster.preempt_notice(self._node, reason, grace, timeout)

    def reached(self, step: int) -> bool:
        """The program has reached `step` (they ascend): True exactly when that is the
        step to stop at, for all tasks the same. Waits while the tasks agree; without a
        notice it costs nothing."""
        return _muster.preempt_reached(self._node, step)

    def wait(self, round: int = 0, agreed: bool = False,
             timeout: Optional[float] = None) -> PreemptionNotice:
        """Wait for a notice after the `round`-th, and with `agreed` for its step: for
        tasks without steps of their own, parameter servers say."""
        return PreemptionNotice(*_muster.preempt_wait(self._node, round, agreed, timeout))


class CoordinationService:
    """The coordination service, as a node sees it.

    node: a Node, LocalCluster, ClusterCoordinator or strategy; by default that of the
    innermost `with`, or of the run.

    key_values, tasks, preemption: the parts of it.
    """

    def __init__(self, node: Any = None) -> None:
        self._node = _scope.current_node() if node is None else _scope.node_of(node)
        self.key_values = KeyValues(self._node)
        self.tasks = Tasks(self._node)
        self.preemption = Preemption(self._node)
        self._lock = threading.Lock()
        self._arming: Optional[object] = None

    @property
    def node(self) -> _muster.Node:
        """The node."""
        return self._node

    # ---- this task ----

    @property
    def state(self) -> str:
        """"uninitialized" (no task may host the service), "disconnected", "connected",
        or "error": then every call fails with that error until reset()."""
        return _muster.agent_state(self._node)[0]

    @property
    def error(self) -> Optional[BaseException]:
        """The error of the state "error", else None."""
        return _muster.agent_state(self._node)[1]

    @property
    def host(self) -> Dict[str, Any]:
        """What is known of the service, at once: task (of the host; "": none leads),
        epoch, store and registered."""
        return dict(_muster.agent_service(self._node))

    def register(self, barrier: bool = False, timeout: Optional[float] = None) -> None:
        """Wait until this task is registered; after leave() or reset(), register again.

        barrier: until every task of the coordinated jobs is; a DeadlineExceededError
        names those missing. AbortedError: another process of this task is registered, or
        this one is in error.
        """
        _muster.agent_register(self._node, barrier, timeout)

    def report_error(self, message: str, code: int = 13,
                     timeout: Optional[float] = None) -> None:
        """This task has failed: it is in error, barriers that need it fail, and unless
        its job is recoverable, so do all other tasks. code: of muster.errors, 13 is
        InternalError. FailedPreconditionError: it is not connected."""
        _muster.agent_report_error(self._node, None, -abs(code), message, timeout)

    def set_error(self, message: str, code: int = 13) -> None:
        """Fail every call from now on with this error, here only: nobody is told."""
        _muster.agent_set_error(self._node, -abs(code), message)

    def reset(self, timeout: Optional[float] = None) -> None:
        """Out of the state "error"; barriers that wait for this task fail.
        FailedPreconditionError: it is not in error."""
        _muster.agent_reset(self._node, timeout)

    def leave(self, timeout: Optional[float] = None) -> None:
        """Leave: this task's failure and end mean nothing to others from now on. A node
        that is closed leaves by itself. FailedPreconditionError: it has left already, or
        is in error."""
        _muster.agent_leave(self._node, timeout)

    def progress(self) -> None:
        """The program is alive and has got further: with the node's option `stuck`, a
        task that does not say so for so long is in error. Costs nothing."""
        _muster.agent_progress(self._node)

    def on_error(self, callback: Optional[Callable[[BaseException], Any]]) -> None:
        """Have callback(exception) called when this task goes into the state "error":
        another task failed that is not recoverable (`exception.task`), or this one did.
        On a thread of muster's. The last one counts; None takes it away."""
        if callback is None:
            _muster.agent_on_error(self._node, None)
            return
        call: Callable[[BaseException], Any] = callback
        with self._lock:
            self._arming = object()
            armed = self._arming

        def tell(told: _muster.AgentError) -> None:
            with self._lock:
                again = self._arming is armed
            if again and not self._node.closed:
                _muster.agent_on_error(self._node, tell)    # for the next one
            call(told.exception())

        _muster.agent_on_error(self._node, tell)

    # ---- together ----

    def lock(self, name: str, timeout: Optional[float] = None) -> Lock:
        """A lock of the cluster, for `with`; timeout: for acquiring it."""
        return Lock(self._node, name, timeout)

    def barrier(self, name: str, tasks: Optional[str] = None,
                timeout: Optional[float] = None, threads: int = 1) -> None:
        """Wait until all have arrived. A name can be used again and again.

        tasks: a set, "worker:0-3"; None: all of the coordinated jobs. timeout: of all;
        the first who arrives says it. threads: so many of this process meet first, each
        calling with the same number.

        Everybody gets the same answer. DeadlineExceededError: how many of how many
        arrived, who is missing, and when they were heard last. InternalError: a
        participant that is not recoverable was lost, left or was reset. CancelledError:
        cancel_barrier(). InvalidArgumentError: participants that differ, are unknown, or
        are without this task. FailedPreconditionError: this node is at it already.
        """
        _muster.barrier_wait(self._node, _key(name), tasks, threads, timeout)

    def barrier_async(self, name: str, tasks: Optional[str] = None,
                      timeout: Optional[float] = None, threads: int = 1
                      ) -> KeyValueFuture:
        """barrier() without waiting: a future of None."""
        future = KeyValueFuture()
        _muster.barrier_begin(self._node, _key(name), tasks, threads, timeout,
                              lambda passed: future._finish(passed.get))
        return future

    def cancel_barrier(self, name: str, timeout: Optional[float] = None) -> None:
        """End the barrier that this node has arrived at, for everybody.
        FailedPreconditionError: it has not, or all went through."""
        _muster.barrier_cancel(self._node, _key(name), timeout)
