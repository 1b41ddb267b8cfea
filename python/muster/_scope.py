"""The default node, on which variables are created: that of the innermost `with`."""

from __future__ import annotations

import threading
from typing import Any, List, Optional

from . import _muster
from ._variable.dtypes import dtype_of

_local = threading.local()
_shared: List[Any] = []     # entered clusters, for all threads
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
    """Make the node of `owner` the default one, for all threads."""
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


def _shards_by(choose: Any, initial: Any, shape: Any, dtype: Any) -> int:
    """The number of shards that choose(dims, dtype) gives a new variable."""
    import numpy as np

    if shape is None:
        dims = list(np.shape(initial)) if initial is not None else []
    else:
        dims = [shape] if isinstance(shape, int) else list(shape)
    kind = dtype if dtype is not None or initial is None else np.asarray(initial).dtype
    return int(choose(dims, dtype_of("float32" if kind is None else kind)))


def shards_of(partitioner: Any, initial: Any, shape: Any, dtype: Any) -> int:
    """The same by a partitioner."""
    from . import partitioners

    return _shards_by(lambda dims, kind: partitioners.shards_of(partitioner, dims, kind),
                      initial, shape, dtype)


def shards_for(initial: Any, shape: Any, dtype: Any) -> int:
    """The number of shards of a new variable, by the partitioner of the innermost
    strategy; 0 without one."""
    with _lock:
        owner = _shared[-1] if _shared else None
    choose = getattr(owner, "_shards_for", None)
    return 0 if choose is None else _shards_by(choose, initial, shape, dtype)
