"""An executor process: runs Python functions for a worker, one at a time, on its main
thread. Requests of a function to its run go to the worker: see _processes.py."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from . import (_muster, _processes, _scope, _worker, errors, initializers,
               optimizers)
from ._pickling import plain
from ._variable.arrays import out_of
from ._variable.dtypes import dtype_of
from ._variable.rows import listed, ranged
from .variable import Variable as _BaseVariable
from .table import Table as _BaseTable

_SOCKET = 3
_objects: Dict[int, Any] = {}   # this process's objects, by the worker's numbers
serves = False                  # whether this process is an executor process


def ask(what: str, *args: Any, **kwargs: Any) -> Any:
    """Send a request to the worker; returns the result or raises its exception."""
    fine, value = _muster.process_ask(what, *args, **kwargs)
    if fine:
        return value
    error = _worker.Failed(*value).exception()
    if isinstance(error, errors.MusterError):
        error._of_call = True
    raise error


# ---- objects ----

class _Iterator(Iterator[Any]):
    """An iterator that is a per-worker value: it lives in the worker, for all its
    processes."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __next__(self) -> Any:
        return ask("next", self._number)


def _make(number: int) -> Any:
    kind, data, name = ask("source", number)
    if kind == "iterator":
        return _Iterator(number)
    if kind == "function":
        return _worker.load_function(data, name)
    return _worker.build(data, name, "value")


def object_of(number: int, first: bool = False) -> Any:
    """A function or per-worker value in this process, made on first use. With `first` its
    own error is raised, later an InputError."""
    if number in _objects:
        return _objects[number]
    try:
        made = _make(number)
    except Exception as error:
        if first:
            raise
        raise errors.InputError("an input could not be built in a process of the worker: "
                                f"{type(error).__name__}: {error}",
                                kind="input") from error
    _objects[number] = made
    return made


def make(number: int) -> None:
    """Make the object that was sent to the worker."""
    object_of(number, True)


def forget(number: int) -> None:
    """The worker has dropped an object."""
    _objects.pop(number, None)


# ---- the run ----

class Node:
    """The worker's node, for functions in its processes: its attributes and settings."""

    closed = False
    _ATTRIBUTES = ("task", "address")
    _METHODS = ("status", "explain", "report_metric", "get_metric", "task_count",
                "set_setting", "get_setting")

    def __getattr__(self, name: str) -> Any:
        if name in self._ATTRIBUTES:
            return ask("call", "node", name)
        if name in self._METHODS:
            return lambda *args, **kwargs: ask("call", "node", name, *args, **kwargs)
        raise AttributeError(f"a function in an executor process has no {name!r} of its "
                             "worker's node")

    def __repr__(self) -> str:
        return f"<muster.Node {self.task}, seen from an executor process>"


def _rule_of(rate: Any) -> Any:
    """What an optimizer says, or a number."""
    return rate.rule() if hasattr(rate, "rule") else rate


class Run:
    """The run of a function in this process, like muster.Run in a thread."""

    def __init__(self) -> None:
        self._facts: Optional[Dict[str, Any]] = None
        self.has_written = False

    def _is_current(self) -> bool:
        current: Any = _muster.current_run()
        return current is self

    def _ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        if not self._is_current():
            raise errors.FailedPreconditionError("the run has ended")
        return ask(what, *args, **kwargs)

    def _write(self, method: str, *args: Any) -> None:
        self._ask("call", "run", method, *args)
        self.has_written = True

    def _fact(self, name: str) -> Any:
        facts = self._facts
        if facts is None or not self._is_current():
            facts = self._facts = self._ask("facts")
        return facts[name]

    worker = property(lambda self: self._fact("worker"), doc="Task index of the worker.")
    worker_type = property(lambda self: self._fact("worker_type"),
                           doc="The worker's task type.")
    attempt = property(lambda self: self._fact("attempt"),
                       doc="The number of this run, from 1.")
    closure = property(lambda self: self._fact("closure"), doc="The closure's number.")
    name = property(lambda self: self._fact("name"),
                    doc='The closure\'s name, "" when it has none.')

    @property
    def node(self) -> Node:
        """The worker's node, with the part of its interface that a process has."""
        return Node()

    def cancelled(self) -> bool:
        """Whether the result is not needed any more: stop early."""
        return bool(self._ask("call", "run", "cancelled"))

    def log(self, line: Any) -> None:
        """Write a line, of at most 511 bytes, to the node's log."""
        self._ask("call", "run", "log", str(line))

    def report_metric(self, name: str, number: float, step: int = 0) -> None:
        """Send a number to the chief, for its status and Node.get_metric()."""
        self._ask("call", "run", "report_metric", name, number, step)

    def add(self, variable: Any, value: Any) -> None:
        """Add to a variable once the function has returned."""
        self._write("add", variable, value)

    def assign(self, variable: Any, value: Any) -> None:
        """Replace a variable's content once the function has returned."""
        self._write("assign", variable, value)

    def scatter_add(self, variable: Any, sparse_delta: Any, values: Any = None) -> None:
        """Add to rows of a variable once the function has returned."""
        self._write("scatter_add", variable, *listed(variable, sparse_delta, values))

    def scatter_update(self, variable: Any, sparse_delta: Any,
                       values: Any = None) -> None:
        """Replace rows of a variable once the function has returned."""
        self._write("scatter_update", variable, *listed(variable, sparse_delta, values))

    def scatter_min(self, variable: Any, sparse_delta: Any, values: Any = None) -> None:
        """Lower rows of a variable to the smaller of both once the function has
        returned."""
        self._write("scatter_min", variable, *listed(variable, sparse_delta, values))

    def scatter_max(self, variable: Any, sparse_delta: Any, values: Any = None) -> None:
        """Raise rows of a variable to the larger of both once the function has
        returned."""
        self._write("scatter_max", variable, *listed(variable, sparse_delta, values))

    def scatter_mul(self, variable: Any, sparse_delta: Any, values: Any = None) -> None:
        """Multiply rows of a variable once the function has returned."""
        self._write("scatter_mul", variable, *listed(variable, sparse_delta, values))

    def scatter_div(self, variable: Any, sparse_delta: Any, values: Any = None) -> None:
        """Divide rows of a variable once the function has returned."""
        self._write("scatter_div", variable, *listed(variable, sparse_delta, values))

    def add_rows(self, variable: Any, first: int, values: Any) -> None:
        """Add to the rows from `first` on once the function has returned."""
        self._write("add_rows", variable, *ranged(variable, first, values))

    def assign_rows(self, variable: Any, first: int, values: Any) -> None:
        """Replace the rows from `first` on once the function has returned."""
        self._write("assign_rows", variable, *ranged(variable, first, values))

    def apply_gradient(self, variable: Any, gradient: Any, rate: Any,
                       momentum: float = 0.0) -> None:
        """Apply a gradient once the function has returned."""
        self._write("apply_gradient", variable, gradient, _rule_of(rate), momentum)


