"""The coordinator with TensorFlow's interface."""

from __future__ import annotations

import collections
import threading
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Deque, Dict, Iterable, Iterator, List,
                    Mapping, Optional, Set, Tuple, TypeVar)

from . import _functions, _muster, _scope, errors

if TYPE_CHECKING:
    from .actors import Handle
    from .executor import Executor

# The open coordinator of each node, by the node's id. Not a WeakValueDictionary: it calls
# Python where a coordinator is dropped, and what a signal handler raises there is lost.
_known: "Dict[int, weakref.ref[ClusterCoordinator]]" = {}
_known_lock = threading.Lock()
_opening: Dict[int, threading.Lock] = {}    # of each node, held while it is opened

def known_of(node: Any) -> "Optional[ClusterCoordinator]":
    """The coordinator of a node, if there is one, open or closed."""
    known = _known.get(id(node))
    return None if known is None else known()


T = TypeVar("T")
RemoteValue = _muster.RemoteValue
PerWorkerValues = _muster.PerWorkerValues


class ClusterCoordinator(_muster.Coordinator):
    """Schedules functions on the workers of a cluster.

    strategy: a LocalCluster, a Node, or a strategy with a node. timeout: seconds to wait
    for the chief (None: no timeout).

    A closure runs at least once: when its worker dies it runs on another one. The first
    error of a closure is raised by the next schedule(), join() or done(), once, after
    everything that was queued is cancelled.

    A node has one coordinator, as in TensorFlow a strategy has one: while it is open,
    constructing another one returns the same object, and the last `with` closes it;
    close() closes it at once.
    """

    _strategy: Any
    _actors_spawned: int    # without a worker said
    _actors_at: Set[Tuple[str, int]]    # tasks that have made some
    _actors_made: "Deque[Any]"      # actors that are perhaps being made
    _users: int     # constructor calls, less the `with` blocks that have ended

    def __new__(cls, strategy: Any,
                timeout: Optional[float] = None) -> "ClusterCoordinator":
        node = _scope.node_of(strategy)
        with _opening.setdefault(id(node), threading.Lock()):
            self = known_of(node)
            if self is None or type(self) is not cls or self.node is not node or \
                    not self._is_open():
                self = super().__new__(cls)
                _muster.Coordinator.__init__(self, node, timeout)
                self._strategy, self._users = strategy, 0
                self._actors_spawned, self._actors_at = -1, set()
                self._actors_made = collections.deque()
                with _known_lock:
                    for number, known in list(_known.items()):
                        if known() is None:
                            del _known[number]
                    _known[id(node)] = weakref.ref(self)
            self._users += 1
            return self

    def __init__(self, strategy: Any, timeout: Optional[float] = None) -> None:
        pass    # __new__ has opened it, or returned the open one

    def _is_open(self) -> bool:
        try:
            self.counts()
        except errors.ClosedError:
            return False
        return True

    @property
    def strategy(self) -> Any:
        """The constructor's argument."""
        return self._strategy

    def create_per_worker_dataset(self, dataset_fn: Any) -> PerWorkerValues:
        """A dataset on each worker, which dataset_fn() returns there; made again on a
        worker that comes back. An iterable instead of a function is pickled.

        iter() of the result is an iterator on each worker. Passed to closures, next()
        takes its elements there. An error of dataset_fn is the InputError of the closures
        that use it.
        """
        if not callable(dataset_fn):
            return self.create_per_worker_value(_Same(dataset_fn))
        return self.create_per_worker_value(dataset_fn)

    def create_per_worker_value(self, fn: Callable[..., Any], args: Iterable[Any] = (),
                                kwargs: Optional[Any] = None,
                                timeout: Optional[float] = None) -> PerWorkerValues:
        """A value that fn(*args, **kwargs) makes on each worker: a model, a connection.
        It stays there; a closure gets the value of the worker it runs on."""
        source = _functions.build_args(fn, tuple(args), kwargs)
        return PerWorkerValues.open(self, "python.build", source, source=source,
                                    timeout=timeout)

    def per_worker_values(self, values: List[Any],
                          timeout: Optional[float] = None) -> PerWorkerValues:
        """A per-worker value from a list: item i is for worker i. Plain values and
        arrays."""
        return PerWorkerValues.from_values(self, values, timeout)

    def spawn(self, cls: Callable[..., T], args: Iterable[Any] = (),
              kwargs: Optional[Mapping[str, Any]] = None, *, where: str = "thread",
              worker: Optional[int] = None, worker_type: str = "worker",
              concurrency: int = 1, name: Optional[str] = None,
              kept: bool = False, restart: str = "failed", restarts: int = 5,
              restarts_within: float = 60.0,
              timeout: Optional[float] = 60.0) -> "Handle[T]":
        """Make an actor: an object cls(*args, **kwargs) on a worker, whose methods the
        handle calls. Many are made at the same time: this does not wait. The first use
        of the handle waits until the constructor has returned, and raises its exception.

        name: the one actor of this name in the cluster: it is made, or it is there, when
        this returns, and an exception of its constructor is raised here. It is on the
        worker with the fewest of them, and made anew elsewhere, with the same arguments,
        when its worker is lost or drained, or it has died; muster.actor(name) finds it.
        restart: "failed", "never", or "always": also when it has ended by itself; at most
        `restarts` times within `restarts_within` seconds.
        kept: its state survives its worker, and each call takes effect once; the cluster
        has a store: LocalCluster(store="journal:PATH").

        where: "thread": on a thread of the worker, which others use, too, while it has
        nothing to do; "process": in a process of its own.
        worker: the worker's index; without one, actors are given to the workers one after
        the other. concurrency: how many of its calls may run at a time; with 1 they run
        in order. timeout: seconds until its constructor has returned.
        """
        from . import actors

        return actors.spawn(self, cls, args, kwargs, where=where, worker=worker,
                            worker_type=worker_type, concurrency=concurrency, name=name,
                            kept=kept, restart=restart, restarts=restarts,
                            restarts_within=restarts_within, timeout=timeout)

    def executor(self, max_workers: Optional[int] = None, **options: Any) -> "Executor":
        """A concurrent.futures.Executor on this coordinator; see muster.Executor."""
        from .executor import Executor

        return Executor(self, max_workers, **options)

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], chunksize: int = 1,
            **options: Any) -> Iterator[T]:
        """fn over the iterables, chunksize calls in a closure; see muster.map()."""
        from . import _scatter

        return _scatter.map(fn, *iterables, cluster=self, chunksize=chunksize, **options)

    def scatter(self, data: Any, *, broadcast: bool = False, **options: Any) -> Any:
        """Data that stays on workers; see muster.scatter()."""
        from . import _scatter

        return _scatter.scatter(data, self, broadcast=broadcast, **options)

    def gather(self, structure: Any, timeout: Optional[float] = None) -> Any:
        """The results of RemoteValues and futures in a structure; see muster.gather()."""
        from . import _scatter

        return _scatter.gather(structure, timeout)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a ClusterCoordinator cannot be sent to workers (an argument, or a variable "
            "that the function uses, is one); in a function, "
            "ClusterCoordinator(current_run().node) is one of its own")

    def __enter__(self) -> "ClusterCoordinator":
        return self

    def __exit__(self, *_: Any) -> None:
        with _opening.setdefault(id(self.node), threading.Lock()):
            self._users -= 1
            if self._users > 0:
                return
        self.close()


class _Same:
    """A function that returns the constructor's argument."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self) -> Any:
        return self._value
