"""Partitioners: into how many shards a variable is cut along its first dimension."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from ._variable.dtypes import dtype_of

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner",
           "Partitioner", "shards_of"]


def _at_least_one(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}, expected an int")
    if value < 1:
        raise ValueError(f"{name} is {value}, expected at least 1")
    return value


def _element_bytes(dtype: Any, bytes_per_string: int) -> int:
    kind = dtype_of(dtype)
    return bytes_per_string if kind.kind in "OSU" else int(kind.itemsize)


def shards_of(partitioner: Any, shape: List[int], dtype: Any) -> int:
    """The number of shards of a variable, by a partitioner or a function of one's own
    with the same arguments and result. 0 (by its size): None, or a number's shape.
    ValueError: what it returned cuts no variable."""
    if partitioner is None or not shape:
        return 0
    parts = partitioner(shape=shape, dtype=dtype)
    parts = None if parts is None else list(parts)
    if not parts or len(parts) != len(shape):
        raise ValueError(f"the partitioner returned {parts!r} for shape {shape}, "
                         "expected a list with an entry for each dimension")
    if any(part != 1 for part in parts[1:]) or parts[0] < 1:
        raise ValueError(f"the partitioner returned {parts!r}: only the first dimension "
                         "can be cut, into at least 1 part")
    return max(1, min(int(parts[0]), shape[0]))


class Partitioner:
    """The base class of partitioners. Called with a variable's shape and dtype, it
    returns a list with the number of parts of each dimension. Only that of `axis` may be
    more than 1, and variables can be cut along the first dimension only."""

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> List[int]:
        parts = [1] * len(shape)
        if parts and shape[axis] > 0:
            parts[axis] = self._parts(list(shape), dtype, axis)
        return parts

    def _parts(self, shape: List[int], dtype: Any, axis: int) -> int:
        raise NotImplementedError


class FixedShardsPartitioner(Partitioner):
    """num_shards shards, at most one for each row. ValueError: num_shards below 1."""

    def __init__(self, num_shards: int) -> None:
        self._num_shards = _at_least_one("num_shards", num_shards)

    def _parts(self, shape: List[int], dtype: Any, axis: int) -> int:
        return min(self._num_shards, shape[axis])


class MinSizePartitioner(Partitioner):
    """As many shards as possible of at least min_shard_bytes each, max_shards at most.

    bytes_per_string: assumed bytes of an element of a variable of strings. ValueError: an
    argument is below 1.
    """

    def __init__(self, min_shard_bytes: int = 256 << 10, max_shards: int = 1,
                 bytes_per_string: int = 16) -> None:
        self._min_shard_bytes = _at_least_one("min_shard_bytes", min_shard_bytes)
        self._max_shards = _at_least_one("max_shards", max_shards)
        self._bytes_per_string = _at_least_one("bytes_per_string", bytes_per_string)

    def _parts(self, shape: List[int], dtype: Any, axis: int) -> int:
        total = _element_bytes(dtype, self._bytes_per_string)
        for size in shape:
            total *= size
        most = -(-total // self._min_shard_bytes)
        return max(1, min(most, shape[axis], self._max_shards))


class MaxSizePartitioner(Partitioner):
    """As few shards as possible of at most max_shard_bytes each (but at least a row),
    max_shards at most (None: no limit). ValueError: an argument is below 1."""

    def __init__(self, max_shard_bytes: int, max_shards: Optional[int] = None,
                 bytes_per_string: int = 16) -> None:
        self._max_shard_bytes = _at_least_one("max_shard_bytes", max_shard_bytes)
        self._max_shards = (None if max_shards is None
                            else _at_least_one("max_shards", max_shards))
        self._bytes_per_string = _at_least_one("bytes_per_string", bytes_per_string)

    def _parts(self, shape: List[int], dtype: Any, axis: int) -> int:
        row = _element_bytes(dtype, self._bytes_per_string)
        for number, size in enumerate(shape):
            row *= size if number != axis else 1
        rows = max(1, self._max_shard_bytes // row) if row else shape[axis]
        parts = -(-shape[axis] // rows)
        return parts if self._max_shards is None else min(parts, self._max_shards)