class Variable(_BaseVariable):
    """A variable in a function: the worker opens, reads and writes it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(_BaseVariable.__init__).bind(self, *args, **kwargs)
        options = dict(list(bound.arguments.items())[1:])
        initial = options.get("initial_value")
        by_name = hasattr(initial, "_parameters")   # an Initializer
        if callable(initial) and not by_name:
            options["initial_value"] = options["initial_value"]()
        if callable(options.get("shards")):
            options["shards"] = _scope.shards_of(
                options["shards"], None if by_name else options.get("initial_value"),
                options.get("shape"), options.get("dtype"))
        if isinstance(options.get("node"), Node):
            del options["node"]
        self._what: Tuple[str, str, Tuple[int, ...], bool] = ask("open", **options)
        self.trainable = options.get("trainable") in (None, True)

    @classmethod
    def known(cls, name: str, dtype: str, shape: Tuple[int, ...],
              same: bool) -> "Variable":
        """A variable that came with a closure."""
        variable: "Variable" = cls.__new__(cls)
        variable._what = (name, dtype, tuple(shape), same)
        variable.trainable = True
        return variable

    def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return ask("member", method, self, *args, **kwargs)

    def __reduce__(self) -> Any:
        return (_worker.open_variable, self._what)

    @property
    def name(self) -> str:
        """Its name."""
        return self._what[0]

    @property
    def dtype(self) -> Any:
        """Its numpy.dtype."""
        return dtype_of(self._what[1])

    @property
    def shape(self) -> Tuple[int, ...]:
        """Its dimensions."""
        return self._what[2]

    @property
    def same(self) -> bool:
        """Whether it is for the content it was opened with."""
        return self._what[3]

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return int(self._ask("nbytes"))

    @property
    def shards(self) -> int:
        """The requested number of shards; 0: by its size."""
        return int(self._ask("shards"))

    @property
    def node(self) -> Any:
        """The worker's node."""
        return _muster.current_run().node

    def read(self, timeout: Optional[float] = None, max_age: Optional[float] = None,
             *, out: Any = None) -> Any:
        """The whole variable, as a new array, or in `out`."""
        if out is None:
            return self._ask("read", timeout, max_age)
        out_of(out, self.shape, self.dtype)[...] = self._ask("read", timeout, max_age)
        return out

    numpy = read_value = read

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        value = self.read()
        return value if dtype is None else value.astype(dtype, copy=False)

    def assign(self, value: Any, timeout: Optional[float] = None) -> None:
        """Replace the content, immediately."""
        self._ask("assign", value, timeout)

    def assign_add(self, value: Any, timeout: Optional[float] = None) -> None:
        """Add element by element, immediately."""
        self._ask("assign_add", value, timeout)

    def assign_sub(self, value: Any, timeout: Optional[float] = None) -> None:
        """Subtract element by element, immediately."""
        self._ask("assign_sub", value, timeout)

    def _read_rows(self, first: int, count: int, numbers: Any,
                   timeout: Optional[float] = None, out: Any = None,
                   tell: Any = None) -> Any:
        rows = self._ask("_read_rows", first, count, numbers, timeout)
        if out is not None:
            out[...] = rows
        return rows

    def _write_rows(self, how: int, first: int, numbers: Any, values: Any,
                    timeout: Optional[float] = None, tell: Any = None) -> None:
        self._ask("_write_rows", how, first, numbers, values, timeout)

    def apply_gradient(self, gradient: Any, rate: Any, momentum: float = 0.0,
                       timeout: Optional[float] = None) -> None:
        """Apply a gradient on the servers, immediately."""
        self._ask("apply_gradient", gradient, _rule_of(rate), momentum, timeout)

    def version(self, timeout: Optional[float] = None) -> int:
        """Number of writes that were applied to it."""
        return int(self._ask("version", timeout))

    def close(self) -> None:
        """Does nothing: the worker keeps it open for all functions."""

    def __repr__(self) -> str:
        name, dtype, shape, _ = self._what
        return f"<muster.Variable {name!r} shape={shape} dtype={dtype}>"


