"""Pickling of arguments and results: protocol 5, with large buffers out of band."""

from __future__ import annotations

import collections
import io
import pickle
import re
import sys
import types
from typing import Any, Callable, List, NoReturn, Optional, Sequence, Tuple

from .. import errors
from . import plain

# Smaller buffers stay in the pickle.
_SMALL_BYTES = 2048


def dumps(value: Any, is_call: bool = False) -> Tuple[bytes, List[pickle.PickleBuffer]]:
    """The pickle of a value, and its large buffers in order. is_call: the value is (args,
    kwargs) of a function.

    What plain pickle cannot do, or would only name although it lives in __main__, is
    pickled by cloudpickle.
    """
    buffers: List[pickle.PickleBuffer] = []

    def take(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < _SMALL_BYTES:
            return True
        buffers.append(buffer)
        return False

    try:
        data = pickle.dumps(value, 5, buffer_callback=take)
        if b"__main__" not in data:
            return data, buffers
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    del buffers[:]
    try:
        return _by_content(value, take), buffers
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        args, kwargs = value if is_call else ((), None)
        parts = [(f"argument {i + 1}", arg) for i, arg in enumerate(args)]
        parts += [(f"argument {name!r}", arg) for name, arg in (kwargs or {}).items()]
        _raise_with_place(error, parts or _parts_of(value))


def numpy_core(module: str) -> str:
    """The name in this version of NumPy of a module of numpy.core or numpy._core."""
    import numpy as np

    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return module.replace("numpy._core", "numpy.core")
    return module.replace("numpy.core", "numpy._core")


class _OlderNumpy(pickle.Unpickler):
    """Unpickles arrays of NumPy 2 with NumPy 1."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(module.replace("numpy._core", "numpy.core"), name)


def loads_result(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """The value of a pickle that another task has made: a result, or an exception."""
    if plain.is_plain():
        return plain.loads(data, buffers)
    return loads(data, buffers)


def loads_exception(data: Optional[bytes]) -> Tuple[Optional[BaseException], str]:
    """The exception in a pickle that another task has made. If there is none, since its
    class is not importable or not allowed here: None, and words for its message."""
    if data is None:
        return None, ""
    try:
        loaded = loads_result(data)
    except Exception as error:
        return None, f" [{error}]" if plain.is_plain() else ""
    return (loaded if isinstance(loaded, BaseException) else None), ""


def loads(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """The value of a pickle."""
    try:
        return pickle.loads(data, buffers=buffers)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("numpy._core"):
            raise
    return _OlderNumpy(io.BytesIO(data), buffers=buffers).load()


def dumps_function(function: Any) -> bytes:
    """Pickle a function for workers: by name when it is importable, else by value."""
    try:
        return _by_content(function, None)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        _raise_with_place(error, _parts_of(function))


# ---- what cannot be pickled ----

_DEPTH_MAX = 8
_PARTS_MAX = 1000


def _parts_of(value: Any) -> List[Tuple[str, Any]]:
    """The parts of a value with words for each, at most _PARTS_MAX."""
    parts: List[Tuple[str, Any]] = []
    if type(value) is types.FunctionType:
        names = value.__code__.co_freevars
        for name, cell in zip(names, value.__closure__ or ()):
            try:
                parts.append((name, cell.cell_contents))
            except ValueError:      # not assigned yet
                pass
        parts += [(name, value.__globals__[name]) for name in value.__code__.co_names
                  if name in value.__globals__]
        parts = [(f"variable {name!r} of function {value.__qualname__!r}", part)
                 for name, part in parts]
    elif isinstance(value, dict):
        parts = [(f"key {key!r}", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = [(f"item {i}", part) for i, part in enumerate(value)]
    elif not isinstance(value, (type, types.ModuleType)):
        parts = [(f"attribute {name!r}", part)
                 for name, part in getattr(value, "__dict__", {}).items()]
    return parts[:_PARTS_MAX]


def _raise_with_place(error: Exception, parts: List[Tuple[str, Any]]) -> NoReturn:
    """Raise the error, with words that say which part cannot be pickled."""
    places: List[str] = []
    while parts and len(places) < _DEPTH_MAX:
        words, part = parts.pop(0)
        try:
            _by_content(part, None)
        except Exception:
            places.append(words)
            parts = _parts_of(part)
    if not places or type(error) not in (pickle.PicklingError, AttributeError, TypeError):
        raise error
    raise type(error)(f"{error} (in {', '.join(places)})") from error


# ---- by value ----

_pickler: Any = None


def _by_content(value: Any,
                take: Optional[Callable[[pickle.PickleBuffer], Any]]) -> bytes:
    """Pickle with cloudpickle."""
    global _pickler
    if _pickler is None:
        _pickler = _make_pickler()
    file = io.BytesIO()
    _pickler(file, 5, buffer_callback=take).dump(value)
    return file.getvalue()


def _make_pickler() -> Any:
    import cloudpickle

    base = cloudpickle.CloudPickler
    table: Any = base.dispatch_table
    reduce_code = table[types.CodeType]

    def reduce(code: types.CodeType) -> Tuple[Any, ...]:
        make, fields = reduce_code(code)[:2]
        return make_code, (sys.implementation.cache_tag, make, fields)

    class Pickler(base):  # type: ignore[misc,valid-type]
        dispatch_table = collections.ChainMap({types.CodeType: reduce}, table)

    return Pickler


def make_code(version: str, make: Callable[..., Any], fields: Tuple[Any, ...]) -> Any:
    """Unpickle a code object; refused in another version of Python, which would crash."""
    own = sys.implementation.cache_tag
    if version != own:
        raise errors.FailedPreconditionError(
            f"a function was sent by content from Python {_words(version)} to Python "
            f"{_words(own)}: both need the same version, or the function belongs into a "
            "module that can be imported on both sides")
    return make(*fields)


def _words(tag: Optional[str]) -> str:
    """"cpython-311": 3.11."""
    found = re.fullmatch(r"cpython-(\d)(\d+)", tag or "")
    return f"{found[1]}.{found[2]}" if found else str(tag)
