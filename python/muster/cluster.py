"""A cluster of processes on this machine."""

from __future__ import annotations

import atexit
import contextlib
import html
import multiprocessing
import os
import queue
import re
import sys
import threading
import time
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping,
                    Optional, Tuple, TypedDict, Union)

from . import _muster, _scope, errors
from ._processes import AUTHKEY
from ._supervisor import Supervisor

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The variable with the most functions that an executor process runs.
_TASKS = "MUSTER_PYTHON_TASKS_PER_CHILD"

# Variables of another task or program, which `muster run` would read.
_OF_OTHERS = (_TASKS, "MUSTER_PYTHON_MODULE", "MUSTER_COUNTS", "MUSTER_STATUS_FILE")

# Flags of `muster run` for the number of tasks; --counts is for all other types.
_COUNT_FLAGS = {"worker": "--workers", "ps": "--ps", "evaluator": "--evaluator"}

_open: "weakref.WeakSet[LocalCluster]" = weakref.WeakSet()

_NOW_SECONDS = 0.3         # from SIGTERM to SIGKILL after Ctrl-C
_LOST_SECONDS = 0.2        # patience for the end of a process that is lost
_DROPPED_SECONDS = 0.2     # interval of checking whether a node is still used


def _close_all() -> None:
    for cluster in list(_open):
        cluster.close(0.5)


atexit.register(_close_all)


def _end(node: "Optional[_muster.Node]", supervisor: Optional[Supervisor],
         timeout: float) -> None:
    """End the job and all processes."""
    if supervisor is None:      # that was done
        return
    try:
        supervisor.stop(timeout if node is not None else 0)
        if node is not None:
            with contextlib.suppress(errors.MusterError):
                node.finish_job(timeout=max(0.0, min(timeout, 2.0)))
        supervisor.join()
        if node is not None:
            node.close(timeout)
    except BaseException:   # Ctrl-C while it waited
        _end_now(node, supervisor)
        raise


def _end_now(node: "Optional[_muster.Node]", supervisor: Optional[Supervisor]) -> None:
    """End all processes at once, whatever runs there."""
    try:
        if supervisor is not None:
            supervisor.stop(0, _NOW_SECONDS)
            supervisor.join()
    finally:
        if node is not None:
            node.close(0)


def _end_dropped(dropped: "queue.SimpleQueue[bool]", nodes: "List[_muster.Node]",
                 supervisor: Supervisor) -> None:
    """End a cluster that was garbage collected, once its node is not used any more. The
    finalizer, which may take no lock and start no thread, says so by the queue."""
    from . import _coordinators

    if not dropped.get():
        return
    while not nodes[0].closed:
        time.sleep(_DROPPED_SECONDS)
        _coordinators.forget(nodes[0])
        if sys.getrefcount(nodes[0]) <= sys.getrefcount(_ONE[0]):
            _end(nodes.pop(), supervisor, 5.0)
            return


def _how_lost(task: str) -> str:
    """How the process of "/job:worker/task:1" was lost, for the error of a closure; ""
    when that is not known, also when two clusters here have lost such a process. A loss
    is often known by its link a little before it is seen here."""
    found = re.fullmatch(r"/job:(.+)/task:(\d+)", task)
    supervisors = [cluster._supervisor for cluster in list(_open)]
    limit = time.monotonic() + _LOST_SECONDS
    while found is not None:
        tasks = [supervisor.tasks.get(f"{found[1]}/{found[2]}", {})
                 for supervisor in supervisors if supervisor is not None]
        known = [task["end"] for task in tasks if task.get("exit_code")]
        if known:
            return f"; its process last {known[0]}" if len(known) == 1 else ""
        if not tasks or time.monotonic() > limit:
            break
        time.sleep(0.005)
    return ""


errors._how_lost = _how_lost

_ONE = [object()]   # has the reference count of an object in one list only


_KINDS: Dict[Any, str] = {int: "an int", str: "a str", Mapping: "a dict",
                          Iterable: "a list"}
# Options of a node that say which task it is.
_OF_ONE = {"task_type", "task_index", "bind_address", "advertise_address"}
_LEVELS = {"error": 0, "warn": 1, "info": 2, "debug": 3}


def _check(**arguments: Any) -> None:
    """Raise TypeError for an argument that is not of its class."""
    for name, (value, cls) in arguments.items():
        if not isinstance(value, cls) or (cls is int and isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r}, expected {_KINDS[cls]}")


def _flags(options: Mapping[str, Any]) -> List[str]:
    """Options of a node as flags of `muster node`; seconds become milliseconds."""
    flags = []
    for name, value in options.items():
        if value is None:
            continue
        kind, field = _muster.NODE_OPTIONS[name]
        if kind == "float":
            if not isinstance(value, (int, float)):
                raise TypeError(f"{name} is {value!r}, expected seconds")
            value = int(round(value * 1000))
        if isinstance(value, bool):
            value = int(value)
        flags.append(f"--{field.replace('_', '-')}={value}")
    return flags