class Table(_BaseTable):
    """A table in a function: the worker opens it, looks up and pushes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(_BaseTable.__init__).bind(self, *args, **kwargs)
        bound.apply_defaults()
        options = dict(list(bound.arguments.items())[1:])
        if isinstance(options.get("node"), Node):
            del options["node"]
        ask("open_table", **options)
        for name in ("existing", "recreate", "node", "timeout"):
            options.pop(name, None)
        self._know(options)

    def _know(self, how: Dict[str, Any]) -> None:
        self.optimizer = optimizers.get(how["optimizer"])
        self.name = how["name"]
        self.dim = how["dim"]
        self.node = Node()
        self._how = dict(how, optimizer=self.optimizer,
                         initializer=initializers.get(how["initializer"]))

    @classmethod
    def known(cls, how: Dict[str, Any]) -> "Table":
        """A table that came with a closure."""
        table: "Table" = cls.__new__(cls)
        table._know(how)
        return table

    def lookup_into(self, ids: Any, rows: Any, timeout: Optional[float] = None,
                    tell: Optional[Callable[[Any], None]] = None) -> None:
        """Read the rows of ids into an array."""
        rows[...] = ask("member", "lookup", self, ids, timeout, dtype=rows.dtype.name)

    def _push(self, ids: Any, gradients: Any, optimizer: Any,
              timeout: Optional[float], time: int = 0,
              tell: Optional[Callable[[Any], None]] = None) -> bool:
        ask("member", "_push", self, ids, gradients, optimizer, timeout, time)
        run: Any = _muster.current_run()
        run.has_written = True
        return True

    def lookup_bags_into(self, ids: Any, offsets: Any, weights: Any, combiner: int,
                         rows: Any, timeout: Optional[float] = None,
                         tell: Optional[Callable[[Any], None]] = None) -> None:
        """Read the rows of bags into an array."""
        rows[...] = ask("member", "lookup", self, ids, timeout, offsets=offsets,
                        combiner=("sum", "mean", "sqrtn")[combiner], weights=weights)

    def set_rows(self, ids: Any, rows: Any, run: Any,
                 timeout: Optional[float] = None) -> None:
        """Set rows when the function has returned."""
        ask("member", "insert", self, ids, rows, timeout)
        written: Any = _muster.current_run()
        written.has_written = True

    def get_stats(self, timeout: Optional[float] = None
                  ) -> Tuple[int, int, int, int, int, int]:
        """Rows, bytes of memory, and counts."""
        found: Tuple[int, int, int, int, int, int] = ask("member", "get_stats", self,
                                                         timeout)
        return found

    def close(self) -> None:
        """Does nothing: the worker keeps it open for all functions."""


# ---- the process ----

def _leave_ends_to_the_worker() -> None:
    """Ignore signals that also reach the worker (Ctrl-C, or a manager that stops the
    job): the worker lets functions finish, and its processes end with it. Installs
    handlers, since ignored signals would stay ignored in programs that functions
    start."""
    ends = (signal.SIGINT, signal.SIGTERM)
    for number in ends:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)


def _import_modules(names: Any) -> None:
    import importlib
    import traceback

    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:   # functions that need it will fail
            traceback.print_exc()


def main(options: Dict[str, Any]) -> None:
    """Run functions until the worker ends."""
    global serves
    serves = True
    plain.set_unpickle("any")     # all that comes is from its own worker
    _muster.die_with_parent(options["parent"])
    _muster.frame_secret(options["secret"])
    _leave_ends_to_the_worker()
    _processes.take_authkey()
    os.set_inheritable(_SOCKET, False)
    os.closerange(_SOCKET + 1, os.sysconf("SC_OPEN_MAX"))
    sys.argv[1:] = []
    _processes.buffer_lines()
    _import_modules(options["modules"])
    _muster.process_serve(_SOCKET)
