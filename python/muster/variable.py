"""Variables with TensorFlow's constructor."""

from __future__ import annotations

import itertools
import sys
from typing import Any, Optional

from . import _muster, _scope

_numbers = itertools.count()


class Variable(_muster.BaseVariable):
    """A dense variable on the parameter servers of a cluster.

    initial_value: an array, or a number together with shape; by default zeros.
    name: 1 to 255 bytes; the same name is the same variable on all tasks.
    dtype: one of float16, float32, float64, int8 to int64, uint8 to uint64, and bool
    (which cannot be added to). Only float32 and float64 take gradients.
    shards: parts that it is cut into along its first dimension; 0: by its size.
    existing: wait until another task creates it; recreate: create it anew when servers
    have lost shards of it; same: it is for the content that its servers had when it was
    opened, so that no update computed from that is applied to another: once they have
    lost it, reading and writing raise NotFoundError, also when another node has restored
    the variable or created it anew.
    node: a Node, LocalCluster, ClusterCoordinator or strategy; by default that of the
    innermost `with`, or of the run.
    timeout: seconds to wait for its servers; None: no timeout.

    It may be passed to closures, among their arguments or captured: there it is opened
    on the worker's own node; with same, for the content that it has when the closure
    begins to use it.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        process: Any = sys.modules.get("muster._process")
        if cls is Variable and process is not None and process.serves:
            cls = process.Variable
        return super().__new__(cls)

    def __init__(self, initial_value: Any = None, trainable: Optional[bool] = None,
                 name: Optional[str] = None, dtype: Any = None, shape: Any = None,
                 shards: int = 0, existing: bool = False, recreate: bool = False,
                 node: Any = None, timeout: Optional[float] = None,
                 same: bool = False) -> None:
        owner = _scope.current_node() if node is None else _scope.node_of(node)
        if callable(initial_value):
            initial_value = initial_value()
        if shards == 0 and node is None:
            shards = _scope.shards_for(initial_value, shape, dtype)
        if name is None:
            number = next(_numbers)
            name = "Variable" if number == 0 else f"Variable_{number}"
        super().__init__(owner, name, initial_value, shape, dtype, shards, existing,
                         recreate, same, timeout)
        self.trainable = trainable is None or bool(trainable)


# Kinds of NumPy dtypes: a conversion to a lower number would lose information.
_KINDS = {"b": 0, "i": 0, "u": 0, "f": 1, "c": 2}


def _in_range(array: Any, wanted: Any) -> Any:
    """array.astype(wanted); OverflowError for a number that is not in wanted's range,
    ValueError for one that it has not."""
    import numpy as np

    if np.can_cast(array.dtype, wanted) or array.size == 0:
        return array.astype(wanted)
    if array.dtype.kind in "iuO" and wanted.kind in "iub":
        info = np.iinfo(wanted) if wanted.kind != "b" else None
        low, high = (info.min, info.max) if info is not None else (0, 1)
        for number in (int(array.min()), int(array.max())):
            if not low <= number <= high:
                raise OverflowError(f"{number} is out of range, {low} to {high}")
        if array.dtype.kind != "O":
            return array.astype(wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(wanted)
        if wanted.kind == "f":
            wrong = np.isinf(converted) & ~np.isinf(array.astype(np.longdouble))
        else:
            wrong = array != converted
    if not wrong.any():
        return converted
    number = array[wrong].flat[0]
    if wanted.kind != "f" and (not np.isfinite(number) or number != np.floor(number)):
        raise ValueError(f"{number} is no {wanted}")
    raise OverflowError(f"{number} is out of range")


def _converted(value: Any, dtype: str, name: str, initial: bool = False) -> Any:
    """Convert a value to the array that is written to a variable; an initial value may be
    of another kind. Called by the extension."""
    import numpy as np

    wanted = np.dtype(dtype)
    if type(value) is np.ndarray and value.dtype == wanted:
        return value
    got = "a " + type(value).__qualname__
    try:
        array = np.asarray(value)
        if array.dtype.kind == "f" and wanted == np.uint64 and type(value) is list:
            whole = np.asarray(value, object)   # NumPy has no type for all of these
            if all(isinstance(number, int) for number in whole.flat):
                array = whole
        if array.dtype.kind not in _KINDS and array.dtype.kind != "O":
            raise TypeError("expected numbers")
        if initial or _KINDS.get(array.dtype.kind, 0) <= _KINDS[wanted.kind]:
            return _in_range(array, wanted)
        got = str(array.dtype)
        raise TypeError(f"it is not converted, astype({dtype!r}) would say so")
    except (TypeError, ValueError, OverflowError) as error:
        kind = next(kind for kind in (TypeError, OverflowError, ValueError)
                    if isinstance(error, kind))
        raise kind(f"variable {name!r} is {dtype}, got {got}: {error}") from None
