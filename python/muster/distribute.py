"""The distribute coordinator: runs one program on every task of a cluster.

TensorFlow's ``run_distribute_coordinator``: by mode, cluster and task, a worker function,
and optionally an eval function, are called once, in one thread for each task, or on this
task alone. Each call has a context, with its task and a barrier with the other calls.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from . import _functions, _muster, _scope, errors
from .cluster_spec import ClusterSpec, ClusterSpecLike
from .server import ServerConfig, _config

__all__ = ["CoordinatorMode", "Strategy", "WorkerContext", "get_current_worker_context",
           "run_distribute_coordinator"]


class CoordinatorMode:
    """The mode of run_distribute_coordinator().

    STANDALONE_CLIENT: this process is the client of running servers, and makes the calls
    of all tasks; a process with a task of the cluster is such a server.
    INDEPENDENT_WORKER: each process is one task, and makes its own calls.
    LOCAL: one call in this process, even if there is a cluster.
    CLIENT_AND_WORKER: the leading task is client and server; the others are servers.
    """

    STANDALONE_CLIENT = "standalone_client"
    INDEPENDENT_WORKER = "independent_worker"
    LOCAL = "local"
    CLIENT_AND_WORKER = "client_and_worker"


_MODES = {CoordinatorMode.STANDALONE_CLIENT: 0, CoordinatorMode.INDEPENDENT_WORKER: 1,
          CoordinatorMode.LOCAL: 2, CoordinatorMode.CLIENT_AND_WORKER: 3}


class Strategy:
    """How a program is spread over a cluster: the base class of strategies.

    between_graph: True: the chief and each worker call the worker function; False: one
    call stands for all of them.
    """

    between_graph = False

    def __init__(self, between_graph: Optional[bool] = None) -> None:
        if between_graph is not None:
            self.between_graph = between_graph

    def configure(self, cluster_spec: Optional[ClusterSpec], task_type: Optional[str],
                  task_id: Optional[int], is_chief: bool) -> Any:
        """The object that the worker function gets on this task: a copy, or by default
        this object. Called once for each call."""
        return self

    def session_config(self, config: ServerConfig, task_type: Optional[str],
                       task_id: Optional[int]) -> ServerConfig:
        """Threads and device filters of the task's node. By default those of the argument
        session_config, and with between_graph the parameter servers and the task itself
        as filters."""
        if config.device_filters or not self.between_graph or task_type is None:
            return config
        return ServerConfig(config.inter_op_parallelism_threads,
                            config.intra_op_parallelism_threads,
                            ("/job:ps", f"/job:{task_type}/task:{task_id}"))

    def should_init(self, is_chief: bool) -> bool:
        """Whether the task initializes the parameters."""
        return is_chief

    def should_checkpoint(self, is_chief: bool) -> bool:
        """Whether it writes checkpoints."""
        return is_chief

    def should_save_summary(self, is_chief: bool) -> bool:
        """Whether it writes summaries."""
        return is_chief


class _Adapter:
    """A strategy with the interface that the extension calls."""

    def __init__(self, strategy: Any, config: ServerConfig) -> None:
        self.strategy = strategy
        self.config = config

    def configure(self, cluster: Optional[_muster.Cluster], task_type: Optional[str],
                  index: int, is_chief: int) -> Tuple[Any, ...]:
        spec = None if cluster is None else ClusterSpec._wrap(cluster)
        task_id = None if index < 0 else index
        strategy, chief = self.strategy, bool(is_chief)
        if not isinstance(strategy, Strategy):
            return (strategy, *_config(self.config), chief, chief, chief)
        own = strategy.configure(spec, task_type, task_id, chief)
        config = _config(strategy.session_config(self.config, task_type, task_id))
        return (own, *config, strategy.should_init(chief),
                strategy.should_checkpoint(chief), strategy.should_save_summary(chief))

    def row(self) -> Tuple[Any, ...]:
        between = getattr(self.strategy, "between_graph", None)
        if between is None:     # TensorFlow's own
            extended = getattr(self.strategy, "extended", None)
            between = getattr(extended, "experimental_between_graph", False)
        return (self, bool(between), type(self.strategy).__name__)


#: Seconds that an interrupted run has for notifying the other tasks.
INTERRUPTED_TIMEOUT = 3.0

_local = threading.local()


class WorkerContext:
    """The context of one call of the program's function. Valid until that returns."""

    def __init__(self, context: _muster.Context, run: _Run) -> None:
        self._context = context
        self._run = run

    @property
    def task_type(self) -> Optional[str]:
        """The task type, "worker", say; None in a local run, and where one call stands
        for all."""
        return self._context.task_type

    @property
    def task_id(self) -> Optional[int]:
        """The task index; None when the type is."""
        return self._context.task_id

    @property
    def task(self) -> str:
        """The task's name, "/job:worker/task:1", or ""."""
        return self._context.task

    @property
    def cluster_spec(self) -> Optional[ClusterSpec]:
        """The cluster, without its evaluator; None in a local run."""
        cluster = self._context.cluster
        return None if cluster is None else ClusterSpec._wrap(cluster)

    @property
    def num_workers(self) -> int:
        """Number of tasks that train: the chief and the workers; 0 in a local run."""
        return self._context.num_workers

    @property
    def is_chief(self) -> bool:
        """True for the chief, for worker 0 without a chief, for the evaluator, and
        without a task type."""
        return self._context.is_chief

    @property
    def distributed_mode(self) -> bool:
        """Whether the call is part of a run over several tasks."""
        return self._context.distributed_mode

    @property
    def evaluates(self) -> bool:
        """Whether this is a call of the eval function, or of the worker function that
        stands in for it."""
        return self._context.evaluates

    @property
    def experimental_should_init(self) -> bool:
        """Whether this task initializes the parameters."""
        return self._context.should_init

    should_init = experimental_should_init

    @property
    def should_checkpoint(self) -> bool:
        """Whether it writes checkpoints."""
        return self._context.should_checkpoint

    @property
    def should_save_summary(self) -> bool:
        """Whether it writes summaries."""
        return self._context.should_save_summary

    @property
    def master_target(self) -> str:
        """The target of sessions, "grpc://host:port"; "" in a local run and for the
        evaluator."""
        return self._context.master_target

    @property
    def session_config(self) -> ServerConfig:
        """Threads and device filters, from the strategy."""
        inter, intra, filters = self._context.session_config
        return ServerConfig(inter, intra, tuple(filters))

    @property
    def strategy(self) -> Any:
        """The strategy's copy for this task."""
        return self._context.strategy

    @property
    def has_barrier(self) -> bool:
        """Whether there are others to wait for."""
        return self._context.has_barrier

    def wait_for_other_workers(self, timeout: Optional[float] = None) -> None:
        """Wait until the chief and all workers have called this; can be used repeatedly.

        DeadlineExceededError names the missing tasks. When a task fails, its error is
        raised at once. AbortedError, InternalError: a task has ended without error and
        will not call this. ValueError: there are no others, and optional_barrier is not
        set.
        """
        if threading.current_thread() is not threading.main_thread():
            self._context.wait_for_others(timeout)
            return
        wait = _Wait(self._context, timeout)
        try:
            wait.done.wait()
        except BaseException as error:  # raised by a signal handler: Ctrl-C
            self._run.end_waits(error)
            self._run.is_inside = not wait.done.wait(INTERRUPTED_TIMEOUT)
            raise
        if wait.error is not None:
            raise wait.error

    def cancelled(self) -> bool:
        """Whether the call may stop early: another task has failed, or this is the
        evaluator and all workers have ended."""
        return self._run.given_up or self._context.cancelled()

    @property
    def node(self) -> _muster.Node:
        """The node that the call runs on, for variables and the coordination service.
        FailedPreconditionError: a local run without one."""
        return self._run.node_of(self._context)

    def __repr__(self) -> str:
        return f"<muster.WorkerContext {self.task or 'of all tasks'}>"


