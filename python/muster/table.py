"""Embedding tables on the parameter servers."""

from __future__ import annotations

import collections
import queue
import sys
import threading
from types import TracebackType
from typing import (Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence,
                    Tuple, Type)

from . import _calls, _muster, _scope, initializers, optimizers
from ._variable import bags
from ._variable.arrays import array_of, out_of
from ._variable.dtypes import dtype_of

_EXISTING = 1
_RECREATE = 2
_UNKNOWN_ZEROS = 4

_EVICTIONS = {None: 0, "lru": 1, "lfu": 2}
_DTYPES = {"float32": 0, "float16": 9, "bfloat16": 13}

# Opened for closures, the last used one at the end.
_tables: "collections.OrderedDict[Tuple[Any, ...], Table]" = collections.OrderedDict()
_lock = threading.Lock()
_TABLES_MAX = 64


class TableStats(NamedTuple):
    """rows: that there are. bytes: of the servers' memory, without backups. Since the
    table was made or restored: dropped: gradients of ids that were not admitted; refused:
    parts of pushes in one partition, for a NaN or infinity; expired: rows that were
    removed for their age or by expire(); evicted: rows beyond the capacity."""

    rows: int
    bytes: int
    dropped: int
    refused: int
    expired: int
    evicted: int


class Table(_muster.BaseTable):
    """Rows of `dim` floats, by 64-bit ids, spread over the parameter servers.

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

    dtype: of rows on the servers, "float32", "float16" or "bfloat16"; look-ups give
    float32, unless asked for these. What a push makes of narrow rows is rounded up or
    down by chance, with the right mean; slots have 32 bits.

    Policies, by which all copies of the table decide alike (muster/table.h):
    admit_after: a row is made at this push of its id; until then its gradients are
    dropped. candidates: how many ids are counted for that, 2**20 by default.
    admit_probability: or with this chance at each push.
    unknown: what look-ups give for ids without a row, their "initial" rows or "zeros".
    ttl: rows are removed whose last push is older, by the times that pushes have.
    capacity: rows of the table. eviction: which of more are removed, "lru" or "lfu";
    without it pushes that need more raise ResourceExhaustedError.

    It may be passed to closures: there it is opened on the worker's own node, gradients
    are sent when the function has returned, and count once with effect_once.
    """

    def __init__(self, name: str, dim: int, initializer: Any = "zeros",
                 optimizer: Any = 0.01, seed: int = 0, existing: bool = False,
                 recreate: bool = False, node: Any = None,
                 timeout: Optional[float] = None, *, dtype: Any = "float32",
                 admit_after: int = 1, candidates: int = 0,
                 admit_probability: float = 1.0, unknown: str = "initial", ttl: int = 0,
                 capacity: int = 0, eviction: Optional[str] = None) -> None:
        kind = getattr(dtype, "name", dtype)
        if kind not in _DTYPES:
            raise ValueError(f"dtype {dtype!r}: expected one of {', '.join(_DTYPES)}")
        if eviction not in _EVICTIONS or unknown not in ("initial", "zeros"):
            raise ValueError(f"eviction {eviction!r}, unknown {unknown!r}: expected "
                             "None, 'lru' or 'lfu', and 'initial' or 'zeros'")
        if not admit_probability > 0:
            raise ValueError(f"admit_probability {admit_probability}: expected more than "
                             "0")
        owner = _scope.current_node() if node is None else _scope.node_of(node)
        self.optimizer = optimizers.get(optimizer)
        initializer = initializers.get(initializer)
        super().__init__(owner, name, dim, initializers.rows_of(initializer, dim, seed),
                         self.optimizer,
                         _EXISTING * existing + _RECREATE * recreate +
                         _UNKNOWN_ZEROS * (unknown == "zeros"), timeout,
                         (admit_after, candidates, admit_probability, ttl, capacity,
                          _EVICTIONS[eviction], _DTYPES[kind]))
        self.name = name
        self.dim = dim
        self.node: Any = owner
        self._how = {"name": name, "dim": dim, "initializer": initializer,
                     "optimizer": self.optimizer, "seed": seed, "dtype": kind,
                     "admit_after": admit_after, "candidates": candidates,
                     "admit_probability": admit_probability, "unknown": unknown,
                     "ttl": ttl, "capacity": capacity, "eviction": eviction}

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        kind: Any = cls
        if cls is Table and _calls.is_served():
            kind = sys.modules["muster._process"].Table
        return super().__new__(kind)

    def lookup(self, ids: Any, timeout: Optional[float] = None, out: Any = None, *,
               dtype: Any = None, offsets: Any = None, combiner: str = "mean",
               weights: Any = None) -> Any:
        """The rows of ids, an array of any shape: one more dimension, of `dim`. out: an
        array of that shape, or what shares its memory as one; it is returned then.
        dtype: of the rows, float32, or that of the table, as which they travel; by
        default that of `out`, or float32.

        offsets: where each bag begins among the ids, as for torch's EmbeddingBag: a row
        for each bag, which the servers combine: "sum"; "mean", divided by the sum of the
        weights; "sqrtn", by the square root of the sum of their squares. A bag without
        ids has zeros. weights: one for each id.
        """
        array = ids_of(ids)
        if offsets is not None:
            bags.check_dtype(dtype)
            found = bags.lookup(self, array, offsets, combiner, weights, timeout)
            if out is None:
                return found
            out_of(out, found.shape, "f4")[...] = found
            return out
        rows = self._rows_for(array, dtype, out)
        if array.size > 0:
            self.lookup_into(array, rows, timeout)
        return rows if out is None else out

    def _rows_for(self, ids: Any, dtype: Any, out: Any = None) -> Any:
        """The array that rows are written to."""
        import numpy as np

        shape = (*ids.shape, self.dim)
        if dtype is None and out is None:
            return np.empty(shape, np.float32)
        own = self._how["dtype"]
        if dtype is None:
            dtype = own if np.asarray(out).dtype.name == own else np.float32
        kind = dtype_of(dtype)
        if kind.name not in ("float32", own):
            raise ValueError(f"rows of {own} are not given as {kind}: expected float32" +
                             (f" or {own}" if own != "float32" else ""))
        return np.empty(shape, kind) if out is None else out_of(out, shape, kind)

    def apply_gradients(self, ids: Any, gradients: Any, optimizer: Any = None,
                        timeout: Optional[float] = None, step: Optional[int] = None,
                        time: int = 0, *, offsets: Any = None, combiner: str = "mean",
                        weights: Any = None) -> None:
        """Push a gradient for each id. optimizer: of the table's kind, with other
        numbers; timeout: outside of a worker's function; step: of a schedule, by default
        the number of pushes of this object; time: a step, or seconds, for policies by
        time; 0: one later than the latest; offsets: a gradient for each bag, as lookup()
        has them."""
        if offsets is not None:
            gradients = bags.spread(ids_of(ids), offsets, gradients, combiner, weights)
        rule, gradients = optimizers.of_rows(
            self.optimizer if optimizer is None else optimizer, gradients, step)
        self._push(ids_of(ids), gradients, rule, timeout, time)

    def _apply_rule(self, ids: Any, gradients: Any, rule: Any,
                    timeout: Optional[float]) -> None:
        """An optimizer's; rows count their steps themselves."""
        self._push(ids_of(ids), gradients, dict(rule, step=0), timeout)

    def delete(self, ids: Any, timeout: Optional[float] = None) -> None:
        """Delete rows: their ids are as if never pushed to."""
        self._push(ids_of(ids), None, None, timeout)

    def expire(self, before: int, timeout: Optional[float] = None) -> None:
        """Remove rows whose last push was before a time, with eviction "lfu" and no ttl
        those with fewer pushes."""
        super().expire(before, timeout)

    def insert(self, ids: Any, rows: Any, timeout: Optional[float] = None) -> None:
        """Set the rows of ids; of an id that is there several times the last one counts.
        What the optimizer keeps of a row stays as it is. timeout: as for
        apply_gradients()."""
        numbers = ids_of(ids)
        if numbers.size > 0:
            self.set_rows(numbers, rows, _muster.find_run(), timeout)

    def stats(self, timeout: Optional[float] = None) -> TableStats:
        """How many rows there are, their memory, and what became of others."""
        return TableStats(*self.get_stats(timeout))

    def __len__(self) -> int:
        return self.stats().rows

    def __bool__(self) -> bool:
        return True

    def export(self, timeout: Optional[float] = None) -> Iterator[Tuple[Any, Any]]:
        """All rows, piece by piece: (ids, rows), arrays of uint64 and float32. Each part
        of the table is as it was after one of its writes, while training goes on. A row
        may come again, when a server was lost meanwhile: the last time counts."""
        return _exported(self, timeout)

    def _push(self, ids: Any, gradients: Any, optimizer: Any,
              timeout: Optional[float], time: int = 0,
              tell: Optional[Callable[[Any], None]] = None) -> bool:
        """False: there are no ids. tell: as that of apply()."""
        if time < 0:
            raise ValueError(f"time {time}: expected at least 0")
        if ids.size > 0:
            self.apply(ids, gradients, optimizer, _muster.find_run(), timeout, time, tell)
        return bool(ids.size > 0)

    def lookup_async(self, ids: Any, timeout: Optional[float] = None, *,
                     dtype: Any = None, offsets: Any = None, combiner: str = "mean",
                     weights: Any = None) -> _calls.CallFuture:
        """Like lookup(), without waiting, and without a thread for it: a future, which
        can also be awaited. WouldBlockError: 65,536 calls of this table are under way, or
        they hold 256 MiB of ids and gradients: wait for some of them."""
        if _calls.is_served():
            return _calls.at_once(self.lookup, ids, timeout, dtype=dtype, offsets=offsets,
                                  combiner=combiner, weights=weights)
        array = ids_of(ids)
        future = _calls.CallFuture()
        if offsets is not None:
            bags.check_dtype(dtype)
            bags.lookup(self, array, offsets, combiner, weights, timeout, future)
            return future
        rows = future._value = self._rows_for(array, dtype)
        if array.size > 0:
            self.lookup_into(array, rows, timeout, future._end)
        else:
            future._end(None)
        return future

    def apply_gradients_async(self, ids: Any, gradients: Any, optimizer: Any = None,
                              timeout: Optional[float] = None,
                              step: Optional[int] = None, time: int = 0, *,
                              offsets: Any = None, combiner: str = "mean",
                              weights: Any = None) -> _calls.CallFuture:
        """Like apply_gradients(), without waiting, as lookup_async(); gradients are
        copied. A push whose future is cancelled may be applied all the same. In a
        worker's function it is done when this returns: the push is sent when the function
        has returned."""
        if _calls.is_served() or _muster.find_run() is not None:
            return _calls.at_once(self.apply_gradients, ids, gradients, optimizer,
                                  timeout, step, time, offsets=offsets,
                                  combiner=combiner, weights=weights)
        if offsets is not None:
            gradients = bags.spread(ids_of(ids), offsets, gradients, combiner, weights)
        rule, gradients = optimizers.of_rows(
            self.optimizer if optimizer is None else optimizer, gradients, step)
        future = _calls.CallFuture()
        if not self._push(ids_of(ids), gradients, rule, timeout, time, future._end):
            future._end(None)
        return future

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


def _exported(table: Table, timeout: Optional[float]) -> Iterator[Tuple[Any, Any]]:
    """The rows that another thread reads, which is a few pieces ahead at most."""
    import numpy as np

    pieces: "queue.Queue[Any]" = queue.Queue(2)
    is_wanted = True

    def take(ids: bytes, rows: bytes) -> bool:
        pieces.put((np.frombuffer(ids, np.uint64),
                    np.frombuffer(rows, np.float32).reshape(-1, table.dim)))
        return is_wanted

    def read() -> None:
        try:
            table.export_to(take, timeout)
            pieces.put(None)
        except BaseException as error:
            pieces.put(error)

    reader = threading.Thread(target=read, name="muster export", daemon=True)
    reader.start()
    piece: Any = ()
    try:
        while (piece := pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        is_wanted = False
        while isinstance(piece, tuple):
            piece = pieces.get()
        reader.join()


def lookup(lookups: Sequence[Tuple[Table, Any]], timeout: Optional[float] = None
           ) -> List[Any]:
    """Rows of several tables at once, of (table, ids): as Table.lookup() has them."""
    return bags.lookup_several(lookups, timeout, ids_of)


def ids_of(ids: Any) -> Any:
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
