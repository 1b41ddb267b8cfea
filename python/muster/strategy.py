"""Strategies: TensorFlow's ``tf.distribute.ParameterServerStrategy``."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any, Callable, Dict, Generator, Iterable, List, Mapping, Optional

from . import _muster, _scope
from .cluster_spec import ClusterSpec
from .partitioners import shards_of
from .resolvers import ClusterResolver

__all__ = ["ParameterServerStrategy", "ParameterServerStrategyV2"]

_ALLOWED = ("chief", "worker", "ps", "evaluator")


def _check_spec(spec: ClusterSpec, task_type: Optional[str]) -> None:
    """TensorFlow's rules for a cluster with parameter servers."""
    if not spec:
        raise ValueError("the cluster is empty: a ParameterServerStrategy needs a "
                         "cluster with workers and parameter servers")
    unknown = [job for job in spec.jobs if job not in _ALLOWED]
    if unknown:
        raise ValueError(f"the cluster has the jobs {', '.join(unknown)}; allowed are "
                         f"{', '.join(_ALLOWED)}")
    for job in ("worker", "ps"):
        if job not in spec.jobs or spec.num_tasks(job) == 0:
            raise ValueError(f"the cluster has no task of job {job!r}")
    spec.validate()
    if task_type in ("worker", "ps"):
        raise ValueError(f"this process is a {task_type}: the coordinator's task is the "
                         "chief; workers and parameter servers run muster.Server or "
                         "`python -m muster node`")
    if "chief" not in spec.jobs or spec.num_tasks("chief") == 0:
        raise ValueError("the cluster has no chief: workers have to know where the "
                         "coordinator is")


class ParameterServerStrategy:
    """Training with variables on parameter servers and functions on workers, coordinated
    by this process, the chief.

    cluster_resolver: a ClusterResolver with chief, workers and parameter servers; or a
    LocalCluster or a Node. variable_partitioner: called with the shape and dtype of each
    variable that is created in scope(); returns into how many parts each dimension is cut
    (muster.partitioners). By default variables are cut by their size.

    Other options are those of a Node (threads, heartbeat, journal and so on): this
    process's node is opened with them.

        strategy = muster.ParameterServerStrategy(muster.TFConfigClusterResolver())
        coordinator = muster.ClusterCoordinator(strategy)
        with strategy.scope():
            weights = muster.Variable(np.zeros((784, 10), np.float32), name="weights")

    ValueError: the cluster is empty, has no worker, no parameter server, no chief or
    several, or another job; or this process is a worker or a parameter server of it.
    """

    def __init__(self, cluster_resolver: Any,
                 variable_partitioner: Optional[Callable[..., Iterable[int]]] = None,
                 **options: Any) -> None:
        if variable_partitioner is not None and not callable(variable_partitioner):
            raise TypeError(f"variable_partitioner is {variable_partitioner!r}, expected "
                            "a function of shape and dtype")
        self._partitioner = variable_partitioner
        self._resolver: Optional[ClusterResolver] = None
        self._node: Optional[_muster.Node] = None   # None: that of the function's run
        self._owned = False
        if isinstance(cluster_resolver, ClusterResolver):
            self._resolver = cluster_resolver
            self._node = self._open(cluster_resolver, options)
            self._owned = True
        elif isinstance(cluster_resolver, _muster.Node) or hasattr(cluster_resolver,
                                                                   "node"):
            if options:
                raise TypeError("options are for a node that the strategy opens, got "
                                f"{sorted(options)} together with {cluster_resolver!r}")
            self._node = _scope.node_of(cluster_resolver)
        else:
            raise TypeError("cluster_resolver is a ClusterResolver, a LocalCluster or a "
                            f"Node, got {cluster_resolver!r}")

    @staticmethod
    def _open(resolver: ClusterResolver, options: Dict[str, Any]) -> _muster.Node:
        spec = resolver.cluster_spec()
        task_type = resolver.task_type
        _check_spec(spec, task_type)
        if task_type in (None, "chief"):
            options = {"task_type": "chief", "task_index": 0, **options}
        name = (getattr(resolver, "_last", None) or {}).get("cluster_name")
        if name and not os.environ.get("MUSTER_CLUSTER_NAME"):
            options = {"cluster_name": name, **options}
        return _muster.Node(spec, **options)

    def __reduce__(self) -> Any:
        """In a function it is the strategy of the worker's node, without a resolver."""
        own = ("_partitioner", "_resolver", "_node", "_owned")
        rest = {name: value for name, value in self.__dict__.items() if name not in own}
        return (_in_function, (type(self), self._partitioner), rest or None)

    @property
    def node(self) -> _muster.Node:
        """This process's node."""
        return _muster.current_run().node if self._node is None else self._node

    @property
    def cluster_resolver(self) -> Optional[ClusterResolver]:
        """The resolver of the constructor, None without one."""
        return self._resolver

    @property
    def num_workers(self) -> int:
        """Number of workers in the cluster at present."""
        return self.node.task_count("worker")

    @property
    def num_ps(self) -> int:
        """Number of parameter servers."""
        return self.node.task_count("ps")

    @property
    def num_replicas_in_sync(self) -> int:
        """1: each closure trains by itself."""
        return 1

    @contextlib.contextmanager
    def scope(self) -> Generator[ParameterServerStrategy, None, None]:
        """Variables that are created inside live on this cluster's parameter servers,
        cut by the partitioner. For all threads of the process."""
        _scope.push(self)
        try:
            yield self
        finally:
            _scope.pop(self)

    def run(self, fn: Callable[..., Any], args: Iterable[Any] = (),
            kwargs: Optional[Mapping[str, Any]] = None) -> Any:
        """Call fn in this process. Outside of a closure a warning is logged that it does
        not run on a worker: use ClusterCoordinator.schedule() for that."""
        if _muster.find_run() is None:
            logging.getLogger("muster").warning(
                "ParameterServerStrategy.run() outside of a closure: %r runs in this "
                "process; ClusterCoordinator.schedule() runs it on a worker", fn)
        return fn(*args, **dict(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: Optional[int] = None) -> Any:
        """The sum or the mean ("SUM", "MEAN") of a value over its replicas, of which
        there is one, and then over an axis, if one is given."""
        import numpy as np

        name = str(getattr(reduce_op, "name", reduce_op)).upper()
        if name not in ("SUM", "MEAN"):
            raise ValueError(f"reduce_op is {reduce_op!r}, expected \"SUM\" or \"MEAN\"")
        if axis is None:
            return value
        return np.sum(value, axis) if name == "SUM" else np.mean(value, axis)

    def close(self, timeout: Optional[float] = 5.0) -> None:
        """Close the node, if the strategy has opened it."""
        if self._owned and self._node is not None:
            self._node.close(timeout)

    def __enter__(self) -> ParameterServerStrategy:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _shards_for(self, shape: List[int], dtype: Any) -> int:
        """Number of shards of a variable that is created in scope(); 0: by its size."""
        return shards_of(self._partitioner, shape, dtype)


def _in_function(cls: Any, partitioner: Any) -> Any:
    """Unpickle a strategy."""
    strategy = cls.__new__(cls)
    strategy._partitioner = partitioner
    strategy._resolver = strategy._node = None
    strategy._owned = False
    return strategy


#: The older name.
ParameterServerStrategyV2 = ParameterServerStrategy
