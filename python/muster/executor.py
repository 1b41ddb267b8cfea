"""muster.Executor: a concurrent.futures.Executor on a cluster."""

from __future__ import annotations

import atexit
import collections
import concurrent.futures as cf
import functools
import itertools
import logging
import os
import sys
import threading
import time
import types
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Deque, Dict, Iterable, Iterator, List,
                    NoReturn, Optional, Tuple, TypeVar, Union, cast)

from . import _coordinators, _muster, _pickling, _worker, errors
from .cluster import LocalCluster
from .coordinator import ClusterCoordinator
from .futures import Future, Owner

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

__all__ = ["BrokenClusterExecutor", "Executor"]

T = TypeVar("T")

_LOGGER = logging.getLogger("concurrent.futures")

_RETRY_SECONDS = 0.02
_IDLE_SECONDS = 1.0     # interval of checking whether a cluster is still open
_FUNCTIONS_MAX = 64

_OPTIONS = frozenset({"priority", "deadline", "run_timeout", "attempts", "worker",
                      "not_worker", "worker_type", "effect_once", "no_backup"})


class BrokenClusterExecutor(cf.BrokenExecutor):
    """The executor's cluster was closed, or its initializer failed on a worker."""


# ---- interpreter exit, like the pools of concurrent.futures ----

_engines: "weakref.WeakSet[_Engine]" = weakref.WeakSet()
_interpreter_ends = False


def _was_interrupted() -> bool:
    """Whether the program ends by Ctrl-C, as nothing has caught the exception."""
    kind = getattr(sys, "last_type", None)
    return not hasattr(sys, "ps1") and isinstance(kind, type) and \
        issubclass(kind, KeyboardInterrupt)


def _at_exit() -> None:
    global _interpreter_ends
    _interpreter_ends = True
    for engine in list(_engines):
        try:
            if _was_interrupted():
                engine.interrupt()
            else:
                engine.shutdown(True, False)
        except KeyboardInterrupt:   # then it was interrupted; so are the others
            sys.last_type = KeyboardInterrupt


_register: Any = getattr(threading, "_register_atexit", atexit.register)
_register(_at_exit)


def _raw_line(task: str, stream: str, line: str) -> None:
    out = sys.stdout if stream == "out" else sys.stderr
    if out is not None:
        out.write(line + "\n")
        out.flush()


