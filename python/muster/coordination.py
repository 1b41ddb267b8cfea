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

import contextlib
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _muster, _scope, errors
from ._key_values import (KeyValue, KeyValueEvent, KeyValueFuture, KeyValues, Outcome,
                          Transaction, Watch, _key)

__all__ = [
    "CoordinationService", "KeyValue", "KeyValueEvent", "KeyValueFuture", "KeyValues",
    "Lock", "Outcome", "Preemption", "PreemptionNotice", "Tasks", "Transaction", "Watch",
]


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
        notice it takes some microseconds."""
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
