"""Sending functions to workers, and what Python programs register at their nodes."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _content, _muster, _pickling, _processes, errors

# Bounds of functions that a coordinator keeps on its workers: their number, and bytes of
# their pickles, which may contain captured arrays. The oldest are dropped first.
FUNCTIONS_MAX = 1024
FUNCTION_BYTES_MAX = 64 << 20

_NAME_BYTES = 200


def name_of(function: Any) -> str:
    """The name of a function in errors and logs."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    inner = getattr(function, "func", None)
    if name is None and inner is not None:
        return name_of(inner)
    return str(name if name is not None else type(function).__qualname__)[:_NAME_BYTES]


def _evict(coordinator: "_muster.Coordinator", by_identity: Dict[Any, Any],
           by_hash: Dict[bytes, "_muster.Function"], size: int) -> None:
    """Drop functions until there is room for one of this size."""
    room = FUNCTION_BYTES_MAX - size - sum(entry.size for entry in list(by_hash.values()))
    if len(by_hash) < FUNCTIONS_MAX and len(by_identity) < FUNCTIONS_MAX and room >= 0:
        return
    coordinator._forget_last()
    count = max(len(by_hash), len(by_identity)) - FUNCTIONS_MAX + 1
    if count > 0:
        count = FUNCTIONS_MAX // 4
        for function in list(by_identity)[:count]:
            by_identity.pop(function, None)
    for key in list(by_hash):
        if count <= 0 and room >= 0:
            break
        entry = by_hash.pop(key, None)
        room += 0 if entry is None else entry.size
        count -= 1
    kept = set(map(id, list(by_hash.values())))
    for function, known in list(by_identity.items()):
        if id(known[0]) not in kept:
            by_identity.pop(function, None)


def entry_of(coordinator: "_muster.Coordinator", by_identity: Dict[Any, Any],
             by_hash: Dict[bytes, "_muster.Function"],
             function: Any) -> "_muster.Function":
    """The workers' handle of a function; sends the function unless they have its content.

    A plain function is remembered with what it consists of: code, captured variables,
    globals. Callables of which that is not known are pickled each time, and found by
    content.
    """
    import hashlib  # large, and not needed on workers

    content = None
    if type(function) is types.FunctionType:
        by_identity.pop(function, None)
        content = _content.content_of(function)
    data = _pickling.dumps_function(function)
    key = hashlib.sha256(data).digest()
    entry = by_hash.get(key)
    if entry is not None and entry.is_lost(coordinator):
        by_hash.pop(key, None)
        entry = None
    if entry is None:
        _evict(coordinator, by_identity, by_hash, len(data))
        opened = _muster.open_function(coordinator, data, name_of(function))
        entry = by_hash.setdefault(key, opened)  # unless another thread was faster
    # Unless another thread has changed it in the meantime.
    if content is not None and content.holds():
        if len(by_identity) >= FUNCTIONS_MAX:
            _evict(coordinator, by_identity, by_hash, 0)
        by_identity[function] = (entry, content)
    return entry


def build_args(function: Any, args: Tuple[Any, ...] = (),
               kwargs: Optional[Dict[str, Any]] = None, mode: str = "value") -> List[Any]:
    """The arguments of "python.build"."""
    data = _pickling.dumps_function((function, tuple(args), dict(kwargs or {})))
    return [data, name_of(function), mode]


def per_worker_iterator(value: "_muster.PerWorkerValues",
                        coordinator: "_muster.Coordinator",
                        source: Any) -> "_muster.PerWorkerValues":
    """iter(values): on each worker an iterator over the value there."""
    if not source or source[2] != "value":
        raise TypeError("this per-worker value was not made by a Python function: there "
                        "is no iterator over it")
    args = [source[0], source[1], "iterator"]
    return _muster.PerWorkerValues.open(coordinator, "python.build", args, source=args)


