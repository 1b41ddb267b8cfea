"""Pickling of arguments and results: protocol 5, with large buffers out of band."""

from __future__ import annotations

import collections
import io
import pickle
import re
import sys
import types
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import errors

# Smaller buffers stay in the pickle.
_SMALL_BYTES = 2048


def dumps(value: Any) -> Tuple[bytes, List[pickle.PickleBuffer]]:
    """The pickle of a value, and its large buffers in order.

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
    return _by_content(value, take), buffers


class _OlderNumpy(pickle.Unpickler):
    """Unpickles arrays of NumPy 2 with NumPy 1."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("numpy._core"):
            module = "numpy.core" + module[len("numpy._core"):]
        return super().find_class(module, name)


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
    return _by_content(function, None)


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
    reduce_code: Any = base.dispatch_table[types.CodeType]

    def reduce(code: types.CodeType) -> Tuple[Any, ...]:
        make, fields = reduce_code(code)[:2]
        return make_code, (sys.implementation.cache_tag, make, fields)

    class Pickler(base):  # type: ignore[misc,valid-type]
        dispatch_table = collections.ChainMap({types.CodeType: reduce},
                                              base.dispatch_table)

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