def _apply(fn: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


# ---- initializers ----

def _globals_probe(initializer: Any) -> Any:
    """A function that is pickled by value and has the initializer's globals; None when
    the initializer is pickled by name. Functions in one pickle share their globals on the
    worker, so that there the probe's globals are those of all functions in its pickle."""
    fn = initializer
    while isinstance(fn, (functools.partial, types.MethodType)):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__func__
    if type(fn) is not types.FunctionType:
        return None
    module = sys.modules.get(fn.__module__)
    if fn.__module__ != "__main__" and getattr(module, fn.__qualname__, None) is fn:
        return None
    probe = types.FunctionType(_nothing.__code__, fn.__globals__, "<globals>")
    probe.__module__ = fn.__module__
    return probe


def _nothing() -> None:
    pass


class _Globals:
    """The globals that an initializer, and later functions, have assigned on a worker."""

    def __init__(self) -> None:
        self._values: Dict[str, Any] = {}
        self._lock = threading.Lock()

    def call(self, probe: Any, fn: Callable[..., Any], args: Tuple[Any, ...],
             kwargs: Dict[str, Any]) -> Any:
        """Call a function with these globals, and keep those that it assigns."""
        own = probe.__globals__
        with self._lock:
            own.update(self._values)
        before = dict(own)
        try:
            return fn(*args, **kwargs)
        finally:
            assigned = {name: value for name, value in list(own.items())
                        if name not in before or before[name] is not value}
            with self._lock:
                self._values.update(assigned)


class _InitializerFailed(Exception):
    """Raised by calls on a worker where the initializer has failed; its arguments are the
    fields of the _worker.Failed."""


def _with_value(value: Union[_Globals, _worker.Failed, None], probe: Any,
                fn: Callable[..., Any], args: Tuple[Any, ...],
                kwargs: Dict[str, Any]) -> Any:
    if value is None:
        return fn(*args, **kwargs)
    if isinstance(value, _worker.Failed):
        raise _InitializerFailed(value.data, value.words, value.text, value.code)
    return value.call(probe, fn, args, kwargs)


def _initialize(data: bytes) -> Union[_Globals, _worker.Failed, None]:
    """Call the initializer on a worker. Its exception is a value, so that it differs from
    the errors of a call's inputs."""
    try:
        probe, initializer, initargs = _pickling.loads(data)
        if probe is None:
            initializer(*initargs)
            return None
        made = _Globals()
        made.call(probe, initializer, initargs, {})
        return made
    except BaseException as error:
        return _worker.failed(error)


class _Engine(_muster.Sender, Owner):
    """The implementation of an Executor. Its futures refer to it, so that it lives until
    they are done."""

    def __new__(cls, coordinator: ClusterCoordinator, capacity: int, fixed: bool,
                options: Dict[str, Any], cancel_running: bool) -> "_Engine":
        return super().__new__(cls, coordinator, Future, capacity, fixed, options)

    def __init__(self, coordinator: ClusterCoordinator, capacity: int, fixed: bool,
                 options: Dict[str, Any], cancel_running: bool) -> None:
        self.cancel_running = cancel_running
        self.own: Optional[LocalCluster] = None     # closed with it
        self.initialized: Any = None
        self.probe: Any = None
        self.broken: Optional[BaseException] = None
        self._words = ""                            # why it is broken
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._timer: Optional[threading.Timer] = None
        self._is_closed = False
        self._closes_when_idle = False
        self._seen: "weakref.WeakSet[Any]" = weakref.WeakSet()
        _engines.add(self)

    # ---- sending ----

    def _refuse(self) -> NoReturn:
        if self.broken is not None:
            raise self._broken_error()
        when = "interpreter shutdown" if _interpreter_ends else "shutdown"
        raise RuntimeError(f"cannot schedule new futures after {when}")

    def _wrap(self, fn: Any, args: Tuple[Any, ...],
              kwargs: Optional[Dict[str, Any]]) -> Optional[Tuple[Any, Any, Any]]:
        """The function, arguments and keyword arguments to schedule for a call; None:
        those of the call itself, for this and all later calls of fn."""
        if self.initialized is not None:
            initialized = (self.initialized, self.probe)
            return _with_value, (*initialized, fn, args, kwargs or {}), None
        if type(fn) is not types.FunctionType:
            return _apply, (fn, args, kwargs or {}), None
        if fn.__closure__ is not None and self._is_new(fn):
            return _apply, (fn, args, kwargs or {}), None
        return None

    def _not_sent(self, future: "Future[Any]", error: BaseException) -> None:
        if isinstance(error, errors.WouldBlockError):
            self._later(future)
            return
        if isinstance(error, errors.ClosedError):
            self._break(error)
            error = self._broken_error()
        # Otherwise its arguments cannot be pickled, for instance.
        future._settle("FINISHED", None, error.with_traceback(None))
        self._landed(1)

    def _is_new(self, fn: Any) -> bool:
        """Whether a closure function is used for the first time. Only one that is used
        again is kept on the workers, since most are used once."""
        if fn in self._seen:
            return False
        self._seen.add(fn)
        return True

    def _later(self, future: "Future[Any]") -> None:
        """Put the future at the front of the queue, to be sent again a little later."""
        future._move("RUNNING", "PENDING")
        self._again(future)
        with self._lock:
            if self._timer is None and not _interpreter_ends:
                self.is_held = True
                self._timer = threading.Timer(_RETRY_SECONDS, self._retry)
                self._timer.daemon = True
                self._timer.start()

    def _retry(self) -> None:
        with self._lock:
            self._timer = None
            self.is_held = False
        self._pump()

    # ---- results ----

    def failed(self, future: "Future[Any]", error: BaseException,
               is_aborted: bool) -> bool:
        if is_aborted and future._state == "RUNNING" and self.broken is None:
            # Another program's error has cancelled everything on the coordinator.
            self._later(future)
            return False
        if isinstance(error, _InitializerFailed):
            if self.broken is None:
                failed = _worker.Failed(*error.args)
                cause = failed.exception()
                _LOGGER.critical("Exception in initializer:", exc_info=cause)
                self._break(cause, f"the initializer failed: {failed.words}")
            error = self._broken_error()
        elif self._is_of_initializer(future, error):
            self._break(error, f"the initializer failed: {error}")
            error = self._broken_error()
        return super().failed(future, error, is_aborted)

    def _is_of_initializer(self, future: "Future[Any]", error: BaseException) -> bool:
        """Whether the initializer's own value is what failed: its process has ended, as
        its exceptions are values. Not if the call has other inputs."""
        return self.initialized is not None and isinstance(error, errors.InputError) and \
            error._of_call and future._inputs == 1

    # ---- shutdown ----

    def _broken_error(self) -> BaseException:
        error = BrokenClusterExecutor(self._words)
        error.__cause__ = self.broken
        return error

    def _break(self, error: BaseException, words: str = "") -> None:
        with self._lock:
            if self.broken is None:
                self._words = words or str(error)
                self.broken = error
        self.is_shut = True
        for future in self._take_all():
            future._settle("FINISHED", None, self._broken_error())
        self._pump()

    def _emptied(self) -> None:
        """Called when it is shut down and has no more work."""
        with self._lock:
            self._idle.notify_all()
        if self._closes_when_idle:
            self._close_when_idle()

    def shutdown(self, wait: bool, cancel_futures: bool) -> None:
        self.is_shut = True
        if cancel_futures:
            for future in self._take_all():
                future._settle("CANCELLED_AND_NOTIFIED", None, None, False)
        if wait and threading.current_thread().name != "muster-notices":
            try:
                self._wait_until_idle()
                self._close()
            except KeyboardInterrupt:
                self.interrupt()
                raise
        else:
            self._closes_when_idle = True
            self._close_when_idle()

    def _wait_until_idle(self) -> None:
        while not self.is_idle:
            with self._lock:
                told = self.is_idle or self._idle.wait(_IDLE_SECONDS)
            if not told and not self.coordinator._is_open():
                # Nothing is left that would settle them.
                self._break(errors.ClosedError("the executor's cluster was closed"))
                self._settle_all(self._broken_error())
                return

    def _settle_all(self, error: Optional[BaseException]) -> None:
        """Settle all futures: cancelled, or with an error."""
        state = "FINISHED" if error is not None else "CANCELLED_AND_NOTIFIED"
        for future in self._take_all():
            future._settle(state, None, error)
        for future in self._flying():
            if future._settle(state, None, error):
                future._recall()

    def interrupt(self) -> None:
        """After Ctrl-C: cancel everything, and end its own cluster at once."""
        self.is_shut = True
        self._settle_all(None)
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
        _engines.discard(self)
        if self.own is not None and not was_closed:
            self.own._close_now()

    def abandon(self) -> None:
        """End it on a thread, although functions are running."""
        threading.Thread(target=self.interrupt, name="muster-executor-close").start()

    def _close_when_idle(self) -> None:
        with self._lock:
            if self._is_closed or not self.is_idle:
                return
        threading.Thread(target=self._close, name="muster-executor-close").start()

    def _close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        try:
            if self.own is not None:
                self.own.close()
        finally:
            _coordinators.forget_closed()
            _engines.discard(self)


class Executor(cf.Executor):
    """Runs functions on the workers of a cluster, with the interface of the pools of
    concurrent.futures.

    cluster: a LocalCluster, Node, ClusterCoordinator or strategy; or a number of workers,
    or None (as many as max_workers): then the executor starts a LocalCluster, and closes
    it on shutdown.
    max_workers: with an existing cluster, how many functions run at a time at most; None:
    as many as the cluster can run.
    initializer, initargs: called once on each worker before its first function, and again
    when a lost worker comes back. When it fails the executor is broken. Functions see the
    globals of the program that it assigned, and their own later assignments to them; all
    other globals are as they were when the function was submitted.
    cancel_running: whether Future.cancel() also cancels running functions.
    options: of ClusterCoordinator.schedule(), for every closure: priority, deadline,
    run_timeout, attempts, worker, not_worker, worker_type, effect_once, no_backup. Other
    options are those of the LocalCluster: threads=2, or processes=2, and with processes
    max_tasks_per_child, as of ProcessPoolExecutor.

    Function and arguments are packed by submit(): later changes of them have no effect.

    A function runs at least once: when its worker dies it runs on another one. Its
    exception is raised only by the future.
    """

    def __init__(self, cluster: Any = None, max_workers: Optional[int] = None, *,
                 initializer: Optional[Callable[..., Any]] = None,
                 initargs: Tuple[Any, ...] = (), cancel_running: bool = False,
                 **options: Any) -> None:
        if isinstance(cluster, int) and not isinstance(cluster, bool):
            if max_workers is not None:
                raise TypeError("the number of workers was given twice")
            cluster, max_workers = None, cluster
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        closures = {key: options.pop(key) for key in list(options) if key in _OPTIONS}
        own: Optional[LocalCluster] = None
        fixed = False
        if cluster is None:
            max_workers = max_workers or os.cpu_count() or 1
            threads = int(options.get("processes", 0)) or int(options.get("threads", 1))
            options.setdefault("on_line", _raw_line)
            cluster = own = LocalCluster(workers=max_workers, **options)
            capacity = max_workers * threads
        elif options:
            raise TypeError(f"Executor() got unexpected options {sorted(options)}: the "
                            "cluster is there already")
        else:
            fixed = max_workers is not None
            capacity = max_workers or 0
        try:
            coordinator = _coordinators.coordinator_of(cluster)
            capacity = capacity or _coordinators.capacity_of(coordinator, cluster)
            engine = _Engine(coordinator, capacity, fixed, closures, cancel_running)
            engine.own = own
            if initializer is not None:
                engine.probe = _globals_probe(initializer)
                engine.initialized = coordinator.create_per_worker_value(
                    _initialize, (_pickling.dumps_function(
                        (engine.probe, initializer, tuple(initargs))),))
        except BaseException:
            if own is not None:
                own.close()
            raise
        self._engine = engine
        self._submit: Callable[..., "Future[Any]"] = engine.submit
        self._functions: "collections.OrderedDict[Any, Any]" = collections.OrderedDict()
        weakref.finalize(self, engine.shutdown, False, False).atexit = False

    @property
    def coordinator(self) -> ClusterCoordinator:
        """The coordinator that schedules its closures."""
        return cast(ClusterCoordinator, self._engine.coordinator)

    @property
    def _max_workers(self) -> int:
        return self._engine.capacity

    @property
    def _broken(self) -> bool:
        return self._engine.broken is not None

    def submit(self, fn: "Callable[P, T]", /, *args: P.args,
               **kwargs: P.kwargs) -> "Future[T]":
        """Run fn(*args, **kwargs) on a worker; returns its Future at once.

        RuntimeError after shutdown(), BrokenExecutor when the executor is broken. An
        argument that cannot be pickled is an error of the future.
        """
        if not callable(fn):
            raise TypeError(f"fn is {fn!r}, expected a callable")
        return self._submit(fn, args, kwargs or None)

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any],
            timeout: Optional[float] = None, chunksize: int = 1,
            buffersize: Optional[int] = None, progress: Any = None) -> Iterator[T]:
        """The results of fn over the iterables, in order, as by map().

        timeout: seconds from now until the last result; TimeoutError. chunksize: calls in
        one closure; use a large number for short functions. buffersize: how many closures
        are submitted ahead of the results taken; None: all. progress: True, or a title,
        for a progress bar, if tqdm is installed.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and (not isinstance(buffersize, int) or buffersize < 1):
            raise ValueError("buffersize must be None or an integer > 0")
        if not callable(fn):
            raise TypeError(f"fn is {fn!r}, expected a callable")
        total = _length_of(iterables)
        if chunksize == 1:
            calls: Iterator[Tuple[Any, Any, Any]] = (
                (fn, args, None) for args in zip(*iterables))
        elif type(fn) not in (types.FunctionType, types.BuiltinFunctionType, type):
            single = len(iterables) == 1
            calls = ((_run_chunk, (fn, single, chunk), None)
                     for chunk in _chunks(iterables, chunksize))
        else:
            run = self._chunk_function(fn, len(iterables) == 1)
            calls = ((run, (chunk,), None) for chunk in _chunks(iterables, chunksize))
        results = _results(self._engine, calls, timeout, buffersize, chunksize > 1)
        if progress:
            from ._progress import bar_over

            return bar_over(results, total, progress)
        return results

    def _chunk_function(self, fn: Callable[..., Any], single: bool) -> Any:
        """A function over a chunk; the same object for the same fn."""
        key = (fn, single)
        known = self._functions.get(key)
        if known is None:
            known = self._functions[key] = _chunk_function(fn, single)
            if len(self._functions) > _FUNCTIONS_MAX:
                self._functions.popitem(last=False)
        return known

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse further functions. wait: wait until those submitted are done, and the
        executor's own cluster is closed. cancel_futures: cancel those that were not sent
        to the cluster yet."""
        self._functions.clear()
        self._engine.shutdown(wait, cancel_futures)

    def __exit__(self, kind: Any = None, *_: Any) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._functions.clear()
            self._engine.interrupt()
        else:
            self.shutdown()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Executor cannot be sent to workers (an argument, or a variable that the "
            "function uses, is one); in a function, current_run().node is the worker's")

    def __repr__(self) -> str:
        engine = self._engine
        words = "broken" if engine.broken else "shut down" if engine.is_shut else "open"
        return f"<muster.Executor of {engine.capacity} workers: {words}>"


