"""The coordinator of a node, of which there is one."""

from __future__ import annotations

import os
import threading
from typing import Any, Tuple

from . import _scope, errors
from .coordinator import ClusterCoordinator, _known

_lock = threading.RLock()


def _is_open(coordinator: ClusterCoordinator) -> bool:
    try:
        coordinator.counts()
    except errors.ClosedError:
        return False
    return True


def coordinator_of(owner: Any) -> Tuple[ClusterCoordinator, bool]:
    """The coordinator of a ClusterCoordinator, LocalCluster, Node or strategy; opened when
    there is none. Whether that was so."""
    if isinstance(owner, ClusterCoordinator):
        return owner, False
    node = _scope.node_of(owner)
    with _lock:
        known = _known.get(id(node))
        if known is not None and _is_open(known):
            return known, False
        return ClusterCoordinator(owner), True


def capacity_of(coordinator: ClusterCoordinator, owner: Any) -> int:
    """How many functions the cluster runs at a time, as far as that is known."""
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
