"""The joblib backend "muster": joblib.Parallel, and scikit-learn's n_jobs, on a cluster.

    import joblib, muster.joblib
    with muster.LocalCluster(workers=4) as cluster:
        with joblib.parallel_config("muster", cluster=cluster):
            search.fit(X, y)

Importing this module registers the backend.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any, Callable, Dict, Optional, Set, Tuple

from joblib._parallel_backends import (AutoBatchingMixin, FallbackToBackend,
                                       ParallelBackendBase, SequentialBackend)
from joblib.parallel import register_parallel_backend

from . import _scope
from .executor import Executor
from .futures import Future

__all__ = ["MusterBackend", "register"]

_lock = threading.Lock()
_own: Optional[Executor] = None     # used when no cluster is given
_own_key: Any = None


def _close_own() -> None:
    global _own
    with _lock:
        own, _own = _own, None
    if own is not None:
        own.shutdown(True, cancel_futures=True)


def _after_fork() -> None:
    global _own, _lock
    _lock = threading.Lock()
    _own = None     # the parent's


atexit.register(_close_own)
os.register_at_fork(after_in_child=_after_fork)


def _own_executor(n_jobs: int, env: Dict[str, str], options: Dict[str, Any]) -> Executor:
    """The executor of this process, with at least n_jobs workers."""
    global _own, _own_key
    key = (tuple(sorted(env.items())), repr(sorted(options.items())))
    with _lock:
        if _own is None or _own_key != key or _own._max_workers < n_jobs or _own._broken:
            # The former one ends after its last use.
            _own = Executor(max_workers=n_jobs, env=env, cancel_running=True, **options)
            _own_key = key
        return _own


def _run_batch(batch: Callable[[], Any]) -> Any:
    return batch()


class MusterBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the calls of joblib.Parallel on a cluster.

    cluster: a LocalCluster, Node, ClusterCoordinator, strategy or Executor; None: that of
    the innermost `with`, or else one with n_jobs workers that this process keeps.
    options: those of Executor().

    n_jobs=-1 is all workers. Calls within calls run in threads of the worker, those
    within these one after the other, as with joblib's own processes.
    """

    supports_retrieve_callback = True
    uses_threads = False
    supports_sharedmem = False
    default_n_jobs = -1

    def __init__(self, cluster: Any = None, nesting_level: Optional[int] = None,
                 inner_max_num_threads: Optional[int] = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level,
                         inner_max_num_threads=inner_max_num_threads)
        self._cluster = cluster
        self._options = options
        self._workers: Optional[Executor] = None
        self._futures: Set["Future[Any]"] = set()
        self._is_own = False        # the executor is not shared with other backends
        # Running processes keep their environment.
        self.supports_inner_max_num_threads = cluster is None

    def __reduce__(self) -> Tuple[Any, ...]:
        return (MusterBackend, ())

    # ---- workers ----

    def _place(self) -> Any:
        if self._cluster is not None:
            return self._cluster
        with _scope._lock:
            return _scope._shared[-1] if _scope._shared else None

    def _count(self) -> int:
        if self._workers is not None:
            return self._workers._max_workers
        place = self._place()
        if place is None:
            import joblib

            return int(joblib.cpu_count())
        if isinstance(place, Executor):
            return place._max_workers
        self._open(1)
        return self._workers._max_workers if self._workers is not None else 1

    def effective_n_jobs(  # pyright: ignore[reportIncompatibleMethodOverride]
            self, n_jobs: Optional[int]) -> int:
        """How many calls run at a time."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if n_jobs < 0:
            return max(self._count() + 1 + n_jobs, 1)
        return n_jobs

    def _open(self, n_jobs: int) -> None:
        place = self._place()
        self._is_own = False
        if isinstance(place, Executor):
            self._workers = place
        elif place is not None:
            self._workers = Executor(place, cancel_running=True, **self._options)
            self._is_own = True
        else:
            env = self._prepare_worker_env(n_jobs)
            self._workers = _own_executor(n_jobs, env, self._options)

    def configure(  # pyright: ignore[reportIncompatibleMethodOverride]
            self, n_jobs: Optional[int] = 1, parallel: Any = None,
            prefer: Any = None, require: Any = None, **options: Any) -> int:
        """Called by joblib before it begins."""
        jobs = self.effective_n_jobs(n_jobs)
        if jobs == 1 and n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        # joblib's memory maps do not work across a cluster.
        self._options.update((key, value) for key, value in options.items()
                             if key in ("initializer", "initargs"))
        if self._workers is None or (not self._is_own and self._place() is None):
            self._open(jobs)    # the executor of the process may have been replaced
        self.parallel = parallel
        return jobs

    def terminate(self) -> None:
        """Called by joblib after the end."""
        executor, self._workers = self._workers, None
        if executor is not None and self._is_own:
            executor.shutdown(False)
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel submitted calls, whose results joblib does not need any more."""
        global _own
        futures, self._futures = list(self._futures), set()
        executor = self._workers
        were_running = any(future.running() for future in futures)
        for future in futures:
            future.cancel()
        if executor is None or not were_running or self._is_own or \
                self._place() is not None:
            return
        # Running calls may ignore a cancellation: the process's own workers are replaced,
        # as joblib replaces its own. Another thread that uses them keeps them.
        with _lock:
            if _own is not executor or executor._engine.in_flight > len(futures):
                return
            _own = None
        self._workers = None
        executor._engine.abandon()
        if ensure_ready:
            self._open(executor._max_workers)

    # ---- calls ----

    def start_call(self) -> None:
        """Called by joblib at the beginning of each call."""
        self._futures = set()

    def stop_call(self) -> None:
        """Called by joblib at the end of each call."""
        self._futures = set()

    def submit(self, func: Callable[[], Any],
               callback: Optional[Callable[[Any], Any]] = None) -> "Future[Any]":
        """Send a batch of calls."""
        executor = self._workers
        if executor is None:
            raise RuntimeError("the backend was not configured")
        future = executor.submit(_run_batch, func)
        futures = self._futures
        futures.add(future)
        future.add_done_callback(futures.discard)
        future.get = future.result  # type: ignore[attr-defined]
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit

    def retrieve_result_callback(self, out: "Future[Any]") -> Any:
        """The result of a batch; raises its exception."""
        return out.result()


def register() -> None:
    """Register the backend "muster" with joblib."""
    register_parallel_backend("muster", MusterBackend)


register()
