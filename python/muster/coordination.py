"""The coordination service: states of tasks, key-values, locks, barriers, preemption.

One task of the cluster hosts it, usually the chief; every node registers with it by
itself. When the host is lost, requests that were not answered are repeated at the next
host; a repeated change is applied once.

    service = muster.CoordinationService(node)
    service.key_values.put("config/rate", "0.1")
    with service.lock("export"):
        ...
    service.barrier("epoch-1", timeout=60)

Timeouts are in seconds, None: no timeout. Errors of all calls: DeadlineExceededError (its
message says what is missing, and since when), ClosedError, InvalidArgumentError,
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
    """A lock with one holder in the cluster at a time; waiting callers get it in the
    order of their calls. When the holder's task ends, leaves or is lost, the next caller
    gets it.

    A holder that is suspended or disconnected may have lost the lock without knowing it
    yet. To exclude a second writer strictly, use `number` as a fencing token, or
    ``if_revision(lock.key, lock.number)`` in a transaction.

    Used as `with service.lock("name"):` or by acquire() and release(). Threads of a
    process compete for it like processes, and it is not recursive.
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
        """Wait until this caller holds the lock. DeadlineExceededError names the holder,
        and how many wait before this caller. FailedPreconditionError: this object holds
        it already."""
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
        """Release the lock. AbortedError: it was lost before."""
        held = self._current()
        self._held = None
        held.release(timeout)

    @property
    def held(self) -> bool:
        """Whether this object has acquired it; it may have been lost since."""
        return self._held is not None

    @property
    def number(self) -> int:
        """The fencing token: larger for each later holder."""
        return self._current().number

    @property
    def key(self) -> str:
        """The lock's key, which has the revision `number` while the lock is held."""
        return self._current().key

    def wait_lost(self, timeout: Optional[float] = None) -> bool:
        """Wait until the lock is lost; returns whether it is."""
        return self._current().wait_lost(timeout)

    @property
    def lost(self) -> bool:
        """Whether the lock is known to be lost."""
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
        """The present states. NotFoundError: a task is not known."""
        return list(_muster.tasks_states(self._node, tasks, timeout))

    def wait(self, tasks: Optional[str] = None, timeout: Optional[float] = None
             ) -> List[Dict[str, Any]]:
        """The same once all of them are connected, each with `devices`; sorted."""
        return list(_muster.tasks_wait(self._node, tasks, timeout))

    def watch(self, tasks: Optional[str] = None, version: int = 0,
              timeout: Optional[float] = None) -> Tuple[int, List[Dict[str, Any]]]:
        """Wait for a change of a state since `version`, which an earlier call returned
        (0: at once). Returns (version, states)."""
        new, states = _muster.tasks_watch(self._node, tasks, version, timeout)
        return new, list(states)

    def alive(self, tasks: str, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Agree on which tasks are alive: called by each member of the set, with the same
        set; all get the same list (task, incarnation) once each one has called or is not
        connected. InvalidArgumentError: this task is not in the set."""
        return list(_muster.tasks_alive(self._node, tasks, timeout))

    def devices(self, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """The devices of the connected tasks: task, host, cores, memory_bytes, gpus and
        tpus (lists of name and memory_bytes)."""
        return list(_muster.tasks_devices(self._node, None, timeout))

    def report_error(self, task: str, message: str, code: int = 13,
                     timeout: Optional[float] = None) -> None:
        """Report that another task ("worker:1") has failed, with the same consequences as
        its own report_error(). code: of muster.errors, 13 is InternalError.
        NotFoundError: the service does not know it; FailedPreconditionError: it is not
        connected."""
        _muster.agent_report_error(self._node, task, -abs(code), message, timeout)

    def reset(self, task: str, timeout: Optional[float] = None) -> None:
        """Reset another task that is in error: it registers again, or a new process of
        the task may. FailedPreconditionError: it is not in error."""
        _muster.tasks_reset(self._node, task, timeout)


class PreemptionNotice(NamedTuple):
    """A notice that a task, or its machine, will be terminated.

    round: number of the notice, from 1. task: the task that will be terminated. reason:
    text. grace: seconds that are left. step: the step to stop at; valid when `agreed`.
    """

    round: int
    task: str
    reason: str
    grace: float
    step: int
    agreed: bool


class Preemption:
    """Stopping together before a task is terminated: all tasks agree on one step, one
    more than the largest that any of them has reached."""

    def __init__(self, node: _muster.Node) -> None:
        self._node = node

    def notice(self, reason: str = "", grace: float = 0.0,
               timeout: Optional[float] = None) -> None:
        """Announce that this task will be terminated in `grace` seconds. Returns once all
        tasks know it. With more than 15 minutes they agree on the step that long before
        the end.

        DeadlineExceededError names the tasks that have not answered; the others agree all
        the same.
        """
        _muster.preempt_notice(self._node, reason, grace, timeout)

    def reached(self, step: int) -> bool:
        """Report that the program has reached `step`; steps must ascend. True exactly
        when that is the step to stop at, the same for all tasks. Waits while the tasks
        agree; without a notice it takes some microseconds."""
        return _muster.preempt_reached(self._node, step)

    def wait(self, round: int = 0, agreed: bool = False,
             timeout: Optional[float] = None) -> PreemptionNotice:
        """Wait for a notice after number `round`, and with `agreed` for its step. For
        tasks without steps of their own, such as parameter servers."""
        return PreemptionNotice(*_muster.preempt_wait(self._node, round, agreed, timeout))


class CoordinationService:
    """A node's access to the coordination service.

    node: a Node, LocalCluster, ClusterCoordinator or strategy; by default that of the
    innermost `with`, or of the run.

    key_values, tasks, preemption: its parts.
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
        """The agent's state: "uninitialized" (service_hosts is "none"), "disconnected",
        "connected", or "error": then every call fails with that error until reset()."""
        return _muster.agent_state(self._node)[0]

    @property
    def error(self) -> Optional[BaseException]:
        """The error of the state "error", else None."""
        return _muster.agent_state(self._node)[1]

    @property
    def host(self) -> Dict[str, Any]:
        """What this node knows of the service, without waiting: task (of the leading
        host; "": none leads), epoch, store and registered."""
        return dict(_muster.agent_service(self._node))

    def register(self, barrier: bool = False, timeout: Optional[float] = None) -> None:
        """Wait until this task is registered; after leave() or reset(), register again.

        barrier: wait until every task of the coordinated jobs is registered; a
        DeadlineExceededError names the missing ones. AbortedError: another process of
        this task is registered, or this one is in error.
        """
        _muster.agent_register(self._node, barrier, timeout)

    def report_error(self, message: str, code: int = 13,
                     timeout: Optional[float] = None) -> None:
        """Report that this task has failed: it goes into the state "error", barriers that
        need it fail, and unless its job is recoverable, all other tasks go into the state
        "error", too. code: of muster.errors, 13 is InternalError.
        FailedPreconditionError: it is not connected."""
        _muster.agent_report_error(self._node, None, -abs(code), message, timeout)

    def set_error(self, message: str, code: int = 13) -> None:
        """Put this node's agent into the state "error", without reporting it."""
        _muster.agent_set_error(self._node, -abs(code), message)

    def reset(self, timeout: Optional[float] = None) -> None:
        """Leave the state "error"; barriers that wait for this task fail.
        FailedPreconditionError: it is not in error."""
        _muster.agent_reset(self._node, timeout)

    def leave(self, timeout: Optional[float] = None) -> None:
        """Leave the service: other tasks are no longer affected when this one fails or
        ends. A node that is closed leaves by itself. FailedPreconditionError: it has left
        already, or is in error."""
        _muster.agent_leave(self._node, timeout)

    def progress(self) -> None:
        """Report that the program makes progress: with the option `stuck` of the host's
        node, a task that does not call this for that long has failed. Very cheap."""
        _muster.agent_progress(self._node)

    def on_error(self, callback: Optional[Callable[[BaseException], Any]]) -> None:
        """Have callback(exception) called when this task goes into the state "error": a
        task that is not recoverable failed (`exception.task`), or this one did. Called on
        a thread of muster. A later callback replaces an earlier one; None removes it."""
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

    # ---- locks and barriers ----

    def lock(self, name: str, timeout: Optional[float] = None) -> Lock:
        """A lock of the cluster, for `with`; timeout: for acquiring it."""
        return Lock(self._node, name, timeout)

    def barrier(self, name: str, tasks: Optional[str] = None,
                timeout: Optional[float] = None, threads: int = 1) -> None:
        """Wait until all participants have arrived. A name can be used repeatedly.

        tasks: a set, "worker:0-3"; None: all tasks of the coordinated jobs. timeout: of
        the barrier; that of the first to arrive counts. threads: how many threads of this
        process must call, each with the same number, before it counts as arrived.

        All participants get the same result. DeadlineExceededError says how many of how
        many arrived, which tasks are missing, and when each last sent anything.
        InternalError: a participant that is not recoverable was lost, left or was reset.
        CancelledError: cancel_barrier(). InvalidArgumentError: callers name different
        participants, unknown ones, or not this task. FailedPreconditionError: this node
        is at this barrier already.
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
        """Cancel the barrier at which this node waits, for all participants.
        FailedPreconditionError: this node does not wait there, or all have passed."""
        _muster.barrier_cancel(self._node, _key(name), timeout)
