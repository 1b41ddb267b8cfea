"""Arrays of others: of torch and whatever has __dlpack__ or __array__."""

from __future__ import annotations

from typing import Any, Tuple


def array_of(value: Any) -> Any:
    """A NumPy array of a value, which shares its memory where that can be. A tensor is
    taken without its graph."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    detach = getattr(value, "detach", None)
    plain = detach() if callable(detach) else value
    if hasattr(plain, "__array__"):
        return np.asarray(plain)
    from_dlpack: Any = getattr(np, "from_dlpack", None)
    if from_dlpack is None:
        raise TypeError(f"{type(value).__name__} needs NumPy 1.22, which has from_dlpack")
    return from_dlpack(plain)


def out_of(out: Any, shape: Tuple[int, ...], dtype: Any) -> Any:
    """The array whose memory is that of `out`, which is written to. Called by the
    extension, too."""
    import numpy as np

    from .dtypes import dtype_of

    array = np.asarray(out)
    if array is not out and array.base is None:
        raise TypeError(f"out is a {type(out).__name__}, which does not share its memory")
    if array.shape != tuple(shape) or array.dtype != dtype_of(dtype):
        raise ValueError(f"out has the shape {array.shape} and the dtype {array.dtype}: "
                         f"expected {tuple(shape)} and {dtype}")
    if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
        raise ValueError("out cannot be written as a whole: expected a writeable array "
                         "without gaps, in C order")
    return array
