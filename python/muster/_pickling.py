"""Pickles of arguments and results: protocol 5, large buffers beside the pickle."""

from __future__ import annotations

import pickle
from typing import Any, List, Tuple

# Buffers below this size stay in the pickle.
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
    import cloudpickle

    del buffers[:]
    return cloudpickle.dumps(value, 5, buffer_callback=take), buffers


def loads(data: Any, buffers: List[Any]) -> Any:
    """The value of a pickle."""
    return pickle.loads(data, buffers=buffers)


def dumps_function(function: Any) -> bytes:
    """A function as workers get it: by name when it is importable, else by content."""
    import cloudpickle

    return bytes(cloudpickle.dumps(function, 5))
