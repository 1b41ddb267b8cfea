"""Executor processes as their worker sees them: how they are started, and what functions
in them ask of it. The other side is _process.py, the messages are in
src/process/process.h."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _muster, _worker

# The process gets the worker's import path.
_START = """
import json, sys
options = json.loads(sys.argv[1])
sys.path[:] = options["path"]
from muster._process import main
main(options)
"""

# How an interpreter is started for a LocalCluster: as by `-m muster`, but with its import
# path, and without the current directory.
LOCAL = ["-c", "import sys; del sys.path[0]; from muster import __main__, _processes; "
         "__main__.main(_processes.LOCAL)"]

# The variable with the chief's key of multiprocessing, see take_authkey().
AUTHKEY = "MUSTER_PYTHON_AUTHKEY"

_modules: List[str] = []        # of --python
_lock = threading.Lock()
_secret = ""                    # see src/process/frame.h


class Source(NamedTuple):
    """An object that each process makes from a pickle: a "function" or a "value"."""

    kind: str
    data: bytes
    name: str


def add_module(name: str) -> None:
    """Have processes that are started later import a module first."""
    _modules.append(name)


def take_authkey() -> None:
    """Use the key of multiprocessing that the LocalCluster's own process has, so that
    proxies of its managers can be arguments."""
    text = os.environ.get(AUTHKEY, "")
    if text:
        import multiprocessing

        multiprocessing.current_process().authkey = bytes.fromhex(text)


def buffer_lines() -> None:
    """Have each line that functions print leave this process at its end."""
    streams: Any = (sys.stdout, sys.stderr)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)


def _make_secret() -> str:
    global _secret
    with _lock:
        if not _secret:
            _secret = os.urandom(16).hex()
            _muster.frame_secret(_secret)
        return _secret


def command() -> List[str]:
    """The command line of a process: this interpreter, with its own flags."""
    import json
    import subprocess

    flags: List[str] = subprocess._args_from_interpreter_flags()  # type: ignore
    options = {"path": [path for path in sys.path if isinstance(path, str)],
               "modules": _modules, "parent": os.getpid(),
               "secret": _make_secret()}
    return [sys.executable or "python3", *flags, "-c", _START, json.dumps(options)]


def pickle_of(function: Callable[..., Any], name: str) -> Optional[bytes]:
    """The pickle of a registered function. None, with a line in the log, when it cannot
    be pickled: it then runs in the worker's threads."""
    import logging

    from . import _pickling

    try:
        return _pickling.dumps_function(function)
    except Exception as error:
        logging.getLogger("muster").warning(
            "the registered function %s cannot be pickled and runs in the worker's own "
            "process: %s", name, error)
        return None


def died(pid: int, words: str, closure: int) -> None:
    """Log that a process died while it ran a closure; the thread starts another one."""
    import logging

    logging.getLogger("muster").warning("closure %d: %s (pid %d)", closure, words, pid)


# ---- requests of functions ----

def _source(number: int) -> Tuple[str, bytes, str]:
    found = _muster.held(number)
    if isinstance(found, Source):
        return found.kind, found.data, found.name
    return "iterator", b"", ""


def _next(number: int) -> Any:
    return next(_muster.held(number))


def _facts() -> Dict[str, Any]:
    run = _muster.current_run()
    return {"worker": run.worker, "worker_type": run.worker_type, "attempt": run.attempt,
            "closure": run.closure, "name": run.name}


def _call(target: str, name: str, *args: Any, **kwargs: Any) -> Any:
    run = _muster.current_run()
    value = getattr(run if target == "run" else run.node, name)
    return value(*args, **kwargs) if callable(value) else value


def _open(**options: Any) -> Tuple[str, str, Tuple[int, ...], bool]:
    """Open a variable for a process; it stays open in the worker."""
    from .variable import Variable

    variable = Variable(**options)
    what = variable.name, str(variable.dtype), variable.shape, variable.same
    _worker.keep_variable(variable)
    return what


def _member(name: str, opened: Any, *args: Any, **kwargs: Any) -> Any:
    """Of a variable or a table."""
    value = getattr(opened, name)
    return value(*args, **kwargs) if callable(value) else value


def _open_table(**options: Any) -> None:
    """Create a table for a process, which then names it as those that came with a
    closure."""
    from .table import Table

    Table(**options).close()


_ANSWERS: Dict[str, Callable[..., Any]] = {
    "source": _source, "next": _next, "facts": _facts, "call": _call,
    "open": _open, "open_table": _open_table, "member": _member,
}


def _answer_of(what: str) -> Callable[..., Any]:
    if not what.startswith("actor_"):
        return _ANSWERS[what]
    from .actors import far

    answer: Callable[..., Any] = far.ANSWERS[what]
    return answer


def serve(what: str, *args: Any, **kwargs: Any) -> Tuple[bool, Any]:
    """Answer a request of a process, on the thread of its run: (True, value), or (False,
    the parts of an exception)."""
    try:
        return True, _answer_of(what)(*args, **kwargs)
    except BaseException as error:
        failed = _worker.failed(error)
        return False, (failed.data, failed.words, failed.text, failed.code)