# ---- chunks ----

def _run_chunk(fn: Callable[..., Any], single: bool, chunk: Iterable[Any]) -> List[Any]:
    return [fn(item) for item in chunk] if single else [fn(*args) for args in chunk]


def _chunk_function(fn: Callable[..., Any], single: bool) -> Callable[..., List[Any]]:
    if single:
        def run(chunk: Iterable[Any]) -> List[Any]:
            return [fn(item) for item in chunk]
    else:
        def run(chunk: Iterable[Any]) -> List[Any]:
            return [fn(*args) for args in chunk]
    run.__qualname__ = f"map of {getattr(fn, '__qualname__', 'a function')}"
    return run


def _chunks(iterables: Tuple[Iterable[Any], ...], size: int) -> Iterator[Any]:
    """The chunks of map(): slices of a single list, tuple or range, else lists."""
    first = iterables[0] if iterables else ()
    if len(iterables) == 1 and type(first) in (list, tuple, range):
        sequence: Any = first
        for start in range(0, len(sequence), size):
            yield sequence[start:start + size]
        return
    items = iter(first) if len(iterables) == 1 else zip(*iterables)
    while True:
        chunk = list(itertools.islice(items, size))
        if not chunk:
            return
        yield chunk


def _length_of(iterables: Tuple[Iterable[Any], ...]) -> Optional[int]:
    try:
        return min(len(each) for each in iterables)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _results(engine: _Engine, calls: Iterator[Tuple[Any, Any, Any]],
             timeout: Optional[float], buffersize: Optional[int],
             chunked: bool) -> Iterator[Any]:
    """Submit the calls (at most buffersize of them) now; returns an iterator of
    results."""
    end = None if timeout is None else time.monotonic() + timeout
    futures: Deque["Future[Any]"] = collections.deque(
        engine.submit(*call) for call in itertools.islice(calls, buffersize))

    def take() -> Iterator[Any]:
        # No reference to a result is kept here once it was yielded.
        try:
            while futures:
                if buffersize is not None:
                    for call in itertools.islice(calls, 1):
                        futures.append(engine.submit(*call))
                if not chunked:
                    yield _result_of(futures.popleft(), end)
                    continue
                results = _result_of(futures.popleft(), end)
                results.reverse()
                while results:
                    yield results.pop()
        finally:
            while futures:
                futures.popleft().cancel()

    return take()


def _result_of(future: "Future[Any]", end: Optional[float]) -> Any:
    try:
        return future.result(None if end is None else end - time.monotonic())
    finally:
        future.cancel()
        del future
