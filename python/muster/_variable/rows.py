"""Rows of a variable: slices, and lists of rows by number."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, Optional, Tuple

from .arrays import array_of, out_of


# How rows are written; the last ones are those of enum mu_row_update.
_ASSIGN, _ADD, _MIN, _MAX, _MUL, _DIV = -1, 0, 1, 2, 3, 4


class IndexedSlices(NamedTuple):
    """Rows by number, as TensorFlow calls them: `indices` has one dimension, `values` the
    rows, one behind the other."""

    values: Any
    indices: Any


def _numbers(indices: Any, name: str) -> Any:
    """Row numbers as an array of int64."""
    import numpy as np

    numbers = array_of(indices)
    if numbers.size == 0 and numbers.dtype.kind == "f":
        return numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"variable {name!r}: rows are numbered by integers, got "
                        f"{numbers.dtype}")
    return np.ascontiguousarray(numbers.astype(np.int64, copy=False))


def _contents(variable: Any, count: int, values: Any,
              shape: Optional[Tuple[int, ...]] = None) -> Any:
    """Values for so many rows, or of a shape, in the variable's dtype; what is broadcast
    is one row, or one number."""
    import numpy as np
    from ..variable import _converted

    if not variable.shape:
        raise ValueError(f"variable {variable.name!r} is a number, and has no rows")
    wanted = (count,) + variable.shape[1:] if shape is None else shape
    array = _converted(values, str(variable.dtype), variable.name)
    if array.shape == wanted:
        return array
    try:
        return np.broadcast_to(array, wanted)
    except ValueError:
        what = f"{count} rows have" if shape is None else "what is written there has"
        raise ValueError(f"variable {variable.name!r}: {what} the shape "
                         f"{wanted}, got an array of shape {array.shape}") from None


def listed(variable: Any, indices: Any, values: Any) -> Tuple[Any, Any]:
    """Numbers and contents of rows that are written. Called by the extension, too."""
    if values is None:
        indices, values = indices.indices, indices.values
    numbers = _numbers(indices, variable.name)
    if numbers.ndim != 1:
        raise ValueError(f"variable {variable.name!r}: indices have the shape "
                         f"{numbers.shape}, expected one dimension")
    return numbers, _contents(variable, len(numbers), values)


def ranged(variable: Any, first: Any, values: Any) -> Tuple[int, Any]:
    """The same of rows that follow each other, as many as `values` has."""
    import numpy as np

    first = operator.index(first)
    shape = np.shape(values)
    if len(shape) != len(variable.shape) or first < 0:
        raise ValueError(f"variable {variable.name!r}: rows from {first} on of shape "
                         f"(..., {str(variable.shape[1:])[1:]}, got an array of shape "
                         f"{shape}")
    return first, _contents(variable, shape[0] if shape else 0, values)


def _is_list(key: Any) -> bool:
    import numpy as np

    return not isinstance(key, slice) and np.ndim(key) > 0


def _is_for_all(items: Tuple[Any, ...]) -> bool:
    """Whether an index does not begin with one of rows, or goes along with others."""
    import numpy as np

    return (not items or items[0] is None or items[0] is Ellipsis or
            isinstance(items[0], (bool, np.bool_)) or
            (_is_list(items[0]) and any(not isinstance(at, slice) for at in items[1:])))


def _rows_of(key: Any, size: int, name: str) -> Tuple[int, int, Optional[Any]]:
    """First row, count and, if they do not follow each other, list of what an index
    says, as NumPy reads it."""
    import numpy as np

    if isinstance(key, slice):
        chosen = range(*key.indices(size))
        if chosen.step == 1 or len(chosen) < 2:
            return (chosen[0] if len(chosen) else 0), len(chosen), None
        return 0, len(chosen), np.arange(chosen.start, chosen.stop, chosen.step,
                                         dtype=np.int64)
    if not _is_list(key):
        row = operator.index(key)
        if not -size <= row < size:
            raise IndexError(f"variable {name!r} has {size} rows, got the index {row}")
        return row % size, 1, None
    array = np.asarray(key)
    if array.dtype == bool:
        if array.shape != (size,):
            raise IndexError(f"variable {name!r} has {size} rows, got a mask of shape "
                             f"{array.shape}")
        array = np.flatnonzero(array)
    numbers = _numbers(array, name)
    if numbers.size and not -size <= int(numbers.min()) <= int(numbers.max()) < size:
        raise IndexError(f"variable {name!r} has {size} rows, got the indices "
                         f"{numbers.min()} to {numbers.max()}")
    return 0, numbers.size, np.where(numbers < 0, numbers + size, numbers)


class Rows:
    """What a variable can do with its rows: a call asks only the servers of the shards
    that it touches, all of them at once."""

    name: Any
    shape: Any
    dtype: Any
    read: Any

    def _read_rows(self, first: int, count: int, numbers: Any,
                   timeout: Optional[float] = None, out: Any = None,
                   tell: Any = None) -> Any:
        raise NotImplementedError

    def _write_rows(self, how: int, first: int, numbers: Any, values: Any,
                    timeout: Optional[float] = None, tell: Any = None) -> None:
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        """v[7], v[2:5], v[::2], v[[4, 1, 4]], v[mask], v[2:5, 0]: as a NumPy array reads
        them. Only the rows are read that the first index names; v[..., 0] and v[None]
        read all."""
        items = key if isinstance(key, tuple) else (key,)
        rest = items[1:]
        if not self.shape or _is_for_all(items):
            return self.read()[key]
        first, count, numbers = _rows_of(items[0], self.shape[0], self.name)
        if numbers is None:
            rows = self._read_rows(first, count, None)
        else:
            rows = self._read_rows(0, count, numbers.reshape(-1))
            rows = rows.reshape(numbers.shape + self.shape[1:])
        if not isinstance(items[0], slice) and not _is_list(items[0]):
            return rows[(0,) + rest]
        return rows[(slice(None),) + rest] if rest else rows

    def __iter__(self) -> Any:
        raise TypeError("a Variable is not iterable: read() it first")

    def gather(self, indices: Any, timeout: Optional[float] = None,
               out: Any = None) -> Any:
        """The rows with these numbers, from 0, as a new array of shape indices.shape +
        shape[1:], or in `out`. OutOfRangeError: a row is not there."""
        numbers = _numbers(indices, self.name)
        if out is not None:
            whole = out_of(out, numbers.shape + self.shape[1:], self.dtype)
            self._read_rows(0, numbers.size, numbers.reshape(-1), timeout,
                            whole.reshape(-1, *self.shape[1:]))
            return out
        rows = self._read_rows(0, numbers.size, numbers.reshape(-1), timeout)
        return rows if numbers.ndim == 1 else rows.reshape(numbers.shape + self.shape[1:])

    def sparse_read(self, indices: Any, name: Optional[str] = None) -> Any:
        """The same as gather(), in the order asked for."""
        return self.gather(indices)

    def scatter_add(self, sparse_delta: Any, values: Any = None,
                    timeout: Optional[float] = None) -> None:
        """Add to rows: scatter_add(IndexedSlices(values, indices)), or
        scatter_add(indices, values). All contents of a row that occurs more than once
        are added. Immediately, also in a function: see Run.scatter_add()."""
        self._write_rows(_ADD, 0, *listed(self, sparse_delta, values), timeout)

    def scatter_sub(self, sparse_delta: Any, values: Any = None,
                    timeout: Optional[float] = None) -> None:
        """Subtract from rows, like scatter_add()."""
        numbers, contents = listed(self, sparse_delta, values)
        self._write_rows(_ADD, 0, numbers, -contents, timeout)

    def scatter_update(self, sparse_delta: Any, values: Any = None,
                       timeout: Optional[float] = None) -> None:
        """Replace rows, like scatter_add(); of a row that occurs more than once the last
        content stays."""
        self._write_rows(_ASSIGN, 0, *listed(self, sparse_delta, values), timeout)

    def scatter_min(self, sparse_delta: Any, values: Any = None,
                    timeout: Optional[float] = None) -> None:
        """The smaller of both, like scatter_add(); NaN in one of them gives NaN."""
        self._write_rows(_MIN, 0, *listed(self, sparse_delta, values), timeout)

    def scatter_max(self, sparse_delta: Any, values: Any = None,
                    timeout: Optional[float] = None) -> None:
        """The larger of both, like scatter_min()."""
        self._write_rows(_MAX, 0, *listed(self, sparse_delta, values), timeout)

    def scatter_mul(self, sparse_delta: Any, values: Any = None,
                    timeout: Optional[float] = None) -> None:
        """Multiply rows, like scatter_add(); products of integers wrap."""
        self._write_rows(_MUL, 0, *listed(self, sparse_delta, values), timeout)

    def scatter_div(self, sparse_delta: Any, values: Any = None,
                    timeout: Optional[float] = None) -> None:
        """Divide rows, like scatter_add(). Quotients of integers are cut towards 0, and
        InvalidArgumentError is raised for a divisor of 0."""
        self._write_rows(_DIV, 0, *listed(self, sparse_delta, values), timeout)

    def assign_rows(self, first: int, values: Any,
                    timeout: Optional[float] = None) -> None:
        """Replace the rows from `first` on, as many as `values` has."""
        first, contents = ranged(self, first, values)
        self._write_rows(_ASSIGN, first, None, contents, timeout)

    def add_rows(self, first: int, values: Any, timeout: Optional[float] = None) -> None:
        """Add to the rows from `first` on, as many as `values` has."""
        first, contents = ranged(self, first, values)
        self._write_rows(_ADD, first, None, contents, timeout)
