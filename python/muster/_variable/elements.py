"""Elements and parts of rows, by numbers along several dimensions."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from ..errors import OutOfRangeError
from .dtypes import kind_of
from .rows import _ADD, _ASSIGN, _MAX, _MIN, Rows, _contents, _numbers


def _places(variable: Any, indices: Any) -> Any:
    """Indices as TensorFlow's ..._nd have them: their last dimension has the first
    numbers of a place, from 0. OutOfRangeError: one is not there."""
    import numpy as np

    numbers = _numbers(indices, variable.name)
    rank = len(variable.shape)
    if numbers.ndim == 0 or not 1 <= numbers.shape[-1] <= rank:
        raise ValueError(f"variable {variable.name!r}: indices have the shape "
                         f"{numbers.shape}, expected a last dimension of 1 to {rank}")
    sizes = variable.shape[:numbers.shape[-1]]
    wrong = ((numbers < 0) | (numbers >= np.array(sizes))).any(axis=-1)
    if wrong.any():
        raise OutOfRangeError(f"variable {variable.name!r} has the shape "
                              f"{variable.shape}, and no {numbers[wrong][0].tolist()}")
    return numbers


def _identity(dtype: Any, how: int) -> Any:
    """The number that changes nothing."""
    import numpy as np

    if how == _ADD:
        return 0
    if kind_of(dtype) == "f":
        return np.inf if how == _MIN else -np.inf
    if dtype.kind == "b":
        return how == _MIN
    return np.iinfo(dtype).max if how == _MIN else np.iinfo(dtype).min


def _whole_rows(variable: Any, places: Any, contents: Any, how: int) -> Tuple[Any, Any]:
    """Numbers and contents of rows, which change only these places."""
    import numpy as np

    rows, at = np.unique(places[:, 0], return_inverse=True)
    filled = np.full((len(rows), *variable.shape[1:]), _identity(variable.dtype, how),
                     variable.dtype)
    join: Any = {_ADD: np.add, _MIN: np.minimum, _MAX: np.maximum}[how]
    join.at(filled, (at.reshape(-1), *places[:, 1:].T), contents)
    return rows, filled


class Elements(Rows):
    """What a variable can do with its elements, besides its rows. indices: an array whose
    last dimension says where, by at most as many numbers as the variable has dimensions:
    [[0], [2]] are rows 0 and 2, [[0, 1]] is element 1 of row 0. What is written has the
    shape indices.shape[:-1] + shape[indices.shape[-1]:]."""

    def gather_nd(self, indices: Any, timeout: Optional[float] = None) -> Any:
        """What is at these places. Their rows are read."""
        import numpy as np

        places = _places(self, indices)
        rows, at = np.unique(places[..., 0], return_inverse=True)
        read = self.gather(rows, timeout)
        rest = tuple(places[..., i] for i in range(1, places.shape[-1]))
        return read[(at.reshape(places.shape[:-1]), *rest)]

    def _scatter_nd(self, how: int, indices: Any, values: Any,
                    timeout: Optional[float]) -> None:
        places = _places(self, indices)
        depth = places.shape[-1]
        shape = places.shape[:-1] + self.shape[depth:]
        contents = _contents(self, 0, values, shape)
        places = places.reshape(-1, depth)
        contents = contents.reshape(len(places), *self.shape[depth:])
        if depth == 1:
            rows = places[:, 0].copy()
        elif how == _ASSIGN:
            raise ValueError(f"variable {self.name!r}: whole rows are replaced, since "
                             "others may write to the rest of them: expected indices "
                             f"whose last dimension is 1, got {depth}")
        else:
            rows, contents = _whole_rows(self, places, contents, how)
        self._write_rows(how, 0, rows, contents, timeout)

    def scatter_nd_add(self, indices: Any, updates: Any,
                       timeout: Optional[float] = None) -> None:
        """Add at these places, all of what is given for one."""
        self._scatter_nd(_ADD, indices, updates, timeout)

    def scatter_nd_sub(self, indices: Any, updates: Any,
                       timeout: Optional[float] = None) -> None:
        """Subtract, like scatter_nd_add()."""
        import numpy as np

        self._scatter_nd(_ADD, indices, -np.asarray(updates), timeout)

    def scatter_nd_min(self, indices: Any, updates: Any,
                       timeout: Optional[float] = None) -> None:
        """The smallest of all, like scatter_nd_add()."""
        self._scatter_nd(_MIN, indices, updates, timeout)

    def scatter_nd_max(self, indices: Any, updates: Any,
                       timeout: Optional[float] = None) -> None:
        """The largest of all, like scatter_nd_add()."""
        self._scatter_nd(_MAX, indices, updates, timeout)

    def scatter_nd_update(self, indices: Any, updates: Any,
                          timeout: Optional[float] = None) -> None:
        """Replace rows: the last dimension of indices is 1."""
        self._scatter_nd(_ASSIGN, indices, updates, timeout)
