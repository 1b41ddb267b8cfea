"""Rows of bags of ids, and of several tables at once."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from .. import _muster
from .dtypes import dtype_of

_COMBINERS = {"sum": 0, "mean": 1, "sqrtn": 2}


def check_dtype(dtype: Any) -> None:
    if dtype is not None and dtype_of(dtype).name != "float32":
        raise ValueError("rows of bags are float32")


def _combiner_of(combiner: str) -> int:
    if combiner not in _COMBINERS:
        raise ValueError(f"combiner {combiner!r}: expected one of "
                         f"{', '.join(_COMBINERS)}")
    return _COMBINERS[combiner]


def _offsets_of(offsets: Any, ids: Any) -> Any:
    import numpy as np

    array = np.asarray(offsets)
    if array.size == 0:
        array = array.astype(np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError("offsets are integers in one dimension")
    if ids.ndim != 1:
        raise ValueError("ids of bags have one dimension")
    if (np.diff(array.astype(np.int64), append=ids.size) < 0).any():
        raise ValueError("offsets rise, up to the number of ids")
    return np.ascontiguousarray(array.astype(np.uint64))


def _weights_of(weights: Any, ids: Any) -> Any:
    import numpy as np

    if weights is None:
        return None
    array = np.ascontiguousarray(weights, np.float32)
    if array.shape != ids.shape:
        raise ValueError(f"weights of shape {array.shape} for ids of {ids.shape}")
    return array


def lookup(table: Any, ids: Any, offsets: Any, combiner: str, weights: Any,
           timeout: Optional[float], future: Any = None) -> Any:
    """The rows; or, with a future, which gets them, without waiting."""
    import numpy as np

    starts = _offsets_of(offsets, ids)
    rows = np.empty((starts.size, table.dim), np.float32)
    if future is not None:
        future._value = rows
    if starts.size > 0 or ids.size > 0:
        table.lookup_bags_into(ids, starts, _weights_of(weights, ids),
                               _combiner_of(combiner), rows, timeout,
                               None if future is None else future._end)
    elif future is not None:
        future._end(None)
    return rows


def spread(ids: Any, offsets: Any, gradients: Any, combiner: str, weights: Any) -> Any:
    """The gradients of ids, of those of their bags."""
    import numpy as np

    kind = _combiner_of(combiner)
    starts = _offsets_of(offsets, ids).astype(np.int64)
    counts = np.diff(starts, append=ids.size)
    bag_of = np.repeat(np.arange(starts.size), counts)
    factors = _weights_of(weights, ids)
    if factors is None:
        factors = np.ones(ids.size, np.float32)
    if kind != 0:
        sums = np.bincount(bag_of, factors.astype(np.float64) ** kind, starts.size)
        sums = np.sqrt(sums) if kind == 2 else sums
        scales = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
        factors = factors * scales[bag_of].astype(np.float32)
    return np.asarray(gradients, np.float32)[bag_of] * factors[:, None]


def lookup_several(lookups: Sequence[Tuple[Any, Any]], timeout: Optional[float],
                   ids_of: Any) -> List[Any]:
    import numpy as np

    arrays = [ids_of(ids) for _, ids in lookups]
    rows = [np.empty((*array.shape, table.dim), np.float32)
            for (table, _), array in zip(lookups, arrays)]
    _muster.BaseTable.lookup_several(
        [(table, array, to) for (table, _), array, to in zip(lookups, arrays, rows)],
        _muster.BaseTable, timeout)
    return rows