def get_current_worker_context() -> Optional[WorkerContext]:
    """The context of the call that runs on this thread, None outside of one."""
    return getattr(_local, "context", None)


class _Wait:
    """A wait for the others on a separate thread, so that signals can interrupt the
    program's thread."""

    def __init__(self, context: _muster.Context, timeout: Optional[float]) -> None:
        self.error: Optional[BaseException] = None
        self.done = threading.Event()
        threading.Thread(target=self._main, args=(context, timeout),
                         name="muster-wait", daemon=True).start()

    def _main(self, context: _muster.Context, timeout: Optional[float]) -> None:
        try:
            context.wait_for_others(timeout)
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class _Handed:
    """A call that the run passes to the program's thread, which waits for the run."""

    def __init__(self, function: Callable[[], Tuple[Any, ...]]) -> None:
        self.function = function
        self.answer: Tuple[Any, ...] = (-1, None, "the run was given up", "")
        self.done = threading.Event()


class _Run:
    """The state of one run."""

    def __init__(self) -> None:
        self.given_up = False
        self.is_inside = False      # an interrupted wait has not ended in the library
        self.result_taken = False
        self.failures: List[BaseException] = []
        self.values: Dict[str, Any] = {}
        self.waiting: "queue.Queue[Any]" = queue.Queue()
        self.own_thread: Optional[int] = None   # its calls are made on the program's
        self._lock = threading.Lock()
        self._nodes: Dict[int, _muster.Node] = {}
        self._contexts: Set[_muster.Context] = set()    # of running calls

    def node_of(self, context: _muster.Context) -> _muster.Node:
        node = context.node()
        with self._lock:
            self._nodes[id(node)] = node
        return node

    def opened(self, node: _muster.Node) -> None:
        """Register functions and programs at a node that the run has opened."""
        with self._lock:
            self._nodes[id(node)] = node
        _functions.node_opened(node)

    def forget_nodes(self, given: Optional[_muster.Node]) -> None:
        for node in self._nodes.values():
            if node is not given:
                _muster.node_unwrap(node)

    def call(self, fn: Callable[[Any], Any], context: _muster.Context) -> Tuple[Any, ...]:
        """Call a function of the program; returns (code, result, message, task)."""
        own = WorkerContext(context, self)
        with self._lock:
            self._contexts.add(context)
        name = own.task or ("eval_fn" if own.evaluates else "worker_fn")
        _local.context = own
        try:
            result = fn(own.strategy)
        except BaseException as error:
            with self._lock:
                self.failures.append(error)
            code = error.code if isinstance(error, errors.MusterError) else 2
            words = (str(error) if isinstance(error, errors.MusterError)
                     else f"{type(error).__name__}: {error}")
            task = str(getattr(error, "task", "") or "")
            return (-code, None, words.replace("\0", "?"), task)
        finally:
            _local.context = None
            with self._lock:
                self._contexts.discard(context)
        with self._lock:
            self.values[name] = result
        return (0, result, "", "")

    def end_waits(self, why: BaseException) -> None:
        """End all waits for the others."""
        self.given_up = True
        with self._lock:
            for context in self._contexts:
                context.end_waits(f"{type(why).__name__}: {why}".rstrip(": "))

    def entry(self, fn: Callable[[Any], Any]
              ) -> Callable[[_muster.Context], Tuple[Any, ...]]:
        """The function that the extension calls for `fn`."""
        def enter(context: _muster.Context) -> Tuple[Any, ...]:
            if threading.get_ident() != self.own_thread:
                return self.call(fn, context)
            handed = _Handed(lambda: self.call(fn, context))
            self.waiting.put(handed)
            handed.done.wait()
            return handed.answer
        return enter

    def on_a_thread_beside(self, arguments: Tuple[Any, ...]) -> Tuple[Any, Any]:
        """Run on a separate thread, and make its calls on the program's thread, so that
        Ctrl-C reaches them and every wait."""
        def main() -> None:
            self.own_thread = threading.get_ident()
            try:
                self.waiting.put(_muster.distribute_run(*arguments))
            except BaseException as error:
                self.waiting.put(error)

        threading.Thread(target=main, name="muster-distribute", daemon=True).start()
        try:
            return self._answer_calls()
        except BaseException as error:
            if self.result_taken:
                raise
            self.end_waits(error)
            self._await_end()
            raise

    def _await_end(self) -> None:
        """Wait a short time for the run to end, after an interrupt."""
        limit = time.monotonic() + (0 if self.is_inside else INTERRUPTED_TIMEOUT)
        while True:
            try:
                item = self.waiting.get(timeout=max(0.0, limit - time.monotonic()))
            except queue.Empty:
                return
            if not isinstance(item, _Handed):
                return
            item.done.set()     # this call is not made any more

    def _answer_calls(self) -> Tuple[Any, Any]:
        while True:
            item = self.waiting.get()
            if isinstance(item, BaseException):
                self.result_taken = True
                raise item
            if not isinstance(item, _Handed):
                result: Tuple[Any, Any] = item
                return result
            item.answer = item.function()
            if not self.is_inside:
                item.done.set()
            last = self.failures[-1] if self.failures else None
            if isinstance(last, (KeyboardInterrupt, SystemExit)):
                raise last


