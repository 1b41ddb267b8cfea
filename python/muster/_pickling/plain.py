"""Which pickles of other tasks are loaded here: of results and exceptions.

A pickle can name any function and have it called. "plain" loads those that name nothing
but data: arrays, containers, builtin exceptions, and the classes that the program allows.
What a pickle names is looked up here before it is imported, and each call and each state
that it sets is checked, as NumPy's own functions for pickles trust their arguments.
"""

from __future__ import annotations

import builtins
import io
import math
import os
import pickle
import re
import sys
import types
from typing import Any, Dict, FrozenSet, Iterable, NoReturn, Optional, Sequence, Tuple

__all__ = ["set_unpickle"]


class _Allowed:
    """What the program allows: names, and modules with all classes defined in them."""

    def __init__(self, allow: Iterable[Any]) -> None:
        names = [item if isinstance(item, str) else f"{item.__module__}."
                 f"{item.__qualname__}" for item in allow]
        for name in names:
            if not re.fullmatch(r"\w+(\.\w+)*\.(\w+|\*)", name):
                raise ValueError(f'cannot allow {name!r}: expected "module.Class", or '
                                 '"module.*" for all classes of a module or package')
        self.names = frozenset(name for name in names if name[-1] != "*")
        self.modules = tuple(name[:-1] for name in names if name[-1] == "*")

    def has_module(self, module: str) -> bool:
        """Whether all classes that a module defines are allowed."""
        return (module + ".").startswith(self.modules)


_allowed: Optional[_Allowed] = None     # None: everything


def set_unpickle(mode: str, allow: Iterable[Any] = ()) -> None:
    """Which results and exceptions of other tasks this process unpickles from now on.

    mode: "any", the default: all, so a task can run code in this process. "plain": only
    numbers, text, bytes, containers, dates, decimals, NumPy arrays and builtin
    exceptions, and what `allow` names; fetch() of anything else raises UnpicklingError,
    which says what to allow.
    allow: classes, or their names as "module.Class"; "package.*" for all classes that a
    package defines. A class that is allowed may be made with any arguments and state. A
    function is allowed by its whole name only.

    MUSTER_UNPICKLE and MUSTER_UNPICKLE_ALLOW (names, separated by commas) say the same.
    """
    global _allowed
    if mode not in ("any", "plain"):
        raise ValueError(f'unpickle is {mode!r}, expected "any" or "plain"')
    listed = [allow] if isinstance(allow, str) else list(allow)
    if mode == "any" and listed:
        raise ValueError('with "any" nothing is left to be allowed')
    _allowed = _Allowed(listed) if mode == "plain" else None


def _from_environment() -> None:
    listed = os.environ.get("MUSTER_UNPICKLE_ALLOW", "")
    allow = [name.strip() for name in listed.split(",") if name.strip()]
    mode = os.environ.get("MUSTER_UNPICKLE") or ("plain" if allow else "any")
    try:
        set_unpickle(mode, allow)
    except ValueError as error:
        raise ValueError(f"MUSTER_UNPICKLE, MUSTER_UNPICKLE_ALLOW: {error}") from None


_from_environment()


def is_plain() -> bool:
    """Whether only plain data is unpickled."""
    return _allowed is not None


# ---- names ----

def _named(module: str, names: str) -> FrozenSet[str]:
    return frozenset(f"{module}.{name}" for name in names.split())


_PLAIN = frozenset().union(
    _named("builtins", "bool bytearray bytes complex dict float frozenset int list "
           "object range set slice str tuple Ellipsis NotImplemented"),
    _named("collections", "Counter OrderedDict defaultdict deque"),
    _named("datetime", "date datetime time timedelta timezone"),
    _named("decimal", "Decimal"), _named("types", "SimpleNamespace"),
    _named("uuid", "UUID SafeUUID"),
    _named("numpy", "dtype ndarray bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 "
           "uint64 float16 float32 float64 longdouble complex64 complex128 clongdouble"),
    _named("numpy._core.multiarray", "_reconstruct"),
    _named("numpy._core.numeric", "_frombuffer"),
    _named("concurrent.futures._base", "BrokenExecutor CancelledError Error "
           "InvalidStateError TimeoutError"),
    _named("muster._worker", "Shard _failed_again"),
    _named("muster.errors", "_of_class _rebuild _revive_named revive"),
    _named("muster.executor", "BrokenClusterExecutor _InitializerFailed"))