class ClusterOptions(TypedDict, total=False):
    """Of every node of a cluster; times are in seconds. muster/node.h says what each is
    for."""

    cluster_name: Optional[str]
    resolve: Optional[float]
    window: Optional[int]
    queue_max: Optional[int]
    attempts_max: Optional[int]
    queue_bytes_max: Optional[int]
    retries_max: Optional[int]
    recovery: Optional[float]
    start_delay: Optional[float]
    start_delay_max: Optional[float]
    server_failures: Optional[int]
    server_failures_window: Optional[float]
    server_lost: Optional[float]
    backups: Optional[int]
    strict: Optional[bool]
    effect_wait: Optional[float]
    timeouts: Optional[int]
    unknown_is_worker: Optional[bool]
    backup_percent: Optional[int]
    watchdog: Optional[float]
    measure: Optional[bool]
    journal: Optional[str]
    journal_sync: Optional[bool]
    ps_journal: Optional[str]
    heartbeat: Optional[float]
    silence: Optional[float]
    service_hosts: Optional[str]
    store: Optional[str]
    store_sync: Optional[bool]
    run: Optional[str]
    coordinated_jobs: Optional[str]
    recoverable: Optional[str]
    suspect: Optional[float]
    dead: Optional[float]
    reconnect: Optional[float]
    stuck: Optional[float]
    leave: Optional[float]
    lease: Optional[float]
    plugin_timeout: Optional[float]
    worker_types: Optional[str]
    spin_us: Optional[int]
    orphan: Optional[float]
    journal_keep: Optional[int]
    journal_keep_window: Optional[float]
    key_file: Optional[str]
    tls_ca: Optional[str]
    tls_certificate: Optional[str]
    tls_private_key: Optional[str]
    tls_any_task: Optional[bool]
    insecure: Optional[bool]
    wire: Optional[str]


class NodeOptions(ClusterOptions, total=False):
    """Of one node."""

    task_type: Optional[str]
    task_index: Optional[int]
    bind_address: Optional[str]
    advertise_address: Optional[str]
    threads: Optional[int]
    log_level: Optional[int]
    processes: int
    resolver: Any


