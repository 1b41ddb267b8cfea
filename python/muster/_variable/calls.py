"""Calls of a variable that do not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .._calls import CallFuture


class Calls:
    """Each returns a future at once, which can also be awaited in asyncio: its result is
    what the call without _async returns. A variable's calls may be under way together, in
    any order. Arrays that were given are not changed until the future has its result."""

    def _start(self, name: str, *args: Any, **kwargs: Any) -> CallFuture:
        from .. import _calls

        return _calls.start(getattr(self, name), *args, **kwargs)

    def read_async(self, timeout: Optional[float] = None,
                   max_age: Optional[float] = None) -> CallFuture:
        """Like read()."""
        return self._start("read", timeout, max_age)

    def assign_async(self, value: Any, timeout: Optional[float] = None) -> CallFuture:
        """Like assign()."""
        return self._start("assign", value, timeout)

    def assign_add_async(self, value: Any, timeout: Optional[float] = None) -> CallFuture:
        """Like assign_add()."""
        return self._start("assign_add", value, timeout)

    def gather_async(self, indices: Any, timeout: Optional[float] = None) -> CallFuture:
        """Like gather()."""
        return self._start("gather", indices, timeout)

    def scatter_add_async(self, sparse_delta: Any, values: Any = None,
                          timeout: Optional[float] = None) -> CallFuture:
        """Like scatter_add()."""
        return self._start("scatter_add", sparse_delta, values, timeout)

    def apply_gradient_async(self, gradient: Any, rate: Any, momentum: float = 0.0,
                             timeout: Optional[float] = None) -> CallFuture:
        """Like apply_gradient()."""
        return self._start("apply_gradient", gradient, rate, momentum, timeout)