def cluster_json(cluster: Any) -> str:
    """A cluster spec as JSON: text, a dict, or an object with as_dict()."""
    import json

    if isinstance(cluster, str):
        return cluster
    as_dict = getattr(cluster, "as_dict", None)
    if as_dict is not None:
        cluster = as_dict()
    if not isinstance(cluster, dict):
        raise TypeError(f"a cluster is a dict, JSON or a ClusterSpec, got {cluster!r}")
    return json.dumps(cluster)


def place_of(options: Dict[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """Cluster and options for a node without a cluster: from TF_CONFIG, also the task,
    unless the options have it."""
    import os

    text = os.environ.get("TF_CONFIG", "")
    if not text:
        raise errors.InvalidArgumentError(
            "there is no cluster: expected Node(cluster, task_type=...), or TF_CONFIG "
            "with a cluster and a task, or a resolver=")
    cluster, task_type, index, *_ = _muster.parse_tf_config(text)
    if cluster is None:
        raise errors.InvalidArgumentError(
            "TF_CONFIG has no cluster: expected one in it, or Node(cluster, ...)")
    options = dict(options)
    if "task_type" not in options:
        if task_type is None:
            raise errors.InvalidArgumentError(
                "TF_CONFIG has no task: expected one in it, or task_type= and "
                "task_index=")
        options["task_type"] = task_type
    if index is not None and options["task_type"] == task_type:
        options.setdefault("task_index", index)
    return cluster.json(), options


# ---- registration by modules of --python ----

_registered: Dict[str, Callable[..., Any]] = {}
_programs: Dict[str, Callable[["_muster.Node"], Any]] = {}
_nodes: List[Any] = []


def register(name: str, function: Optional[Callable[..., Any]] = None) -> Any:
    """Register a function under a name on the nodes of this process, for closures
    scheduled by that name from Python or C. Also a decorator: ``@register("add")``.

    Nodes that are open and do not serve yet, and those opened later, have it. It gets
    plain values and arrays, results, per-worker values and variables; a program in C
    passes a variable as {"muster.variable": name, "dtype": "float32", "shape": [2, 3]}.
    """
    if function is None:
        return lambda decorated: register(name, decorated)
    _registered[name] = function
    return function


def program(task_type: str, function: Optional[Callable[..., Any]] = None) -> Any:
    """Set the program of a task type: function(node), whose return ends the task. Also a
    decorator: ``@program("chief")``."""
    if function is None:
        return lambda decorated: program(task_type, decorated)
    _programs[task_type] = function
    return function


def node_opened(node: "_muster.Node") -> None:
    """Register functions and programs at a new node."""
    for name, function in _registered.items():
        node.register_function(name, function)
    for task_type, function in _programs.items():
        node.register_program(task_type, function)


def load_module(node: "_muster.Node", module: str) -> Optional[str]:
    """Import a module of --python for a node; returns None, or the error's text."""
    import importlib
    import traceback

    if not module:
        return None
    if "" not in sys.path:
        sys.path.insert(0, "")
    before = set(_registered), set(_programs)
    try:
        imported = importlib.import_module(module)
    except BaseException as error:
        traceback.print_exc()
        return f'the Python module "{module}" cannot be imported: {error!r}'
    try:
        for name in set(_registered) - before[0]:
            node.register_function(name, _registered[name])
        for task_type in set(_programs) - before[1]:
            node.register_program(task_type, _programs[task_type])
        opened = getattr(imported, "muster_open", None)
        if opened is not None:
            opened(node)
    except Exception as error:
        traceback.print_exc()
        return f'the Python module "{module}" cannot be used: {error}'
    _processes.add_module(module)
    return None


def run_program(function: Callable[..., Any], node: "_muster.Node") -> Tuple[int, str]:
    """Run a task's program; returns code and message."""
    import traceback

    try:
        result = function(node)
    except errors.MusterError as error:
        traceback.print_exc()
        return -error.code, str(error)
    except BaseException as error:
        traceback.print_exc()
        return -2, f"{type(error).__name__}: {error}"
    return (result, "") if isinstance(result, int) and result < 0 else (0, "")
