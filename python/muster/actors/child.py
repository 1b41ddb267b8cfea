"""The process of an actor: makes its object, and calls its methods for the worker, one at
a time, on the main thread. The other side is children.py."""

from __future__ import annotations

import asyncio
import collections
import inspect
import pickle
import signal
import time
from multiprocessing.connection import Connection
from typing import Any, Deque, Dict, Optional, Tuple

from .. import _muster, _process, _processes, _worker, errors
from . import hosting
from .children import TOLD, _pickled


class _Run:
    """The run of the actor's methods, over the worker: see hosting.ActorRun."""

    attempt = 1
    closure = 0
    has_written = False     # for functions, whose writes are made when they return
    node: Any = _process.Node()
    _METHODS = ("log", "report_metric", "cancelled")
    _FACTS = ("worker", "worker_type", "name")

    def __init__(self, process: "_Process") -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        if name in self._FACTS:
            return self._process.ask("facts")[name]
        if name in self._METHODS:
            return lambda *args: self._process.ask("call", "run", name, *args)
        if hasattr(_muster.Run, name):
            raise errors.FailedPreconditionError(
                f"the method of an actor has no {name}(): its writes to variables are "
                "made at once, by the methods of the variable")
        raise AttributeError(name)


class _Process:
    """What the main thread does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._object: Any = None
        self._streams: Dict[int, hosting.Stream] = {}
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._ahead: Deque[bytes] = collections.deque()     # to be done next
        self._is_dead = False

    def ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        """Send a request to the worker; the result, or its exception."""
        self._connection.send_bytes(_pickled(("ask", (what, args, kwargs))))
        data = self._connection.recv_bytes()
        while not data.startswith(TOLD):
            self._ahead.append(data)
            data = self._connection.recv_bytes()
        fine, value = pickle.loads(memoryview(data)[1:])
        if fine:
            return value
        raise _worker.Failed(*value).exception()

    def _await(self, coroutine: Any) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(coroutine)

    def _do(self, what: str, name: str, args: Tuple[Any, ...],
            kwargs: Dict[str, Any]) -> Tuple[str, Any]:
        if what == "make":
            data, args, kwargs = args
            self._object = hosting.class_of(data)(*args, **kwargs)
            return "value", None
        if what == "own":
            result = hosting.call_own(self._streams, self._object, name, args)
        else:
            result = getattr(self._object, name)(*args, **kwargs)
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            return "stream", hosting.open_stream(self._streams, result)
        return "value", self._await(result) if inspect.iscoroutine(result) else result

    def _try(self, data: bytes) -> bytes:
        try:
            *request, due_ms = pickle.loads(memoryview(data)[1:])
            if self._is_dead:
                return _pickled(("unbegun", None))
            if due_ms and due_ms <= time.monotonic() * 1000:
                return _pickled(("late", None))
            return _pickled(self._do(*request))
        except hosting.Died as error:
            self._is_dead = True
            return pickle.dumps(("died", hosting.words_of(error)), 5)
        except BaseException as error:
            failed = _worker.failed(error)
            return pickle.dumps(("failed", (failed.data, failed.words, failed.text,
                                            failed.code)), 5)

    def _next(self) -> bytes:
        return self._ahead.popleft() if self._ahead else self._connection.recv_bytes()

    def serve(self) -> None:
        """Until the worker closes the connection."""
        try:
            while True:
                self._connection.send_bytes(self._try(self._next()))
        except (EOFError, OSError):
            pass


def main(options: Dict[str, Any]) -> None:
    """The process's program."""
    _muster.die_with_parent(options["parent"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _processes.buffer_lines()
    process = _Process(Connection(options["socket"]))
    run: Any = _Run(process)
    asking: Any = _process
    asking.serves, asking.ask = True, process.ask
    _muster.actor_loop_thread()
    hosting.set_current(run)
    process.serve()
