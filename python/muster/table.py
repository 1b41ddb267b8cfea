"""Embedding tables on the parameter servers."""

from __future__ import annotations

import collections
import sys
import threading
from types import TracebackType
from typing import Any, Dict, Optional, Tuple, Type

from . import _calls, _muster, _scope, initializers, optimizers
from ._variable.arrays import array_of, out_of
from .errors import FailedPreconditionError

_EXISTING = 1
_RECREATE = 2

# Opened for closures, the last used one at the end.
_tables: "collections.OrderedDict[Tuple[Any, ...], Table]" = collections.OrderedDict()
_lock = threading.Lock()
_TABLES_MAX = 64


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

    initializer: of muster.initializers, or what get() there takes: a name, ("uniform",
    -1, 1), a number, an object of Keras'. seed: for an initializer without one; all that
    open the table have the same.
    optimizer: of muster.optimizers, or what get() there takes: a name, a rate, an object
    of Keras'. All that push use its kind; with a schedule, each push has the rate of its
    step. Its clipping is of all gradients of a push.
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
        self.optimizer = optimizers.get(optimizer)
        initializer = initializers.get(initializer)
        super().__init__(owner, name, dim, initializers.rows_of(initializer, dim, seed),
                         self.optimizer, _EXISTING * existing + _RECREATE * recreate,
                         timeout)
        self.name = name
        self.dim = dim
        self.node: Any = owner
        self._how = {"name": name, "dim": dim, "initializer": initializer,
                     "optimizer": self.optimizer, "seed": seed}

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        kind: Any = cls
        process: Any = sys.modules.get("muster._process")
        if cls is Table and process is not None and process.serves:
            kind = process.Table
        return super().__new__(kind)

    def lookup(self, ids: Any, timeout: Optional[float] = None, out: Any = None) -> Any:
        """The rows of ids, an array of any shape: one more dimension, of `dim`. out: an
        array of that shape, or what shares its memory as one; it is returned then."""
        import numpy as np

        array = _ids_of(ids)
        shape = (*array.shape, self.dim)
        rows = np.empty(shape, np.float32) if out is None else out_of(out, shape, "f4")
        if array.size > 0:
            self.lookup_into(array, rows, timeout)
        return rows if out is None else out

    def apply_gradients(self, ids: Any, gradients: Any, optimizer: Any = None,
                        timeout: Optional[float] = None,
                        step: Optional[int] = None) -> None:
        """Push a gradient for each id. optimizer: of the table's kind, with other
        numbers; timeout: outside of a worker's function; step: of a schedule, by default
        the number of pushes of this object."""
        rule, gradients = optimizers.of_rows(
            self.optimizer if optimizer is None else optimizer, gradients, step)
        self._push(_ids_of(ids), gradients, rule, timeout)

    def _apply_rule(self, ids: Any, gradients: Any, rule: Any,
                    timeout: Optional[float]) -> None:
        """An optimizer's; rows count their steps themselves."""
        self._push(_ids_of(ids), gradients, dict(rule, step=0), timeout)

    def delete(self, ids: Any, timeout: Optional[float] = None) -> None:
        """Delete rows: their ids are as if never pushed to."""
        self._push(_ids_of(ids), None, None, timeout)

    def _push(self, ids: Any, gradients: Any, optimizer: Any,
              timeout: Optional[float]) -> None:
        if ids.size > 0:
            self.apply(ids, gradients, optimizer, _current_run(), timeout)

    def lookup_async(self, ids: Any, timeout: Optional[float] = None
                     ) -> _calls.CallFuture:
        """Like lookup(), without waiting: a future, which can also be awaited."""
        return _calls.start(self.lookup, ids, timeout)

    def apply_gradients_async(self, ids: Any, gradients: Any, optimizer: Any = None,
                              timeout: Optional[float] = None,
                              step: Optional[int] = None) -> _calls.CallFuture:
        """Like apply_gradients(), without waiting. In a worker's function it is done when
        this returns: the push is sent when the function has returned."""
        start = _calls.start if _current_run() is None else _calls.at_once
        return start(self.apply_gradients, ids, gradients, optimizer, timeout, step)

    def __reduce__(self) -> Any:
        return _open_in_run, (self._how,)

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<muster.Table {self.name!r} dim={self.dim}>"


def _ids_of(ids: Any) -> Any:
    """64-bit ids; those below 0 are large ones."""
    import numpy as np

    array = array_of(ids)
    if array.size == 0:
        array = array.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids are integers, not {array.dtype}")
    return np.ascontiguousarray(array.astype(np.int64, copy=False).view(np.uint64)
                                if array.dtype.kind == "i" else
                                array.astype(np.uint64, copy=False))


def _open_in_run(how: Dict[str, Any]) -> Table:
    """Unpickle a table: open it on the node that is current, and keep it for later."""
    process: Any = sys.modules.get("muster._process")
    if process is not None and process.serves:
        known: Table = process.Table.known(how)
        return known
    node = _scope.current_node()
    numbers = {key: value for key, value in vars(how["optimizer"]).items()
               if key != "iterations"}
    key = (id(node), repr({**how, "optimizer": numbers}))
    with _lock:
        for other in [key for key, at in _tables.items() if at.node.closed]:
            _tables.pop(other)
        if key in _tables:
            _tables.move_to_end(key)
            return _tables[key]
    opened = Table(**how, existing=True, node=node, timeout=60.0)
    with _lock:
        _tables[key] = opened
        if len(_tables) > _TABLES_MAX:
            _tables.popitem(last=False)
    return opened
