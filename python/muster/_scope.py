"""Which node variables are made on when nobody says: that of the innermost `with`."""

from __future__ import annotations

import threading
from typing import Any, List, Optional

from . import _muster

_local = threading.local()
_shared: List[Any] = []     # what every thread sees: clusters that were entered
_lock = threading.Lock()


def node_of(owner: Any) -> "_muster.Node":
    """The node of a Node, LocalCluster, ClusterCoordinator or strategy."""
    if isinstance(owner, _muster.Node):
        return owner
    node = getattr(owner, "node", None)
    if isinstance(node, _muster.Node):
        return node
    raise TypeError("expected a Node, a LocalCluster, a ClusterCoordinator or a "
                    f"strategy with a node, got {owner!r}")


def push(owner: Any) -> None:
    """Make an owner of a node the current one, for all threads."""
    with _lock:
        _shared.append(owner)


def pop(owner: Any) -> None:
    """Undo push()."""
    with _lock:
        if owner in _shared:
            _shared.remove(owner)


def current_node() -> "_muster.Node":
    """The node of this thread's run, or of the innermost cluster or strategy."""
    try:
        return _muster.current_run().node
    except Exception:
        pass
    with _lock:
        owner: Optional[Any] = _shared[-1] if _shared else None
    if owner is None:
        raise RuntimeError("there is no cluster: use `with LocalCluster(...)`, `with "
                           "strategy.scope()`, or say which one: node=")
    return node_of(owner)