def _result(run: _Run, exception: Optional[BaseException],
            results: Mapping[str, Tuple[int, Any, str, str]]) -> Any:
    for failure in run.failures:
        if isinstance(failure, (KeyboardInterrupt, SystemExit)):
            raise failure
    if exception is not None:
        # Prefer the program's own exception, if it is the one that ended the run.
        for failure in run.failures:
            if str(failure) and str(failure) in str(exception):
                raise failure from None
        raise exception
    values = {task: run.values.get(task, row[1]) for task, row in results.items()}
    values.pop("eval_fn", None)
    if len(values) == 1:
        return next(iter(values.values()))
    return values or None


def run_distribute_coordinator(
        worker_fn: Callable[[Any], Any], strategy: Any = None,
        eval_fn: Optional[Callable[[Any], Any]] = None, eval_strategy: Any = None,
        mode: str = CoordinatorMode.STANDALONE_CLIENT,
        cluster_spec: Optional[ClusterSpecLike] = None, task_type: Optional[str] = None,
        task_id: Optional[int] = None, session_config: Any = None,
        rpc_layer: Optional[str] = None, *, cluster_resolver: Any = None,
        node: Any = None, environment: Optional[str] = None,
        ignore_environment: bool = False,
        optional_barrier: bool = False, join_timeout: Optional[float] = None,
        end_timeout: Optional[float] = 30.0, **options: Any) -> Any:
    """Run a program on this process's part of a cluster.

    worker_fn(strategy), eval_fn(strategy): the program; get_current_worker_context()
    returns the context of the call. Without an eval_fn the worker_fn evaluates. strategy:
    a Strategy, or None: one call for the whole cluster. mode: of CoordinatorMode.
    cluster_spec, task_type, task_id: by default those of TF_CONFIG, else of
    cluster_resolver (by default the strategy's own). session_config: a ServerConfig.
    rpc_layer: the scheme of targets.

    node: an open node to use, which is not closed. environment: "google": no server is
    started. ignore_environment: TF_CONFIG is ignored. optional_barrier:
    wait_for_other_workers() without others returns at once. join_timeout: seconds that a
    server waits for the job to end. end_timeout: seconds to wait for the other calls
    after the first error, and for the evaluator. Other options are those of a Node.

    Returns the result of worker_fn, when it was called once here (on the leading one of
    independent tasks a dict of all tasks); a dict of task to result when it was called
    for several tasks; None when this process only served. The first exception of any call
    ends the waits of all others, and is raised.

    ValueError: an unknown mode, a mode that does not fit cluster and task, or this thread
    is in a call already.
    """
    if not callable(worker_fn):
        raise TypeError(f"worker_fn is {worker_fn!r}, expected a function")
    if eval_fn is not None and not callable(eval_fn):
        raise TypeError(f"eval_fn is {eval_fn!r}, expected a function")
    if mode not in _MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {', '.join(_MODES)}")
    if get_current_worker_context() is not None:
        raise ValueError("this thread is already in a context: worker_fn cannot run "
                         "another program")
    if strategy is not None and eval_strategy is None and eval_fn is not None:
        logging.getLogger("muster").debug("eval_strategy is not given: the default one")
    run = _Run()
    config = ServerConfig() if session_config is None else session_config
    rows = [None if one is None else _Adapter(one, config).row()
            for one in (strategy if strategy is not None else Strategy(), eval_strategy)]
    resolver = cluster_resolver or getattr(strategy, "cluster_resolver", None)
    if resolver is not None:
        options["resolver"] = resolver
    spec = None if cluster_spec is None else ClusterSpec(cluster_spec)
    own_node = None if node is None else _scope.node_of(node)
    arguments = (
        _MODES[mode], run.entry(worker_fn),
        None if eval_fn is None else run.entry(eval_fn), run.opened,
        rows[0], rows[1], spec if spec else None, task_type,
        -1 if task_id is None else task_id, rpc_layer, environment, ignore_environment,
        own_node, options, optional_barrier,
        join_timeout, end_timeout)
    try:
        if threading.current_thread() is threading.main_thread():
            exception, results = run.on_a_thread_beside(arguments)
        else:
            exception, results = _muster.distribute_run(*arguments)
    finally:
        run.forget_nodes(own_node)
    return _result(run, exception, results)
