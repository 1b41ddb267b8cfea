"""muster: functions on a cluster of tasks, with parameters on servers.

    with muster.LocalCluster(workers=4) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        values = [coordinator.schedule(fn, (i,)) for i in range(100)]
        print(coordinator.fetch(values))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _library  # noqa: F401  (first: it loads the library)
from . import errors
from ._functions import program, register
from ._muster import VERSION as __version__
from ._muster import (Node, PerWorkerValues, RemoteValue, Run, ShardedDataset,
                      current_run, read_variables)
from ._pickling.plain import set_unpickle
from ._variable.rows import IndexedSlices
from ._worker import Shard
from .coordinator import ClusterCoordinator
from .errors import ActorError, InputError, MusterError, RemoteTraceback
from .variable import Variable

if TYPE_CHECKING:
    from . import actors as actors
    from . import checkpoint as checkpoint
    from . import clock as clock
    from . import cluster as cluster
    from . import cluster_spec as cluster_spec
    from . import coordination as coordination
    from . import distribute as distribute
    from . import executor as executor
    from . import futures as futures
    from . import initializers as initializers
    from . import joblib as joblib
    from . import optimizers as optimizers
    from . import partitioners as partitioners
    from . import resolvers as resolvers
    from . import server as server
    from . import simulation as simulation
    from . import strategy as strategy
    from . import table as table
    from . import torch_store as torch_store
    from ._progress import progress
    from ._scatter import gather
    from ._scatter import map as map
    from ._scatter import scatter
    from .actors import Handle, Stream, actor, die, record
    from .cluster import LocalCluster
    from .cluster_spec import ClusterSpec
    from .checkpoint import (Checkpoint, CheckpointManager, TableReader,
                             latest_checkpoint)
    from .clock import Clock
    from .coordination import CoordinationService
    from .distribute import (CoordinatorMode, WorkerContext, get_current_worker_context,
                             run_distribute_coordinator)
    from .executor import Executor
    from .futures import Future, as_completed, future_of, wait
    from .simulation import Simulation
    from .strategy import ParameterServerStrategy
    from .table import Table, lookup
    from .server import Server, ServerConfig
    from .resolvers import (ClusterResolver, GCEClusterResolver,
                            KubernetesClusterResolver, NamedClusterResolver,
                            SageMakerClusterResolver, SimpleClusterResolver,
                            SlurmClusterResolver, TFConfigClusterResolver,
                            TPUClusterResolver, UnionClusterResolver)

# Imported on first use, since they are large or import large modules.
_LAZY = {
    "Executor": "executor",
    "Future": "futures",
    "Handle": "actors",
    "LocalCluster": "cluster",
    "as_completed": "futures",
    "future_of": "futures",
    "gather": "_scatter",
    "map": "_scatter",
    "progress": "_progress",
    "scatter": "_scatter",
    "wait": "futures",
    "Stream": "actors",
    "actor": "actors",
    "die": "actors",
    "record": "actors",
    "ClusterSpec": "cluster_spec",
    "CoordinationService": "coordination",
    "Checkpoint": "checkpoint",
    "Clock": "clock",
    "CheckpointManager": "checkpoint",
    "latest_checkpoint": "checkpoint",
    "CoordinatorMode": "distribute",
    "WorkerContext": "distribute",
    "get_current_worker_context": "distribute",
    "run_distribute_coordinator": "distribute",
    "ParameterServerStrategy": "strategy",
    "Table": "table",
    "TableReader": "checkpoint",
    "lookup": "table",
    "Server": "server",
    "ServerConfig": "server",
    "Simulation": "simulation",
    "ClusterResolver": "resolvers",
    "GCEClusterResolver": "resolvers",
    "KubernetesClusterResolver": "resolvers",
    "NamedClusterResolver": "resolvers",
    "SageMakerClusterResolver": "resolvers",
    "SimpleClusterResolver": "resolvers",
    "SlurmClusterResolver": "resolvers",
    "TFConfigClusterResolver": "resolvers",
    "TPUClusterResolver": "resolvers",
    "UnionClusterResolver": "resolvers",
}

# Modules that are imported on first use, too; those of other packages need these.
_MODULES = ("actors", "checkpoint", "clock", "cluster", "cluster_spec", "coordination",
            "distribute", "executor", "futures", "initializers", "optimizers",
            "partitioners", "resolvers", "server", "simulation", "strategy", "table")
_OF_OTHERS = ("joblib", "torch_store")

__all__ = [
    "ActorError", "Handle", "Stream", "actor", "die", "record",
    "Checkpoint", "Clock", "ClusterCoordinator", "IndexedSlices", "InputError",
    "LocalCluster", "MusterError",
    "Node", "PerWorkerValues", "RemoteTraceback", "RemoteValue", "Run", "Shard",
    "ShardedDataset", "Table", "TableReader", "Variable", "__version__", "current_run",
    "errors",
    "latest_checkpoint", "lookup", "program", "read_variables", "register",
    "CheckpointManager", "ClusterResolver", "ClusterSpec", "CoordinationService",
    "CoordinatorMode", "GCEClusterResolver", "KubernetesClusterResolver",
    "NamedClusterResolver", "ParameterServerStrategy", "SageMakerClusterResolver",
    "Server", "ServerConfig", "SimpleClusterResolver", "Simulation",
    "SlurmClusterResolver", "TFConfigClusterResolver", "TPUClusterResolver",
    "UnionClusterResolver",
    "WorkerContext", "get_current_worker_context", "run_distribute_coordinator",
    "Executor", "Future", "as_completed", "future_of", "gather", "map", "progress",
    "scatter", "set_unpickle", "wait",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES or name in _OF_OTHERS:
        return importlib.import_module(f".{name}", __name__)
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted(set(globals()) | set(_LAZY) | set(_MODULES))
