"""Embedding tables on the parameter servers."""

from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

from . import _muster, _scope
from ._variable import bags
from .errors import FailedPreconditionError

_EXISTING = 1
_RECREATE = 2

# Initializers by name, with the defaults of Keras 3.
_KINDS: Dict[str, Tuple[int, float, float]] = {
    "zeros": (0, 0.0, 0.0), "ones": (1, 1.0, 0.0), "constant": (1, 0.0, 0.0),
    "uniform": (2, -0.05, 0.05), "random_uniform": (2, -0.05, 0.05),
    "normal": (3, 0.0, 0.05), "random_normal": (3, 0.0, 0.05),
}

# Where the numbers of an initializer object of Keras stand.
_NUMBERS = {"constant": ("value", None), "uniform": ("minval", "maxval"),
            "random_uniform": ("minval", "maxval"), "normal": ("mean", "stddev"),
            "random_normal": ("mean", "stddev"), "randomuniform": ("minval", "maxval"),
            "randomnormal": ("mean", "stddev")}

_tables: Dict[Tuple[int, str], Tuple[Any, "Table"]] = {}    # opened for closures
_lock = threading.Lock()


def _initializer_of(initializer: Any) -> Tuple[int, float, float]:
    """("uniform", -1, 1), "zeros", 0.5, or an object with Keras' attributes."""
    if isinstance(initializer, (int, float)):
        return (1, float(initializer), 0.0)
    name, numbers = initializer, ()
    if isinstance(initializer, tuple):
        name, numbers = initializer[0], initializer[1:]
    if not isinstance(name, str):
        name = type(initializer).__name__.lower()
        numbers = tuple(getattr(initializer, number)
                        for number in _NUMBERS.get(name, ()) if number is not None)
        name = name.replace("random", "")
    if name not in _KINDS or len(numbers) > 2:
        raise ValueError(f"initializer {initializer!r}: expected one of "
                         f"{', '.join(_KINDS)}, such a name with its numbers, or a "
                         "number")
    kind, first, second = _KINDS[name]
    first, second = (*map(float, numbers), first, second)[:2] if len(numbers) == 2 else \
        (float(numbers[0]) if numbers else first, second)
    return (kind, first, second)


def _current_run() -> Any:
    try:
        return _muster.current_run()
    except FailedPreconditionError:
        return None


class Table(_muster.BaseTable):
    """Rows of `dim` 32-bit floats, by 64-bit ids, spread over the parameter servers.

        emb = muster.Table("emb", dim=8, initializer="uniform",
                           optimizer=muster.optimizers.Adagrad(learning_rate=0.1))
        rows = emb.lookup(ids)
        emb.apply_gradients(ids, gradients)

    A look-up makes no row: an id that was never pushed to has its initial row, which
    follows from the seed, the table's name, the id and the column. The first gradient
    makes the row, and the slots of the optimizer. Gradients of one id in a call are
    summed, then the optimizer's rule is applied once; each row has its own step.

    initializer: "zeros", "ones", "uniform", "normal", ("uniform", low, high),
    ("normal", mean, stddev), a number, or an object with the attributes of Keras'.
    optimizer: of muster.optimizers, or a rate; all that push use its kind.
    existing: raise NotFoundError if there is none; recreate: parts whose servers have
    lost them begin anew, without it DataLossError.
    node: a Node, LocalCluster, ClusterCoordinator or strategy; by default that of the
    innermost `with`, or of the run. timeout: seconds; None: no timeout.

    It may be passed to closures: there it is opened on the worker's own node, gradients
    are sent when the function has returned, and count once with effect_once.
    """

    def __init__(self, name: str, dim: int, initializer: Any = "zeros",
                 optimizer: Any = 0.01, seed: int = 0, existing: bool = False,
                 recreate: bool = False, node: Any = None,
                 timeout: Optional[float] = None) -> None:
        owner = _scope.current_node() if node is None else _scope.node_of(node)
        super().__init__(owner, name, dim, _initializer_of(initializer), seed, optimizer,
                         _EXISTING * existing + _RECREATE * recreate, timeout)
        self.name = name
        self.dim = dim
        self._how = (name, dim, initializer, optimizer, seed)

    def lookup(self, ids: Any, timeout: Optional[float] = None, *, offsets: Any = None,
               combiner: str = "mean", weights: Any = None) -> Any:
        """The rows of ids, an array of any shape: one more dimension, of `dim`.

        offsets: where each bag begins among the ids, as for torch's EmbeddingBag: a row
        for each bag, which the servers combine: "sum"; "mean", divided by the sum of the
        weights; "sqrtn", by the square root of the sum of their squares. A bag without
        ids has zeros. weights: one for each id.
        """
        import numpy as np

        array = _ids_of(ids)
        if offsets is not None:
            return bags.lookup(self, array, offsets, combiner, weights, timeout)
        rows = np.empty((*array.shape, self.dim), np.float32)
        if array.size > 0:
            self.lookup_into(array, rows, timeout)
        return rows

    def apply_gradients(self, ids: Any, gradients: Any, optimizer: Any = None,
                        timeout: Optional[float] = None, *, offsets: Any = None,
                        combiner: str = "mean", weights: Any = None) -> None:
        """Push a gradient for each id. optimizer: of the table's kind, with other
        numbers; timeout: outside of a worker's function; offsets: a gradient for each
        bag, as lookup() has them."""
        if offsets is not None:
            gradients = bags.spread(_ids_of(ids), offsets, gradients, combiner,
                                    weights)
        self._push(_ids_of(ids), gradients, optimizer, timeout)

    def delete(self, ids: Any, timeout: Optional[float] = None) -> None:
        """Delete rows: their ids are as if never pushed to."""
        self._push(_ids_of(ids), None, None, timeout)

    def _push(self, ids: Any, gradients: Any, optimizer: Any,
              timeout: Optional[float]) -> None:
        if ids.size > 0:
            self.apply(ids, gradients, optimizer, _current_run(), timeout)

    def __reduce__(self) -> Any:
        return _open_in_run, self._how

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<muster.Table {self.name!r} dim={self.dim}>"


def lookup(lookups: Sequence[Tuple[Table, Any]], timeout: Optional[float] = None
           ) -> List[Any]:
    """Rows of several tables at once, of (table, ids): as Table.lookup() has them."""
    return bags.lookup_several(lookups, timeout, _ids_of)


def _ids_of(ids: Any) -> Any:
    """64-bit ids; those below 0 are large ones."""
    import numpy as np

    array = np.asarray(ids)
    if array.size == 0:
        array = array.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids are integers, not {array.dtype}")
    return np.ascontiguousarray(array.astype(np.int64, copy=False).view(np.uint64)
                                if array.dtype.kind == "i" else
                                array.astype(np.uint64, copy=False))


def _open_in_run(name: str, dim: int, initializer: Any, optimizer: Any,
                 seed: int) -> Table:
    """Unpickle a table: open it on the node that is current, and keep it for later."""
    node = _scope.current_node()
    with _lock:
        for key, (reference, _) in list(_tables.items()):
            if reference() is None:
                _tables.pop(key)
        known = _tables.get((id(node), name))
        if known is not None and known[1].dim == dim:
            return known[1]
    opened = Table(name, dim, initializer, optimizer, seed, existing=True, node=node,
                   timeout=60.0)
    with _lock:
        _tables[id(node), name] = weakref.ref(node), opened
    return opened