class LocalCluster:
    """Worker and parameter server processes on this machine, with this process as chief.

    workers, ps: number of tasks of each type; counts: of your own task types, {"gpu": 2}.
    threads: functions that run at a time in each worker.
    processes: run Python functions in this many processes of each worker, one at a time
    in each, instead of in threads of one interpreter; 0: in threads.
    max_tasks_per_child: after so many functions a process is replaced by a new one, for
    functions that leak; None: processes run any number.
    python: names of modules that every task imports before it serves.
    plugins: shared objects with functions in C, for every task and the chief.
    env: environment variables for the tasks, in addition to this process's own.
    restart: whether tasks that die are restarted, at most restarts_max times in a row.
    on_line: called as on_line("worker/0", "out" or "err", line) for each line that a task
    prints; by default lines go to sys.stdout and sys.stderr, prefixed with the task's
    name.
    transport: "ipc" (unix sockets) or "tcp" (ports on loopback).
    log_level: "error", "warn", "info" or "debug", of the tasks' logs, which go to the
    logger "muster".
    of_nodes: options of every node, named as in Node(): heartbeat=0.2, server_lost=3,
    backups=0 (no other parameter server has what each has, too).

    Returns at once: scheduled closures wait for workers. A context manager. The processes
    also end when the cluster is garbage collected, and when this process ends, even if it
    is killed.
    """

    def __init__(self, workers: int = 2, ps: int = 0, *, threads: int = 1,
                 processes: int = 0, max_tasks_per_child: Optional[int] = None,
                 counts: Optional[Mapping[str, int]] = None,
                 python: Union[str, Iterable[str]] = (), plugins: Iterable[str] = (),
                 env: Optional[Mapping[str, str]] = None, restart: bool = True,
                 restarts_max: int = 20,
                 on_line: Optional[Callable[[str, str, str], Any]] = None,
                 transport: str = "ipc", log_level: str = "warn",
                 **of_nodes: Unpack[ClusterOptions]) -> None:
        options: Dict[str, Any] = dict(of_nodes)
        _check(workers=(workers, int), ps=(ps, int), threads=(threads, int),
               processes=(processes, int),
               restarts_max=(restarts_max, int), log_level=(log_level, str),
               transport=(transport, str), counts=(counts or {}, Mapping),
               env=(env or {}, Mapping), plugins=(plugins, Iterable),
               python=(python, Iterable))
        if on_line is not None and not callable(on_line):
            raise TypeError(f"on_line is {on_line!r}, expected a callable")
        if log_level not in _LEVELS:
            raise ValueError(f"log_level is {log_level!r}, expected one of "
                             f"{', '.join(_LEVELS)}")
        for name, text in (env or {}).items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise TypeError(f"env has {name!r}: {text!r}, expected texts")
        self._cluster: Dict[str, List[str]] = {}
        self._process = os.getpid()
        self._node: Optional[_muster.Node] = None
        self._supervisor: Optional[Supervisor] = None
        self._dropped: "queue.SimpleQueue[bool]" = queue.SimpleQueue()
        self._finalizer: Any = None
        wanted = {"worker": workers, "ps": ps, **(counts or {})}
        for task_type, count in wanted.items():
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise ValueError(f"the number of {task_type} tasks is {count!r}, "
                                 "expected 0 or more")
        if transport not in ("ipc", "tcp"):
            raise ValueError(f'transport is {transport!r}, expected "ipc" or "tcp"')
        if threads < 1:
            raise ValueError(f"threads is {threads!r}, expected 1 or more")
        if processes < 0:
            raise ValueError(f"processes is {processes!r}, expected 0 or more")
        if max_tasks_per_child is not None and (
                max_tasks_per_child < 1 or not processes):
            raise ValueError(f"max_tasks_per_child is {max_tasks_per_child!r}, expected "
                             "1 or more, together with processes")
        if processes and threads != 1:
            raise ValueError("threads and processes were given: a worker has one thread "
                             "for each of its processes")
        unknown = set(options) - set(_muster.NODE_OPTIONS) | set(options) & _OF_ONE
        if unknown:
            raise TypeError(f"LocalCluster() got unexpected options {sorted(unknown)}")
        if counts and "worker_types" not in options:
            options["worker_types"] = ",".join(["worker", *counts])
        self._modules = [python] if isinstance(python, str) else list(python)
        self._plugins = [os.path.abspath(path) for path in plugins]
        self._threads, self._processes = threads, processes
        self._max_tasks = max_tasks_per_child
        self._log_level, self._options = log_level, options
        flags = ["--transport", transport, "--restart", "on-failure", "--restart-max",
                 str(restarts_max if restart else 0), *self._task_flags(wanted)]
        names = [f"{task_type}/{index}" for task_type, count in wanted.items()
                 for index in range(count)]
        self._supervisor = Supervisor(names, flags, self._environment(env), on_line)
        try:
            self._supervisor.start()
            self._cluster = self._supervisor.cluster
            self._node = self._open_chief()
        except BaseException:
            self.close(0)
            raise
        _open.add(self)
        self._finalizer = weakref.finalize(self, self._dropped.put, True)
        self._finalizer.atexit = False
        threading.Thread(target=_end_dropped, name="muster-dropped", daemon=True,
                         args=(self._dropped, [self._node], self._supervisor)).start()

    # ---- starting ----

    def _environment(self, env: Optional[Mapping[str, str]]) -> Dict[str, str]:
        variables = {name: value for name, value in os.environ.items()
                     if name not in _OF_OTHERS}
        paths = [path or os.getcwd() for path in sys.path]
        variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
        # For proxies of a multiprocessing.Manager, as in children of multiprocessing.
        variables[AUTHKEY] = multiprocessing.current_process().authkey.hex()
        if self._max_tasks is not None:
            variables[_TASKS] = str(self._max_tasks)
        variables.update(env or {})
        return variables

    def _task_flags(self, wanted: Mapping[str, int]) -> List[str]:
        flags = ["--chief", "1", "--threads", str(self._threads),
                 "--processes", str(self._processes),
                 "--log-format", "json", "--log-level", self._log_level]
        for task_type, flag in _COUNT_FLAGS.items():
            flags += [flag, str(wanted.get(task_type, 0))]
        own = [f"{task_type}={count}" for task_type, count in wanted.items()
               if count > 0 and task_type not in _COUNT_FLAGS]
        if own:
            flags += ["--counts", ",".join(own)]
        for module in self._modules:
            flags += ["--python", module]
        for plugin in self._plugins:
            flags += ["--plugin", plugin]
        return [*flags, "--grace-ms", "1000", *_flags(self._options)]

    def _open_chief(self) -> _muster.Node:
        options = {"log_level": _LEVELS[self._log_level], **self._options}
        node = _muster.Node(self._cluster, task_type="chief", task_index=0, processes=0,
                            **options)
        for plugin in self._plugins:
            node.load_plugin(plugin)
        return node

    # ---- what it is ----

    @property
    def node(self) -> _muster.Node:
        """The chief, in this process."""
        if self._node is None:
            raise errors.ClosedError("the cluster was closed")
        return self._node

    @property
    def cluster_spec(self) -> Dict[str, List[str]]:
        """The addresses of its tasks, by type."""
        return {job: list(listed) for job, listed in self._cluster.items()}

    @property
    def tasks(self) -> List[Dict[str, Any]]:
        """Its processes: type, index, pid, state, restarts, exit_code."""
        if self._supervisor is None:
            return []
        return [{"type": name.split("/")[0], "index": int(name.split("/")[1]),
                 "pid": task["pid"], "state": task["state"],
                 "restarts": task["restarts"], "exit_code": task.get("exit_code")}
                for name, task in list(self._supervisor.tasks.items())]

    def pid(self, task_type: str, index: int) -> Optional[int]:
        """The pid of a task's process, None while it has none."""
        for task in self.tasks:
            if (task["type"], task["index"]) == (task_type, index):
                pid: Optional[int] = task["pid"]
                return pid
        raise errors.NotFoundError(f"there is no {task_type}/{index} in the cluster")

    def kill(self, task_type: str, index: int, signal: int = 9) -> int:
        """Send a signal to a task's process, SIGKILL by default; returns its pid."""
        self._refuse_fork()
        pid = self.pid(task_type, index)
        if pid is None:
            raise errors.UnavailableError(f"{task_type}/{index} has no process now")
        os.kill(pid, signal)
        return pid

    def wait(self, timeout: Optional[float] = 60.0) -> "LocalCluster":
        """Wait until all tasks are connected, and those that run closures are ready for
        them. DeadlineExceededError names the missing ones; FailedPreconditionError: a
        task has ended and is not restarted."""
        self._refuse_fork()
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            missing = self._missing()
            if not missing:
                return self
            for task in self.tasks:
                if task["state"] == "ended":
                    raise errors.FailedPreconditionError(
                        f"{task['type']}/{task['index']} ended with exit code "
                        f"{task['exit_code']} and is not started again")
            if limit is not None and time.monotonic() >= limit:
                raise errors.DeadlineExceededError(
                    f"{', '.join(missing)} did not connect within {timeout} s")
            time.sleep(0.005)

    def _refuse_fork(self) -> None:
        if self._process != os.getpid():
            raise errors.ClosedError("this process was forked after the cluster was "
                                     "started: it is that of its parent alone")

    def _missing(self) -> List[str]:
        # A task has threads in the status once it has offered itself to the chief.
        runs = str(self._options.get("worker_types", "worker")).split(",")
        up = {(task["type"], task["index"])
              for task in self.node.status(5.0).get("tasks", ())
              if task["state"] == "up" and ("threads" in task
                                            or task["type"] not in runs)}
        return [f"{task['type']}/{task['index']}" for task in self.tasks
                if (task["type"], task["index"]) not in up]

    # ---- the end ----

    def close(self, timeout: float = 5.0) -> None:
        """End the job and all processes: those that have not ended after timeout seconds
        are killed. Does nothing in a forked child: the cluster belongs to the parent."""
        if self._process == os.getpid():
            node, supervisor = self._leave()
            _end(node, supervisor, timeout)

    def _close_now(self) -> None:
        """After Ctrl-C: end all processes at once, whatever runs there."""
        if self._process == os.getpid():
            node, supervisor = self._leave()
            _end_now(node, supervisor)

    def _leave(self) -> "Tuple[Any, Optional[Supervisor]]":
        """What is to be ended; there is nothing left of it here."""
        node, self._node = self._node, None
        supervisor, self._supervisor = self._supervisor, None
        if self._finalizer is not None:
            self._finalizer.detach()
            self._dropped.put(False)
        _open.discard(self)
        _scope.pop(self)
        return node, supervisor

    def __reduce__(self) -> Any:
        raise TypeError(
            "a LocalCluster cannot be sent to workers (an argument, or a variable that "
            "the function uses, is one); in a function, current_run().node is the node "
            "of the worker")

    def __enter__(self) -> "LocalCluster":
        self.node  # noqa: B018  (raises when it is closed)
        _scope.push(self)
        return self

    def __exit__(self, kind: Optional[type] = None, *_: Any) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._close_now()
        else:
            self.close()

    # ---- for people ----

    def __repr__(self) -> str:
        if self._node is None:
            return "<muster.LocalCluster: closed>"
        counts: Dict[str, int] = {}
        for task in self.tasks:
            counts[task["type"]] = counts.get(task["type"], 0) + 1
        words = ", ".join(f"{count} {job}" for job, count in counts.items())
        return f"<muster.LocalCluster: {words}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in (
                f"{task['type']}/{task['index']}", task["pid"] or "", task["state"],
                task["restarts"])) + "</tr>" for task in self.tasks)
        return (f"<div><b>{html.escape(repr(self))}</b><table><thead><tr><th>task</th>"
                "<th>pid</th><th>state</th><th>restarts</th></tr></thead><tbody>"
                f"{rows}</tbody></table></div>")
