"""The coordinator of a node; a node has one."""

from __future__ import annotations

import os
import threading
from typing import Any, Dict

from . import _muster, _scope, errors
from .coordinator import ClusterCoordinator, known_of

_lock = threading.RLock()
_opened_here: Dict[int, ClusterCoordinator] = {}


def forget_closed() -> None:
    """Drop the coordinators whose nodes were closed."""
    with _lock:
        for number, coordinator in list(_opened_here.items()):
            node = coordinator.node
            if node is None or node.closed or not coordinator._is_open():
                del _opened_here[number]


def forget(node: "_muster.Node") -> None:
    """Drop the coordinator that was opened here for a node."""
    with _lock:
        _opened_here.pop(id(node), None)


def coordinator_of(owner: Any) -> ClusterCoordinator:
    """The coordinator of a ClusterCoordinator, LocalCluster, Node or strategy. If it is
    opened here, it stays open until the node is closed, since others may use it."""
    if isinstance(owner, ClusterCoordinator):
        return owner
    node = _scope.node_of(owner)
    with _lock:
        forget_closed()
        known = known_of(node)
        if known is None or not known._is_open():
            known = _opened_here[id(node)] = ClusterCoordinator(node)
        return known


def capacity_of(coordinator: ClusterCoordinator, owner: Any) -> int:
    """How many functions the cluster can run at a time, as far as that is known."""
    threads = max(1, int(getattr(owner, "_threads", 1)))
    spec = getattr(owner, "cluster_spec", None)
    if isinstance(spec, dict) and spec.get("worker"):
        return len(spec["worker"]) * threads
    try:
        tasks = coordinator.node.status(5.0).get("tasks", ())
        workers = sum(task.get("type") == "worker" for task in tasks)
    except errors.MusterError:
        workers = 0
    return workers or os.cpu_count() or 1
