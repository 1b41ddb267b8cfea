"""Actors in processes of their own, as their worker has them: one process for each. The
other side is child.py."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, List, Tuple

from .. import _processes, _pickling, _worker
from . import hosting

# The process gets the worker's import path.
_START = """
import json, sys
options = json.loads(sys.argv[1])
sys.path[:] = options["path"]
from muster.actors.child import main
main(options)
"""
_LEAVE_SECONDS = 1.0    # for a process to end by itself

Request = Tuple[str, str, Tuple[Any, ...], Dict[str, Any]]


def _popen(number: int) -> "subprocess.Popen[bytes]":
    flags: List[str] = subprocess._args_from_interpreter_flags()  # type: ignore
    options = {"path": [path for path in sys.path if isinstance(path, str)],
               "parent": os.getpid(), "socket": number}
    return subprocess.Popen([sys.executable or "python3", *flags, "-c", _START,
                             json.dumps(options)], pass_fds=(number,),
                            stdin=subprocess.DEVNULL)


def _start(number: int) -> "subprocess.Popen[bytes]":
    """Start a process. It ends with the thread that has started it, so that one is the
    thread of the event loop, which does not end."""
    async def start() -> "subprocess.Popen[bytes]":
        return _popen(number)

    return asyncio.run_coroutine_threadsafe(start(), hosting.loop_of_actors()).result()


def how_ended(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    import signal

    return (f"its process was killed by signal {-code} "
            f"({signal.strsignal(-code) or 'unknown'})")


class _ChildStream(hosting.Stream):
    """A stream whose iterator is in the process."""

    def __init__(self, child: "Child", number: int) -> None:
        self._child = child
        self._number = number

    def next(self, most: int) -> Any:
        return self._child.ask("own", "muster.next", (self._number, most), {})

    def close(self) -> None:
        self._child.ask("own", "muster.close", (self._number,), {})


class Child:
    """An actor's object, in its process. Its attributes are the methods."""

    def __init__(self, data: bytes, args: Tuple[Any, ...],
                 kwargs: Dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _start(theirs.fileno())
        self._connection = Connection(ours.detach())
        self._lock = threading.Lock()
        self.muster_pid = self._process.pid
        self.ask("make", "", (data, args, kwargs), {})

    def _lost(self) -> BaseException:
        try:
            code = self._process.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return hosting.Lost(how_ended(code))

    def _answer(self, what: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """Of a request of the method to its run."""
        answer = _processes.serve(what, *args, **kwargs)
        try:
            packed = _pickled(answer)
        except Exception as error:
            failed = _worker.failed(error)
            packed = _pickled((False, (failed.data, failed.words, failed.text,
                                       failed.code)))
        self._connection.send_bytes(packed)

    def ask(self, *request: Any) -> Any:
        """Have the process do something, and wait for its answer."""
        packed = _pickled(request)
        with self._lock:
            if self._process.poll() is not None:
                raise hosting.LostBefore(how_ended(self._process.returncode))
            try:
                self._connection.send_bytes(packed)
                kind, value = pickle.loads(self._connection.recv_bytes())
                while kind == "ask":
                    self._answer(*value)
                    kind, value = pickle.loads(self._connection.recv_bytes())
            except (EOFError, OSError):
                raise self._lost() from None
        if kind == "died":
            raise hosting.Died(value)
        if kind == "failed":
            raise _worker.Failed(*value).exception()
        return _ChildStream(self, value) if kind == "stream" else value

    def muster_about(self) -> Any:
        """What callers know of the class."""
        return self.ask("own", "muster.about", (), {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.ask("call", name, args, kwargs)

    def __del__(self) -> None:
        connection = self.__dict__.get("_connection")
        if connection is not None:
            connection.close()      # then it ends
            threading.Thread(target=self._lost, daemon=True).start()


def _pickled(value: Any) -> bytes:
    try:
        data = pickle.dumps(value, 5)
        if b"__main__" not in data:
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    return _pickling.dumps_function(value)
