"""Calls that do not wait."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
from typing import Any, Callable, Generator, Optional

from ..errors import ClosedError


class CallFuture(concurrent.futures.Future):  # type: ignore[type-arg]
    """The result of a call that does not wait: a concurrent.futures.Future that can also
    be awaited in asyncio. It is set, and callbacks run, on a thread of muster."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()
        self._value: Any = None

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def result(self, timeout: Optional[float] = None) -> Any:
        """Wait for it; its exception is raised. timeout: seconds; None: no limit."""
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """Wait for it: its exception, or None. timeout: seconds; None: no limit."""
        self._check_process()
        return super().exception(timeout)

    def _check_process(self) -> None:
        if self._process != os.getpid() and not self.done():
            raise ClosedError("this process was forked after the call had begun, which "
                              "ends in its parent alone")

    def _end(self, error: Optional[BaseException]) -> None:
        """The library's call, whose result is _value, has ended."""
        value, self._value = self._value, None
        if not self.set_running_or_notify_cancel():
            return
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)

    def _finish(self, get: Callable[[], Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            result = get()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(result)


def is_served() -> bool:
    """Whether this is an executor process, whose requests are those of one thread."""
    process: Any = sys.modules.get("muster._process")
    return process is not None and bool(process.serves)


def at_once(call: Callable[..., Any], *args: Any, **kwargs: Any) -> CallFuture:
    """The outcome of what does not wait, or must be done by this thread."""
    future = CallFuture()
    future._finish(lambda: call(*args, **kwargs))
    return future
