"""The program that starts the tasks of a LocalCluster, `muster run --control`: it
restarts those that died, and ends with this process. docs/manual/muster.md has its events
and commands."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from . import _muster, errors
from ._processes import LOCAL

_logger = logging.getLogger("muster")

_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO,
           "debug": logging.DEBUG}

_TERM_SECONDS = 3.0     # from SIGTERM to SIGKILL
_LATE_SECONDS = 10.0    # after which a program that has not ended is killed

_started: "weakref.WeakSet[Supervisor]" = weakref.WeakSet()


def _log_of(line: str) -> Optional[Tuple[Any, ...]]:
    """Parse a line of the library's log; None for a line that only looks like one,
    printed by a function."""
    try:
        log = json.loads(line)
        level, task, who = log["level"], log["task"], log["who"]
        return (_LEVELS[level], "%s %s: %s", task, who,
                _muster.own_names(log["message"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class Supervisor:
    """Keeps tasks running until it is told to stop. `tasks` has what is known of each, by
    name, and `cluster` the addresses of all."""

    def __init__(self, names: Iterable[str], flags: List[str],
                 environment: Dict[str, str],
                 on_line: Optional[Callable[[str, str, str], Any]]) -> None:
        self.tasks: Dict[str, Dict[str, Any]] = {
            name: {"pid": None, "state": "new", "restarts": 0} for name in names}
        self.cluster: Dict[str, List[str]] = {}
        self._command = [sys.executable, *LOCAL, "run", "--control", *flags]
        self._environment = environment
        self._on_line = on_line
        self._process: Any = None
        self._thread = threading.Thread(target=self._main, name="muster-supervisor",
                                        daemon=True)
        self._started = threading.Event()
        self._why = ""
        self._limit = 0.0

    def start(self) -> None:
        """Start all tasks."""
        self._process = subprocess.Popen(
            self._command, env=self._environment, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        _started.add(self)
        self._thread.start()
        self._started.wait()
        if not self.cluster:
            raise errors.FailedPreconditionError("the tasks cannot be started: "
                                                 f"{self._why or 'see standard error'}")

    def stop(self, leave: float, term: float = _TERM_SECONDS) -> None:
        """Begin the end: tasks that have not ended by themselves after `leave` seconds
        get SIGTERM, and SIGKILL `term` seconds later. None is restarted."""
        leave = max(0.0, min(leave, 3600.0))
        self._limit = time.monotonic() + leave + term + _LATE_SECONDS
        command = {"command": "stop", "leave_ms": int(leave * 1000),
                   "kill_ms": int(term * 1000)}
        if self._process is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):      # it has ended
                os.write(self._process.stdin.fileno(),
                         json.dumps(command).encode() + b"\n")

    def join(self) -> None:
        """Wait for the end."""
        if self._process is None:
            return
        if self._thread.is_alive():
            self._thread.join(max(0.0, self._limit - time.monotonic()))
        self._process.stdin.close()
        if self._thread.is_alive():
            self._process.kill()

    # ---- the thread ----

    def _main(self) -> None:
        for line in self._process.stdout:
            event = json.loads(line)
            getattr(self, f"_hear_{event.pop('event')}")(**event)
        self._process.wait()
        self._process.stdout.close()
        if self.cluster and self._limit == 0:
            _logger.error("the tasks have ended: their supervisor was lost")
        for name, task in self.tasks.items():
            self.tasks[name] = {**task, "pid": None, "state": "ended"}
        self._started.set()

    def _hear_ready(self, cluster: Dict[str, List[str]]) -> None:
        self.cluster = cluster
        self._started.set()

    def _hear_task(self, task: str, status: Dict[str, Any]) -> None:
        if " by signal " in status.get("end", ""):
            status["exit_code"] = 128 - status["exit_code"]
        self.tasks[task] = status

    def _hear_line(self, task: str, stream: str, text: str) -> None:
        line = text.rstrip("\r")
        if stream == "err" and line.startswith('{"time":'):
            log = _log_of(line)
            if log is not None:
                _logger.log(*log)
                return
        try:
            if self._on_line is not None:
                self._on_line(task, stream, line)
                return
            out = sys.stdout if stream == "out" else sys.stderr
            if out is not None:
                out.write(f"[{task}] {line}\n")
                out.flush()
        except Exception:
            _logger.exception("a line of %s cannot be told", task)

    def _hear_log(self, level: str, message: str) -> None:
        _logger.log(_LEVELS[level], "%s", message)

    def _hear_finished(self, exit_code: int, message: str) -> None:
        self._why = message


def _after_fork() -> None:
    # The program sees the end of the parent when the parent alone has the pipe.
    for supervisor in list(_started):
        supervisor._process.stdin.close()


os.register_at_fork(after_in_child=_after_fork)
