"""Servers: TensorFlow's ``tf.distribute.Server``, over a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence, Tuple

from . import _muster, _scope
from .cluster_spec import ClusterSpec, ClusterSpecLike

__all__ = ["Server", "ServerConfig", "offer_cluster"]


@dataclass(frozen=True)
class ServerConfig:
    """Configuration that a strategy gives to the servers its program runs on.

    inter_op_parallelism_threads: functions that run at a time; 0: as the node's options
    say. intra_op_parallelism_threads: threads that one function may use, the node's
    setting "intra_op_threads"; 0: not set. device_filters: tasks whose devices are used,
    "/job:ps", "/job:worker/task:1"; empty: all.
    """

    inter_op_parallelism_threads: int = 0
    intra_op_parallelism_threads: int = 0
    device_filters: Sequence[str] = ()


def _config(config: Any) -> Tuple[int, int, Tuple[str, ...]]:
    """A tuple for the extension; config may be any object with these attributes, also a
    ConfigProto."""
    if config is None:
        return (0, 0, ())
    names = ("inter_op_parallelism_threads", "intra_op_parallelism_threads",
             "device_filters")
    if not any(hasattr(config, name) for name in names):
        raise TypeError(f"config is {config!r}, expected a ServerConfig")
    return (int(getattr(config, names[0], 0)), int(getattr(config, names[1], 0)),
            tuple(getattr(config, names[2], ())))


class Server(_muster.BaseServer):
    """A node that serves one task until the job is done, or it is stopped.

    server_or_cluster_def: a ClusterSpec, or anything one can be made from; without it
    (and without a resolver) cluster and task of TF_CONFIG. job_name, task_index: which
    task of the cluster; optional where only one is possible. protocol: the scheme of
    targets, by default "grpc", "": none. config: a ServerConfig.
    start: False: only start() starts it.

    environment: "google": servers are managed elsewhere, and this one has no node.
    timeout: seconds to wait for a cluster (None: no timeout): without one, but with
    bind_address="tcp://host:port", the server waits until a client assigns one
    (offer_cluster()). Other options are those of a Node: threads, heartbeat, resolver and
    so on.

    InvalidArgumentError (a ValueError): the task is not in the cluster, or is not given.
    """

    def __init__(self, server_or_cluster_def: Optional[ClusterSpecLike] = None,
                 job_name: Optional[str] = None, task_index: Optional[int] = None,
                 protocol: Optional[str] = None, config: Any = None, start: bool = True,
                 *, environment: Optional[str] = None, timeout: Optional[float] = None,
                 **options: Any) -> None:
        cluster = None
        if server_or_cluster_def is not None:
            cluster = ClusterSpec(server_or_cluster_def)
            job_name, task_index = _only_task(cluster, job_name, task_index)
            cluster.validate(job_name, task_index)
        if job_name is not None:
            options["task_type"] = job_name
        if task_index is not None:
            options["task_index"] = task_index
        from_environment = (cluster is None and options.get("resolver") is None
                            and options.get("bind_address") is None)
        self._arguments = (cluster, options, protocol, environment, _config(config),
                           from_environment, timeout)
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A server for a cluster of this process alone: its chief, at a free port."""
        return Server({"chief": ["127.0.0.1:0"]}, "chief", 0, config=config, start=start)

    def start(self) -> None:
        """Start it. AlreadyExistsError: it was started already, or its address is in
        use."""
        self._start(*self._arguments)

    def join(self, timeout: Optional[float] = None) -> None:
        """Serve until the job is done, or the server was stopped, here or by another
        task. A worker gets closures from the first join on.

        Raises the job's own error, if it ended with one. DeadlineExceededError names the
        task that has not ended the job.
        """
        self._join(timeout)

    def stop(self, timeout: Optional[float] = 5.0) -> None:
        """Stop: a worker finishes the closures it has, within the timeout; then the node
        is closed, and joins return. May be called more than once."""
        self._stop(timeout)

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster that it serves, also when a client assigned it."""
        return ClusterSpec._wrap(self._cluster)

    def stop_remote(self, task: str, reason: str = "",
                    timeout: Optional[float] = None) -> None:
        """Stop the server of another task, "/job:ps/task:0" or "ps:0": its join()
        returns. Allowed on the chief and on clients (others: PermissionDeniedError); the
        chief itself cannot be stopped (FailedPreconditionError)."""
        _muster.stop_remote(_scope.node_of(self), task, reason, timeout)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.started:
            self.stop()

    def __repr__(self) -> str:
        if not self.started:
            return "<muster.Server: not started>"
        return f"<muster.Server {self.task} at {self.target}>"


def _only_task(cluster: ClusterSpec, job: Optional[str], index: Optional[int]
               ) -> Tuple[Optional[str], Optional[int]]:
    """Job and index of the task; each may be None where only one is possible."""
    if job is None and len(cluster.jobs) == 1:
        job = cluster.jobs[0]
    if job is None:
        raise ValueError("job_name is missing: the cluster has the jobs "
                         f"{', '.join(cluster.jobs) or 'none'}")
    if index is None and job in cluster.jobs and cluster.num_tasks(job) == 1:
        index = cluster.task_indices(job)[0]
    if index is None:
        raise ValueError(f"task_index is missing: the cluster has several tasks of job "
                         f"{job!r}")
    return job, index


def offer_cluster(cluster: ClusterSpecLike, task_type: str, task_index: int,
                  timeout: Optional[float] = None, *, config: Any = None,
                  cluster_name: Optional[str] = None) -> None:
    """Assign cluster and task to a server that waits at the address of this task. Returns
    once the server has accepted.

    FailedPreconditionError: it serves another task, or another cluster;
    InvalidArgumentError: the cluster is not valid, or the server is at another address;
    DeadlineExceededError says which address was not reached, and why.
    """
    spec = ClusterSpec(cluster)
    spec.validate(task_type, task_index)
    _muster.offer_cluster(spec, task_type, task_index, cluster_name,
                          _config(config), timeout)
