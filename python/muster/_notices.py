"""The thread that runs Python callbacks of the library's threads."""

from __future__ import annotations

import os
import threading
from typing import Any, Generator, Optional

from . import _muster

_lock = threading.Lock()
_thread: Optional[threading.Thread] = None


def _main() -> None:
    while _muster.drain_notices():
        pass


def start() -> None:
    """Start the thread, unless it is running."""
    global _thread
    if _thread is not None:
        return
    with _lock:
        if _thread is None:
            thread = threading.Thread(target=_main, name="muster-notices", daemon=True)
            thread.start()
            _thread = thread


def _after_fork() -> None:
    global _thread, _lock
    _lock = threading.Lock()
    _thread = None
    _muster.notices_after_fork()


os.register_at_fork(after_in_child=_after_fork)


def log(level: int, task: str, who: str, line: str, lost: int) -> None:
    """A log line of a node, for the logger "muster"."""
    import logging

    logger = logging.getLogger("muster")
    levels = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
    if lost:
        logger.warning("%d lines were left out", lost)
    logger.log(levels[min(level, 3)], "%s %s: %s", task, who,
               _muster.own_names(line))


def await_value(value: "_muster.RemoteValue[Any]") -> Generator[Any, None, Any]:
    """Implements `await value`: wakes the asyncio loop when the value is ready."""
    import asyncio

    loop = asyncio.get_running_loop()
    future: "asyncio.Future[None]" = loop.create_future()

    def finish() -> None:
        if not future.done():
            future.set_result(None)

    def tell(_: Any) -> None:
        try:
            loop.call_soon_threadsafe(finish)
        except RuntimeError:  # the loop was closed in the meantime
            pass

    if not value.done():
        value.add_done_callback(tell)
        try:
            yield from future
        except asyncio.CancelledError:  # of the waiting task: cancels the closure, too
            value.cancel()
            raise
    return value.fetch()
