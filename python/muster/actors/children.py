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
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

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
_AHEAD_BYTES = 64 << 10     # of calls sent ahead of answers: the socket takes them

# What the process is sent: something to do, or the answer of what it has asked.
DO, TOLD = b"d", b"t"
# What became of a call, as in src/hosting/job.c.
_VALUE, _RAISED, _LATE, _UNBEGUN = range(4)

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
        self._connection.send_bytes(TOLD + packed)

    def _receive(self) -> Tuple[str, Any]:
        """What a request has become."""
        while True:
            kind, value = pickle.loads(self._connection.recv_bytes())
            if kind != "ask":
                return kind, value
            self._answer(*value)

    def _outcome(self, kind: str, value: Any) -> Tuple[int, Any]:
        if kind == "failed":
            return _RAISED, _worker.Failed(*value).exception()
        if kind == "late":
            return _LATE, None
        return _VALUE, _ChildStream(self, value) if kind == "stream" else value

    def ask(self, *request: Any) -> Any:
        """Have the process do something, and wait for its answer."""
        packed = DO + _pickled((*request, 0))
        with self._lock:
            if self._process.poll() is not None:
                raise hosting.LostBefore(how_ended(self._process.returncode))
            try:
                self._connection.send_bytes(packed)
                kind, value = self._receive()
            except (EOFError, OSError):
                raise self._lost() from None
        if kind == "died":
            raise hosting.Died(value)
        how, value = self._outcome(kind, value)
        if how == _RAISED:
            raise value
        return value

    def muster_calls(self, calls: List[Tuple[str, Any, Any, int]]
                     ) -> Iterator[Tuple[int, Any]]:
        """Have the process call methods, one after the other: (name, args, kwargs, when
        it is too late), some sent ahead of the answers of those before. Gives what became
        of each."""
        packed = [_packed_call(*call) for call in calls]
        with self._lock:
            if self._process.poll() is None:
                yield from self._make_calls(packed)
        code = self._process.poll()
        how = "it has ended" if code is None else how_ended(code)
        while True:
            yield _UNBEGUN, hosting.LostBefore(how)

    def _make_calls(self, packed: List[Union[bytes, Exception]]
                    ) -> Iterator[Tuple[int, Any]]:
        """Up to one that ends the actor."""
        sent = ahead = 0
        is_open = True
        for number, data in enumerate(packed):
            while is_open and sent < len(packed) and (
                    sent <= number or ahead + _size_of(packed[sent]) <= _AHEAD_BYTES):
                is_open = self._send(packed[sent])
                ahead += _size_of(packed[sent])
                sent += is_open
            if isinstance(data, Exception):
                yield _RAISED, data
                continue
            try:
                kind, value = self._receive() if sent > number else ("", None)
            except (EOFError, OSError):
                yield _RAISED, self._lost()
                return
            if kind in ("died", ""):
                self._skip_answers(packed[number + 1:sent])
                if kind:
                    yield _RAISED, hosting.Died(value)
                return
            ahead -= len(data)
            yield self._outcome(kind, value)

    def _send(self, data: Union[bytes, Exception]) -> bool:
        """Whether it was sent: none is once the process has ended."""
        try:
            if isinstance(data, bytes):
                self._connection.send_bytes(data)
            return True
        except OSError:
            self._lost()
            return False

    def _skip_answers(self, sent: List[Union[bytes, Exception]]) -> None:
        try:
            for data in sent:
                if isinstance(data, bytes):
                    self._receive()
        except (EOFError, OSError):
            pass

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


def _packed_call(name: str, args: Any, kwargs: Any, due_ms: int
                 ) -> Union[bytes, Exception]:
    try:
        return DO + _pickled(("call", name, args, kwargs or {}, due_ms))
    except Exception as error:
        return error


def _size_of(data: Union[bytes, Exception]) -> int:
    return len(data) if isinstance(data, bytes) else 0


def _pickled(value: Any) -> bytes:
    try:
        data = pickle.dumps(value, 5)
        if b"__main__" not in data:
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    return _pickling.dumps_function(value)
