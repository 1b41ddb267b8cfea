"""Large data that stays on workers, and lists of calls over it."""

from __future__ import annotations

import concurrent.futures as cf
import time
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Optional,
                    TypeVar)

from . import _coordinators, _muster, _scope
from .coordinator import ClusterCoordinator

__all__ = ["gather", "map", "scatter"]

T = TypeVar("T")


def _same(value: Any) -> Any:
    return value


def _coordinator(cluster: Any) -> ClusterCoordinator:
    owner = _scope.current_node() if cluster is None else cluster
    return _coordinators.coordinator_of(owner)


def _put(coordinator: ClusterCoordinator, value: Any, options: Dict[str, Any]) -> Any:
    return coordinator.schedule(_same, (value,), pin_result=True, **options)


def scatter(data: Any, cluster: Any = None, *, broadcast: bool = False,
            **options: Any) -> Any:
    """Send data to workers, where it stays: one RemoteValue for each item of a list,
    tuple or dict (in a structure of the same kind), or one for anything else.

    Pass them among the arguments of closures, at any depth: those go to the worker that
    has most of their data, and get the values in place of the references. Items are
    spread over the workers. When a worker is lost its data is put on another one as soon
    as it is used. It is let go when nobody holds the RemoteValue.

    broadcast: all of data to every worker, as PerWorkerValues. cluster: a LocalCluster,
    Node, ClusterCoordinator or strategy; None: that of the innermost `with`. options:
    those of ClusterCoordinator.schedule(), worker= for instance.
    """
    coordinator = _coordinator(cluster)
    if broadcast:
        if options:
            raise TypeError("broadcast=True takes no options of closures")
        return coordinator.create_per_worker_value(_same, (data,))
    if isinstance(data, dict):
        return {key: _put(coordinator, value, options) for key, value in data.items()}
    if type(data) in (list, tuple):
        return type(data)(_put(coordinator, value, options) for value in data)
    return _put(coordinator, data, options)


def gather(structure: Any, timeout: Optional[float] = None) -> Any:
    """A copy of lists, tuples and dicts with the results of the RemoteValues and futures
    in them, at any depth. TimeoutError when not all are ready within timeout seconds."""
    end = None if timeout is None else time.monotonic() + timeout
    return _gathered(structure, end)


def _gathered(item: Any, end: Optional[float]) -> Any:
    left = None if end is None else max(0.0, end - time.monotonic())
    if isinstance(item, _muster.RemoteValue):
        return item.fetch(left)
    if isinstance(item, cf.Future):
        return item.result(left)
    if isinstance(item, dict):
        return {key: _gathered(value, end) for key, value in item.items()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(_gathered(value, end) for value in item))
    if type(item) in (list, tuple):
        parts: List[Any] = [_gathered(value, end) for value in item]
        return parts if type(item) is list else tuple(parts)
    return item


def map(fn: Callable[..., T], *iterables: Iterable[Any], cluster: Any = None,
        chunksize: int = 1, timeout: Optional[float] = None,
        buffersize: Optional[int] = None, progress: Any = None,
        **options: Any) -> Iterator[T]:
    """The results of fn over the iterables on a cluster, in order: Executor.map() with an
    executor of its own, whose options may be given."""
    from .executor import Executor

    executor = Executor(_coordinator(cluster), **options)
    results = executor.map(fn, *iterables, timeout=timeout, chunksize=chunksize,
                           buffersize=buffersize, progress=progress)

    def give() -> Iterator[T]:
        with executor:
            try:
                yield from results
            except (KeyboardInterrupt, GeneratorExit):  # nobody takes the rest
                executor._engine.interrupt()
                raise

    return give()
