"""Variables with TensorFlow's constructor."""

from __future__ import annotations

import itertools
import sys
import warnings
import weakref
import zlib
from typing import Any, Dict, Optional, Tuple

from . import _muster, _scope
from ._variable.arrays import array_of
from ._variable.calls import Calls
from ._variable.dtypes import dtype_of, kind_of

_numbers = itertools.count()

# By the id of a node: checksums of the initial values that this process gave, by name.
_initial: Dict[int, Tuple[Any, Dict[str, int]]] = {}
_CHECKED_BYTES = 1 << 20    # of an initial value


def _warn_of_another(variable: "Variable", initial: Any) -> None:
    """Warn when this process gave a variable of this name another initial value before,
    which it has then, or what became of it."""
    node = variable.node
    known = _initial.get(id(node))
    if known is None or known[0]() is not node:
        for number, (reference, _) in list(_initial.items()):
            if reference() is None:
                _initial.pop(number, None)
        known = _initial[id(node)] = weakref.ref(node), {}
    array = _converted(initial, str(variable.dtype), variable.name, True)
    checksum = zlib.crc32(array.tobytes() if array.nbytes <= _CHECKED_BYTES else
                          array.reshape(-1)[:_CHECKED_BYTES // array.itemsize].tobytes())
    before = known[1].setdefault(variable.name, checksum)
    if before != checksum:
        warnings.warn(f"variable {variable.name!r} is there already and keeps its "
                      "content: the initial value, which is another one than before, has "
                      "no effect. assign() writes it; another name is another variable",
                      stacklevel=3)


class Variable(_muster.BaseVariable, Calls):
    """A dense variable on the parameter servers of a cluster.

    initial_value: an array, or a number together with shape; by default zeros. Or, with
    shape, one of muster.initializers, which the servers follow.
    name: 1 to 255 bytes; the same name is the same variable on all tasks: made once, a
    second Variable of that name has its content, and a UserWarning says so when it was
    given another initial value than before.
    dtype: one of float16, bfloat16 (with the package ml_dtypes), float32, float64, int8
    to int64, uint8 to uint64, and bool (which cannot be added to). Floats take gradients:
    for those of 16 bits the servers calculate with 32, and keep so what an optimizer
    remembers.
    shards: parts that it is cut into along its first dimension; 0: by its size; or a
    partitioner, one of muster.partitioners or a function of shape and dtype, which
    returns a list of parts as these do.
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
        kind: Any = cls
        process: Any = sys.modules.get("muster._process")
        if cls is Variable and process is not None and process.serves:
            kind = process.Variable
        return super().__new__(kind)

    def __init__(self, initial_value: Any = None, trainable: Optional[bool] = None,
                 name: Optional[str] = None, dtype: Any = None, shape: Any = None,
                 shards: Any = 0, existing: bool = False, recreate: bool = False,
                 node: Any = None, timeout: Optional[float] = None,
                 same: bool = False) -> None:
        owner = _scope.current_node() if node is None else _scope.node_of(node)
        parameters = getattr(initial_value, "_parameters", None)    # an Initializer's
        if parameters is not None:
            if shape is None:
                raise TypeError("with an initializer, a variable has a shape")
            dims = (shape,) if isinstance(shape, int) else tuple(shape)
            parameters, initial_value = parameters(dims), None
        elif callable(initial_value):
            initial_value = initial_value()
        if hasattr(initial_value, "__dlpack__"):
            initial_value = array_of(initial_value)
        if callable(shards):
            shards = _scope.shards_of(shards, initial_value, shape, dtype)
        elif shards == 0 and node is None:
            shards = _scope.shards_for(initial_value, shape, dtype)
        if name is None:
            number = next(_numbers)
            name = "Variable" if number == 0 else f"Variable_{number}"
        super().__init__(owner, name, initial_value, shape, dtype, shards, existing,
                         recreate, same, timeout, parameters)
        if initial_value is not None and not existing and not recreate:
            _warn_of_another(self, initial_value)
        self.trainable = trainable is None or bool(trainable)

    def __dlpack__(self, **options: Any) -> Any:
        """The content, for torch.from_dlpack(variable) and the like."""
        return self.read().__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """The memory of this machine."""
        return 1, 0


# Kinds of NumPy dtypes: a conversion to a lower number would lose information.
_KINDS = {"b": 0, "i": 0, "u": 0, "f": 1, "c": 2}


def _in_range(array: Any, wanted: Any) -> Any:
    """array.astype(wanted); OverflowError for a number that is not in wanted's range,
    ValueError for one that it has not."""
    import numpy as np

    if np.can_cast(array.dtype, wanted) or array.size == 0:
        return array.astype(wanted)
    if kind_of(array.dtype) == "f" and array.dtype.kind != "f":
        array = array.astype(np.float32)    # NumPy compares no bfloat16
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
        if kind_of(wanted) == "f":
            wrong = np.isinf(converted) & ~np.isinf(array.astype(np.longdouble))
        else:
            wrong = array != converted
    if not wrong.any():
        return converted
    number = array[wrong].flat[0]
    if kind_of(wanted) != "f" and (not np.isfinite(number) or number != np.floor(number)):
        raise ValueError(f"{number} is no {wanted}")
    raise OverflowError(f"{number} is out of range")


def _converted(value: Any, dtype: str, name: str, initial: bool = False) -> Any:
    """Convert a value to the array that is written to a variable; an initial value may be
    of another kind. Called by the extension."""
    import numpy as np

    wanted = dtype_of(dtype)
    if type(value) is np.ndarray and value.dtype == wanted:
        return value
    got = "a " + type(value).__qualname__
    try:
        array = array_of(value)
        if array.dtype.kind == "f" and wanted == np.uint64 and type(value) is list:
            whole = np.asarray(value, object)   # NumPy has no type for all of these
            if all(isinstance(number, int) for number in whole.flat):
                array = whole
        kind = kind_of(array.dtype)
        if kind not in _KINDS and kind != "O":
            raise TypeError("expected numbers")
        if initial or _KINDS.get(kind, 0) <= _KINDS[kind_of(wanted)]:
            return _in_range(array, wanted)
        got = str(array.dtype)
        raise TypeError(f"it is not converted, astype({dtype!r}) would say so")
    except (TypeError, ValueError, OverflowError) as error:
        raised = next(kind for kind in (TypeError, OverflowError, ValueError)
                      if isinstance(error, kind))
        raise raised(f"variable {name!r} is {dtype}, got {got}: {error}") from None