def _refuse(what: str) -> NoReturn:
    raise pickle.UnpicklingError(f"{what}; this process unpickles plain data alone "
                                 "(muster.set_unpickle, MUSTER_UNPICKLE)")


def _refuse_name(name: str) -> NoReturn:
    name = ascii(name)[1:-1][:200]
    if name.startswith(("cloudpickle.", "muster._pickling.")):
        _refuse("a class or function that was sent by content is refused: it belongs "
                "into a module that can be imported on both sides")
    raise pickle.UnpicklingError(
        f"{name} is not among what this process unpickles from other tasks (unpickle is "
        f'"plain"); to allow it: muster.set_unpickle("plain", allow=["{name}"]), or '
        f"MUSTER_UNPICKLE_ALLOW={name}")


def _is_exception(module: str, name: str) -> bool:
    """Whether it is one of Python's own exceptions, or of muster's."""
    space = builtins if module == "builtins" else \
        sys.modules.get(module) if module == "muster.errors" else None
    found = getattr(space, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


# ---- NumPy ----

_UNITS = "generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as"


def _dtype(text: Any, align: Any = False, copy: Any = True) -> Any:
    """numpy.dtype() with the arguments that a pickle has."""
    import numpy as np

    if not isinstance(text, str) or not re.fullmatch(r"[?a-zA-Z]\d{0,9}", text):
        _refuse("a dtype of this kind is refused")
    return np.dtype(text)


def _dtype_with(made: Any, state: Any) -> Any:
    """The dtype of a state, made by NumPy's checked constructors."""
    import numpy as np

    _, order, sub, names, fields, size, _, flags = state[:8]
    if sub is not None:
        return np.dtype((_of(np.dtype, sub[0]), sub[1]))
    if names is not None:
        parts = [fields[name] for name in names]
        if any(len(part) != 2 for part in parts):
            _refuse("a dtype with titles is refused")
        return np.dtype({"names": list(names), "itemsize": size,
                         "formats": [_of(np.dtype, part[0]) for part in parts],
                         "offsets": [part[1] for part in parts]},
                        align=bool(flags & 0x80))
    if made.kind in "mM":
        unit, count, divisor = state[8][1][:3]
        unit = unit.decode("ascii")
        if not re.fullmatch(_UNITS, unit) or divisor != 1:
            _refuse("a dtype of this unit is refused")
        if unit != "generic":
            made = np.dtype(f"{made.kind}8[{int(count)}{unit}]")
    return made.newbyteorder(_of(str, order))


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        _refuse(f"{type(value).__name__} is refused where {kind.__name__} is expected")
    return value


def _scalar(dtype: Any, data: Any = b"") -> Any:
    """A scalar of NumPy: of an array of one, since NumPy's own function trusts it."""
    import numpy as np

    if _of(np.dtype, dtype).hasobject:
        _refuse("a scalar with objects is refused")
    if dtype.itemsize == 0:
        return np.zeros((), dtype)[()]
    return np.frombuffer(_of(bytes, data), dtype, 1)[0]


def _check_array(array: Any, state: Any) -> None:
    """Check what an array that a pickle has just made is to be set to."""
    import numpy as np

    _, shape, dtype, _, data = state
    if array.shape != (0,) or type(shape) is not tuple or \
            not all(type(length) is int and length >= 0 for length in shape):
        _refuse("an array with this state is refused")
    objects = _of(np.dtype, dtype).hasobject
    if len(_of(list if objects else bytes, data)) != \
            math.prod(shape) * (1 if objects else dtype.itemsize):
        _refuse("an array with more or fewer items than its shape is refused")


# ---- loading ----

_Python: Any = getattr(pickle, "_Unpickler")


class _Unpickler(_Python):  # type: ignore[misc]
    """Python's own one in Python, with checks of each name, call and state."""

    dispatch = {code: load for code, load in _Python.dispatch.items()
                if bytes([code]) not in (pickle.PERSID, pickle.BINPERSID, pickle.INST,
                                         pickle.OBJ, pickle.EXT1, pickle.EXT2,
                                         pickle.EXT4)}

    def __init__(self, data: Any, buffers: Sequence[Any], allowed: _Allowed) -> None:
        super().__init__(io.BytesIO(data), fix_imports=False, buffers=buffers)
        self._allowed = allowed
        self._found: Dict[int, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        found = self._find(module, name)
        self._found[id(found)] = found
        return found

    def _find(self, module: str, name: str) -> Any:
        full = f"{module}.{name}".replace("numpy.core.", "numpy._core.", 1)
        if full == "numpy._core.multiarray.scalar":
            return _scalar
        if full in _PLAIN or _is_exception(module, name):
            if module.startswith("numpy."):
                from .. import _pickling

                module = _pickling.numpy_core(module)
            return super().find_class(module, name)
        if full in self._allowed.names:
            return super().find_class(module, name)
        if self._allowed.has_module(module):
            found = super().find_class(module, name)
            # Not what the module has imported, which may be anything.
            if isinstance(found, type) and \
                    (found.__module__, found.__qualname__) == (module, name):
                return found
        return _refuse_name(full)

    def _check_call(self, function: Any) -> None:
        if id(function) not in self._found:
            _refuse(f"a call of a {type(function).__name__} is refused")
        if getattr(function, "__module__", "") == "numpy" and \
                function.__name__ == "ndarray":     # may be made over any memory
            _refuse("a call of numpy.ndarray is refused")

    def load_reduce(self) -> None:
        """Calls a function."""
        import numpy as np

        function, args = self.stack[-2:]
        self._check_call(function)
        if function is np.dtype:
            self.stack[-2:] = [_dtype(*args)]
        else:
            super().load_reduce()

    def load_newobj(self) -> None:
        """Makes an object of a class."""
        self._check_call(self.stack[-2])
        super().load_newobj()

    def load_newobj_ex(self) -> None:
        """The same with keyword arguments."""
        self._check_call(self.stack[-3])
        super().load_newobj_ex()

    def load_build(self) -> None:
        """Sets the state of an object."""
        import numpy as np

        made, state = self.stack[-2:]
        if isinstance(made, np.dtype):
            # In its place, since those that use it already rely on what it is.
            other = _dtype_with(made, state)
            self.stack[-2:] = [other]
            for key, value in self.memo.items():
                if value is made:
                    self.memo[key] = other
            return
        if type(made) is np.ndarray:
            _check_array(made, state)
        elif isinstance(made, (type, types.FunctionType, types.BuiltinFunctionType,
                               types.MethodType, types.ModuleType, np.generic)):
            _refuse(f"a state for a {type(made).__name__} is refused")
        super().load_build()

    dispatch.update({pickle.REDUCE[0]: load_reduce, pickle.NEWOBJ[0]: load_newobj,
                     pickle.NEWOBJ_EX[0]: load_newobj_ex, pickle.BUILD[0]: load_build})


def loads(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """The value of a pickle of another task, which has to be plain."""
    allowed = _allowed
    assert allowed is not None
    try:
        return _Unpickler(data, buffers, allowed).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:      # of a pickle that Python has not made
        raise pickle.UnpicklingError(
            f"a result that cannot be unpickled: {type(error).__name__}: {error}"
        ) from error


def find_exception(module: str, name: str) -> Any:
    """A class of exceptions by its name, for muster.errors."""
    assert _allowed is not None
    found = _Unpickler(b"", (), _allowed).find_class(_of(str, module), _of(str, name))
    if not isinstance(found, type) or not issubclass(found, BaseException):
        _refuse_name(f"{module}.{name}")
    return found
