"""Starts the tasks of a LocalCluster, reads their output, and restarts those that died.
Runs on one thread, which is the parent of the processes: the kernel kills them with
it."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _muster

_logger = logging.getLogger("muster")

_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO,
           "debug": logging.DEBUG}

_BACKOFF_FIRST = 0.05
_BACKOFF_MAX = 5.0
_STEADY = 30.0          # seconds after which a task's restarts are counted from 0
_LINE_MAX = 1 << 20     # bytes
_TERM_SECONDS = 3.0     # from SIGTERM to SIGKILL
_USAGE = 2              # exit code of a usage error: the task is not restarted


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


class Task:
    """A task and its process."""

    def __init__(self, task_type: str, index: int, command: List[str],
                 environment: Dict[str, str]) -> None:
        self.type = task_type
        self.index = index
        self.command = command
        self.environment = environment
        self.process: Optional["subprocess.Popen[bytes]"] = None
        self.pidfd = -1
        self.state = "new"          # running, restarting, ended
        self.restarts = 0
        self.in_a_row = 0
        self.started = 0.0
        self.restart_at = 0.0
        self.exit_code: Optional[int] = None
        self.how_lost = ""          # the last end that was no success
        self.rest: Dict[str, bytes] = {"out": b"", "err": b""}

    @property
    def name(self) -> str:
        """"worker/1"."""
        return f"{self.type}/{self.index}"

    @property
    def pid(self) -> Optional[int]:
        """The pid of the process, None while there is none."""
        process = self.process
        return process.pid if process is not None and self.state == "running" else None


class Supervisor:
    """Keeps tasks running until it is told to stop."""

    def __init__(self, tasks: List[Task], restarts_max: int,
                 on_line: Optional[Callable[[str, str, str], Any]]) -> None:
        self.tasks = tasks
        self._restarts_max = restarts_max
        self._on_line = on_line
        self._poll = select.poll()
        self._files: Dict[int, Tuple[Task, str, Any]] = {}
        self._wake_read, self._wake_write = os.pipe()
        self._poll.register(self._wake_read, select.POLLIN)
        self._stop_at: Optional[float] = None
        self._killing = False
        self._term_seconds = _TERM_SECONDS
        self._leaving = False
        self._call: Optional[Callable[[], Any]] = None
        self._started = threading.Event()
        self._lock = threading.Lock()       # of closing _wake_write
        self._failure: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._main, name="muster-supervisor",
                                        daemon=True)

    def start(self) -> None:
        """Start all tasks; raises what the first start raised."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def how_lost(self, name: str) -> str:
        """How a task's process was last lost, "" when none was."""
        return next((task.how_lost for task in self.tasks if task.name == name), "")

    def call(self, function: Callable[[], Any]) -> None:
        """Have a function called by the supervisor's thread. For finalizers: takes no
        lock and starts no thread."""
        self._call = function
        os.write(self._wake_write, b"x")

    def let_end(self) -> None:
        """Do not restart tasks any more."""
        self._leaving = True

    def stop(self, grace: float, term_seconds: float = _TERM_SECONDS) -> None:
        """Wait `grace` seconds for the tasks to end, then send them SIGTERM, and SIGKILL
        term_seconds later."""
        self._leaving = True
        self._term_seconds = term_seconds
        self._stop_at = time.monotonic() + grace
        try:
            with self._lock:
                if self._wake_write >= 0:
                    os.write(self._wake_write, b"x")
        except BrokenPipeError:
            pass    # all tasks had ended, and the thread has closed its end
        self._thread.join(grace + 10)
        with self._lock:
            if not self._thread.is_alive() and self._wake_write >= 0:
                os.close(self._wake_write)
                self._wake_write = -1

    # ---- the thread ----

    def _main(self) -> None:
        try:
            for task in self.tasks:
                self._spawn(task)
        except BaseException as error:
            self._failure = error
            self._stop_at = 0.0
        self._started.set()
        while not self._over():
            self._turn()
        self._poll.unregister(self._wake_read)
        os.close(self._wake_read)

    def _over(self) -> bool:
        return self._stop_at is not None and all(
            task.state != "running" for task in self.tasks)

    def _spawn(self, task: Task) -> None:
        task.process = subprocess.Popen(
            task.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=task.environment, start_new_session=True)
        task.state = "running"
        task.started = time.monotonic()
        for stream, file in (("out", task.process.stdout), ("err", task.process.stderr)):
            assert file is not None
            os.set_blocking(file.fileno(), False)
            self._files[file.fileno()] = (task, stream, file)
            self._poll.register(file.fileno(), select.POLLIN)
        task.pidfd = os.pidfd_open(task.process.pid)
        self._files[task.pidfd] = (task, "end", None)
        self._poll.register(task.pidfd, select.POLLIN)

    def _turn(self) -> None:
        for number, _ in self._poll.poll(self._patience()):
            if number == self._wake_read:
                os.read(self._wake_read, 64)
                call, self._call = self._call, None
                if call is not None:
                    threading.Thread(target=call, name="muster-dropped",
                                     daemon=True).start()
                continue
            task, stream, file = self._files.get(number, (None, "", None))
            if task is None:
                continue
            if stream == "end":
                self._ended(task)
            else:
                self._read(task, stream, number)
        now = time.monotonic()
        for task in self.tasks:
            if task.state == "restarting" and self._stop_at is not None:
                task.state = "ended"
            elif task.state == "restarting" and now >= task.restart_at:
                self._spawn(task)
        if self._stop_at is not None and now >= self._stop_at:
            self._end_all(now)

    def _patience(self) -> int:
        dues = [task.restart_at for task in self.tasks if task.state == "restarting"]
        if self._stop_at is not None:
            dues.append(self._stop_at)
        if not dues:
            return 60000
        return max(0, min(60000, int((min(dues) - time.monotonic()) * 1000) + 1))

    def _end_all(self, now: float) -> None:
        for task in self.tasks:
            if task.state == "running" and task.process is not None:
                if self._killing:
                    task.process.kill()
                else:
                    task.process.terminate()
        self._stop_at = now + (1.0 if self._killing else self._term_seconds)
        self._killing = True

    # ---- lines ----

    def _read(self, task: Task, stream: str, number: int) -> bool:
        try:
            data = os.read(number, 65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._forget(number)
            return False
        *lines, rest = (task.rest[stream] + data).split(b"\n")
        if len(rest) >= _LINE_MAX:      # the rest becomes the next line
            lines.append(rest)
            rest = b""
        task.rest[stream] = rest
        for line in lines:
            self._tell(task, stream, line)
        return True

    def _forget(self, number: int) -> None:
        _, stream, file = self._files.pop(number, (None, "", None))
        if not stream:
            return
        self._poll.unregister(number)
        if file is not None:
            file.close()
        else:
            os.close(number)

    def _tell(self, task: Task, stream: str, data: bytes) -> None:
        line = data.decode("utf-8", "replace").rstrip("\r")
        if stream == "err" and line.startswith('{"time":'):
            log = _log_of(line)
            if log is not None:
                _logger.log(*log)
                return
        try:
            if self._on_line is not None:
                self._on_line(task.name, stream, line)
                return
            out = sys.stdout if stream == "out" else sys.stderr
            if out is not None:
                out.write(f"[{task.name}] {line}\n")
                out.flush()
        except Exception:
            _logger.exception("a line of %s cannot be told", task.name)

    # ---- ends ----

    def _ended(self, task: Task) -> None:
        process = task.process
        assert process is not None
        for number, (owner, stream, _) in list(self._files.items()):
            if owner is task and stream != "end":
                while self._read(task, stream, number):
                    pass
                self._forget(number)
        for stream, rest in task.rest.items():      # of a last line without an end
            task.rest[stream] = b""
            if rest:
                self._tell(task, stream, rest)
        self._forget(task.pidfd)
        # Kill its process group: a forked child may hold its address.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        task.exit_code = process.wait()
        self._decide(task)

    def _decide(self, task: Task) -> None:
        code = task.exit_code
        how = f"was killed by signal {-code} ({signal.strsignal(-code)})" \
            if code is not None and code < 0 else f"ended with exit code {code}"
        task.how_lost = how if code != 0 else ""
        if self._stop_at is not None or self._leaving or code == 0:
            task.state = "ended"
            return
        if time.monotonic() - task.started >= _STEADY:
            task.in_a_row = 0
        if code == _USAGE or task.in_a_row >= self._restarts_max:
            task.state = "ended"
            _logger.error("%s %s and is not started again", task.name, how)
            return
        wait = min(_BACKOFF_FIRST * 2 ** task.in_a_row, _BACKOFF_MAX)
        task.in_a_row += 1
        task.restarts += 1
        task.restart_at = time.monotonic() + wait
        task.state = "restarting"
        _logger.warning("%s %s; it is started again in %.2f s", task.name, how, wait)
