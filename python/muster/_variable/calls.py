"""Calls of a variable that do not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .elements import Elements
from .rows import _ADD, _numbers, listed

if TYPE_CHECKING:
    from .._calls import CallFuture

# Operations of the library: enum mu_variable_operation.
_WHOLE_ASSIGN, _WHOLE_ADD, _WHOLE_APPLY = 2, 3, 4


class Calls(Elements):
    """Each returns a future at once, which can also be awaited in asyncio: its result is
    what the call without _async returns. A variable's calls may be under way together, in
    any order, without a thread for each. Arrays that were given are not changed until the
    future has its result. A call whose future is cancelled goes on, and may write all the
    same. What is wrong with the arguments is raised at once; WouldBlockError: 65,536
    calls of this variable are under way, or they hold 256 MiB of rows: wait for some of
    them."""

    assign: Any
    assign_add: Any
    apply_gradient: Any

    def _read_into(self, array: Any, timeout: Any, max_age: Any, tell: Any) -> None:
        raise NotImplementedError

    def _write(self, operation: int, value: Any, timeout: Any, tell: Any,
               rate: Any = None, momentum: float = 0.0) -> None:
        raise NotImplementedError

    def read_async(self, timeout: Optional[float] = None,
                   max_age: Optional[float] = None) -> CallFuture:
        """Like read()."""
        import numpy as np
        from .. import _calls

        if _calls.is_served():
            return _calls.at_once(self.read, timeout, max_age)
        future = _calls.CallFuture()
        future._value = array = np.empty(self.shape, self.dtype)
        self._read_into(array, timeout, max_age, future._end)
        return future

    def assign_async(self, value: Any, timeout: Optional[float] = None) -> CallFuture:
        """Like assign()."""
        from .. import _calls

        if _calls.is_served():
            return _calls.at_once(self.assign, value, timeout)
        future = _calls.CallFuture()
        self._write(_WHOLE_ASSIGN, value, timeout, future._end)
        return future

    def assign_add_async(self, value: Any, timeout: Optional[float] = None) -> CallFuture:
        """Like assign_add()."""
        from .. import _calls

        if _calls.is_served():
            return _calls.at_once(self.assign_add, value, timeout)
        future = _calls.CallFuture()
        self._write(_WHOLE_ADD, value, timeout, future._end)
        return future

    def gather_async(self, indices: Any, timeout: Optional[float] = None) -> CallFuture:
        """Like gather()."""
        import numpy as np
        from .. import _calls

        if _calls.is_served():
            return _calls.at_once(self.gather, indices, timeout)
        numbers = _numbers(indices, self.name)
        future = _calls.CallFuture()
        rows = future._value = np.empty(numbers.shape + self.shape[1:], self.dtype)
        self._read_rows(0, numbers.size, numbers.reshape(-1), timeout,
                        rows.reshape(-1, *self.shape[1:]), future._end)
        return future

    def scatter_add_async(self, sparse_delta: Any, values: Any = None,
                          timeout: Optional[float] = None) -> CallFuture:
        """Like scatter_add()."""
        from .. import _calls

        if _calls.is_served():
            return _calls.at_once(self.scatter_add, sparse_delta, values, timeout)
        future = _calls.CallFuture()
        self._write_rows(_ADD, 0, *listed(self, sparse_delta, values), timeout,
                         future._end)
        return future

    def apply_gradient_async(self, gradient: Any, rate: Any, momentum: float = 0.0,
                             timeout: Optional[float] = None) -> CallFuture:
        """Like apply_gradient()."""
        from .. import _calls

        if _calls.is_served():
            return _calls.at_once(self.apply_gradient, gradient, rate, momentum, timeout)
        future = _calls.CallFuture()
        self._write(_WHOLE_APPLY, gradient, timeout, future._end, rate, momentum)
        return future
