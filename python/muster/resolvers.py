"""Cluster resolvers: find the cluster, and which task of it this process is.

They have TensorFlow's names and arguments. Each call queries the source anew, since
clusters change; transient failures (a server that does not answer, a pod that does not
run yet) are retried until the resolver's ``timeout`` has passed. docs/resolvers.md of the
C library lists the sources with all settings that ``settings`` takes:
``SlurmClusterResolver(settings={"host_suffix": "-ib"})``.

Each can be passed to a node, ``Node(resolver=...)``, and so can a class of your own: a
subclass of :class:`ClusterResolver` with ``cluster_spec()``.
"""

from __future__ import annotations

import abc
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _muster, errors
from .cluster_spec import ClusterSpec, ClusterSpecLike

__all__ = [
    "ClusterResolver", "ExecutableLocation", "GCEClusterResolver",
    "KubernetesClusterResolver", "NamedClusterResolver", "SageMakerClusterResolver",
    "SimpleClusterResolver", "SlurmClusterResolver", "TFConfigClusterResolver",
    "TPUClusterResolver", "UnionClusterResolver", "resolver_names",
]

#: Default timeout of calls, in seconds.
DEFAULT_TIMEOUT = 300.0


def resolver_names() -> List[str]:
    """The names of all resolvers, in the order in which auto-detection tries them."""
    return _muster.resolver_names()


def format_master_url(master: str, rpc_layer: Optional[str] = None) -> str:
    """Make "grpc://host:port" from "host:port"; unchanged without a layer or an
    address."""
    return f"{rpc_layer}://{master}" if rpc_layer and master else master


class ClusterResolver(abc.ABC):
    """The interface of all resolvers, and the base class of your own.

    A subclass must have ``cluster_spec()``, and may have ``master()`` and the properties
    ``task_type``, ``task_id``, ``rpc_layer`` and ``environment``, or set the first three.
    A node polls it, on a thread of muster, one call after the other. UnavailableError
    means that it will be called again; other exceptions fail the caller. A call may
    block, but the node waits at most ten seconds for it.
    """

    _task_type: Optional[str] = None
    _task_id: Optional[int] = None
    _rpc_layer: Optional[str] = None

    @abc.abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now; an empty ClusterSpec without one."""

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None,
               rpc_layer: Optional[str] = None) -> str:
        """The target of sessions, "grpc://host:port": of the given task, else of this
        one; "" when there is none.

        ValueError: the cluster has no such task.
        """
        kind = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if kind is None or index is None:
            return ""
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return format_master_url(self.cluster_spec().task_address(kind, index), layer)

    def num_accelerators(self, task_type: Optional[str] = None,
                         task_id: Optional[int] = None, config_proto: Any = None,
                         node: Optional[_muster.Node] = None,
                         timeout: Optional[float] = None) -> Dict[str, int]:
        """How many accelerators a task has, by kind: {"GPU": 2}.

        With a node they are counted in the device lists that the tasks reported; tasks
        with unequal counts are a FailedPreconditionError. Without a node the counts come
        from the source; {} when it has none. timeout: in seconds. ``config_proto`` is
        ignored.
        """
        handle = self._new_handle()
        return _string_counts(handle.accelerators(
            node, task_type or self.task_type,
            _minus_one(self.task_id if task_id is None else task_id),
            self._timeout_of(timeout)))

    @property
    def environment(self) -> str:
        """"", or "google" where the servers are somebody else's."""
        return ""

    @property
    def task_type(self) -> Optional[str]:
        """The type of this process's task, None when it is not known."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type: Optional[str]) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> Optional[int]:
        """Its index, None when it is not known."""
        return self._task_id

    @task_id.setter
    def task_id(self, task_id: Optional[int]) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> Optional[str]:
        """What masters begin with, "grpc"; None or "": nothing."""
        return self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Optional[str]) -> None:
        self._rpc_layer = rpc_layer

    def _timeout_of(self, timeout: Optional[float]) -> Optional[float]:
        return getattr(self, "_timeout", DEFAULT_TIMEOUT) if timeout is None else timeout

    def _new_handle(self) -> _muster.Resolver:
        """Make a resolver of the library, for one caller."""
        return _muster.Resolver.of_python(self, _plain_name(type(self).__name__))


def _plain_name(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name) or "python"


def _minus_one(index: Optional[int]) -> int:
    return -1 if index is None else index


def _string_counts(counts: Any) -> Dict[str, int]:
    return {str(kind): int(count) for kind, count in (counts or {}).items()}


def _setting(value: Any) -> str:
    """The text of a setting, for the library."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_setting(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(_setting(item) for item in value)
    return str(value)


class NamedClusterResolver(ClusterResolver):
    """Any of the library's resolvers, by its name: "etcd", "dns", "file", "directory",
    "open_mpi" and so on, see resolver_names(). None: the first one that recognises the
    environment of this process.

    settings: see docs/resolvers.md. task_type, task_id, rpc_layer, environment: take
    precedence over those of the source. timeout: seconds that a call retries (None: no
    timeout).

    NotFoundError: no resolver has this name; InvalidArgumentError: no such setting.
    """

    def __init__(self, name: Optional[str] = None,
                 settings: Optional[Mapping[str, Any]] = None,
                 task_type: Optional[str] = None, task_id: Optional[int] = None,
                 rpc_layer: Optional[str] = None, environment: Optional[str] = None, *,
                 timeout: Optional[float] = DEFAULT_TIMEOUT) -> None:
        self._name = name
        self._settings = {key: _setting(value) for key, value in (settings or {}).items()
                          if value is not None}
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self._environment = environment
        self._timeout = timeout
        self._accelerators: Dict[str, int] = {}
        self._last: Optional[Dict[str, Any]] = None
        self._explained: List[Any] = []
        self._new_handle()      # raises an error for invalid settings

    def _source(self) -> _muster.Resolver:
        return _muster.Resolver.named(self._name)

    def _new_handle(self) -> _muster.Resolver:
        handle = self._source()
        for key, value in self._settings.items():
            handle.set(key, value)
        for what, text in (("task_type", self._task_type), ("rpc_layer", self._rpc_layer),
                           ("environment", self._environment)):
            if text is not None:
                handle.override(what, text)
        if self._task_id is not None:
            handle.set_task_index(self._task_id)
        for kind, count in self._accelerators.items():
            handle.set_accelerators(kind, count)
        return handle

    def _resolve(self, timeout: Optional[float] = None) -> Dict[str, Any]:
        handle = self._new_handle()
        try:
            self._last = handle.resolve(self._timeout_of(timeout))
        finally:
            self._explained = handle.explain()
        return self._last

    def resolve(self, timeout: Optional[float] = None) -> Dict[str, Any]:
        """All results of one query of the source: cluster, task_type, task_index,
        rpc_layer, environment, master, bind_address, visible_devices, partition,
        accelerators, cluster_name, source (the resolver that found them)."""
        found = dict(self._resolve(timeout))
        found["cluster"] = (None if found["cluster"] is None
                            else ClusterSpec._wrap(found["cluster"]))
        return found

    def explain(self) -> List[Dict[str, Any]]:
        """What the last call tried: for each resolver its name, its state ("taken", "not
        here", "failed", "not asked"), the reason, and its requests."""
        return list(self._explained)

    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now; an empty ClusterSpec without one.

        Errors name the source and the position in it. NotFoundError: this process does
        not run in the environment of this resolver.
        """
        cluster = self._resolve()["cluster"]
        return ClusterSpec({}) if cluster is None else ClusterSpec._wrap(cluster)

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None,
               rpc_layer: Optional[str] = None) -> str:
        """The target of sessions, "grpc://host:port": of the given task, else the
        source's own, else of this task; "" when there is none.

        ValueError: the cluster has no such task.
        """
        handle = self._new_handle()
        try:
            return handle.master(task_type, _minus_one(task_id), rpc_layer,
                                 self._timeout_of(None))
        except errors.NotFoundError as error:
            if task_type is None and task_id is None:
                raise
            raise ValueError(str(error)) from error
        finally:
            self._explained = handle.explain()

    def num_accelerators(self, task_type: Optional[str] = None,
                         task_id: Optional[int] = None, config_proto: Any = None,
                         node: Optional[_muster.Node] = None,
                         timeout: Optional[float] = None) -> Dict[str, int]:
        """How many accelerators a task has, by kind: {"GPU": 2}.

        With a node they are counted in the device lists that the tasks reported, once all
        are connected; without a node the counts come from the source; {} when it has
        none. timeout: in seconds, by default the resolver's. ``config_proto`` is ignored.
        """
        return _string_counts(self._new_handle().accelerators(
            node, task_type, _minus_one(task_id), self._timeout_of(timeout)))

    def _known(self, what: str) -> Any:
        return (self._last or self._resolve())[what]

    @property
    def environment(self) -> str:
        """"", or "google" where the servers are somebody else's."""
        if self._environment is not None:
            return self._environment
        return str(self._known("environment"))

    @property
    def task_type(self) -> Optional[str]:
        """The type of this process's task, None when the source does not have it. The
        source is queried once, unless the type was set."""
        if self._task_type is not None:
            return self._task_type
        return self._known("task_type") or None

    @task_type.setter
    def task_type(self, task_type: Optional[str]) -> None:
        self._override("_task_type", task_type)

    @property
    def task_id(self) -> Optional[int]:
        """The index of this process's task; see task_type."""
        if self._task_id is not None:
            return self._task_id
        index = int(self._known("task_index"))
        return None if index < 0 else index

    @task_id.setter
    def task_id(self, task_id: Optional[int]) -> None:
        self._override("_task_id", task_id)

    @property
    def rpc_layer(self) -> Optional[str]:
        """What masters begin with, "grpc"; None: nothing."""
        if self._rpc_layer is not None:
            return self._rpc_layer
        return self._known("rpc_layer") or None

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Optional[str]) -> None:
        self._override("_rpc_layer", rpc_layer)

    def _override(self, what: str, value: Any) -> None:
        before = getattr(self, what)
        setattr(self, what, value)
        try:
            self._new_handle()
        except BaseException:
            setattr(self, what, before)
            raise

    def __repr__(self) -> str:
        return f"<muster.{type(self).__name__} {self._name or 'auto'}>"


class SimpleClusterResolver(NamedClusterResolver):
    """A fixed cluster.

    TypeError: cluster_spec is not a ClusterSpec, or master not a str.
    """

    def __init__(self, cluster_spec: ClusterSpec, master: str = "",
                 task_type: Optional[str] = None, task_id: Optional[int] = None,
                 environment: str = "",
                 num_accelerators: Optional[Mapping[str, int]] = None,
                 rpc_layer: Optional[str] = None) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(f"cluster_spec is {cluster_spec!r}, expected a ClusterSpec")
        if not isinstance(master, str):
            raise TypeError(f"master is {master!r}, expected a str")
        self._cluster = cluster_spec
        self._master = master
        super().__init__("static", None, task_type, task_id, rpc_layer or "",
                         environment or "")
        self._accelerators = dict(num_accelerators or {})
        self._new_handle()

    def _source(self) -> _muster.Resolver:
        return _muster.Resolver.fixed(self._cluster if self._cluster else None,
                                      self._master or None)

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._cluster

    @property
    def rpc_layer(self) -> Optional[str]:
        """What masters begin with, "grpc"; None: nothing."""
        return self._rpc_layer or None

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Optional[str]) -> None:
        self._override("_rpc_layer", rpc_layer or "")


class UnionClusterResolver(NamedClusterResolver):
    """The union of several resolvers.

    Jobs without gaps are concatenated in the order of the resolvers; jobs with gaps in
    their indices are merged by index. Task, rpc layer and environment are those of the
    first resolver, unless task_type, task_id, rpc_layer or environment are given; the
    master is the first one that a resolver has.

    ValueError: no resolver, or an unknown argument; TypeError: one is not a
    ClusterResolver. cluster_spec() raises a KeyError when two resolvers have the same
    index.
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        if not args:
            raise ValueError("a UnionClusterResolver needs at least one resolver")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(f"a ClusterResolver was expected, got {resolver!r}")
        unknown = set(kwargs) - {"task_type", "task_id", "rpc_layer", "environment",
                                 "timeout"}
        if unknown:
            raise ValueError(f"unknown arguments: {', '.join(sorted(unknown))}")
        self._members: Tuple[ClusterResolver, ...] = args
        super().__init__("union", None, **kwargs)

    def _source(self) -> _muster.Resolver:
        return _muster.Resolver.union(tuple(member._new_handle()
                                            for member in self._members))

    def cluster_spec(self) -> ClusterSpec:
        """The union of all clusters. KeyError: the same index or address occurs twice."""
        try:
            return super().cluster_spec()
        except errors.AlreadyExistsError as error:
            raise KeyError(str(error)) from error


class TFConfigClusterResolver(NamedClusterResolver):
    """The environment variable TF_CONFIG, as TensorFlow's tools write it. Without it, or
    without a cluster in it, the cluster is empty.

    cluster_spec() raises a ValueError for an invalid value; the message says where.
    """

    def __init__(self, task_type: Optional[str] = None, task_id: Optional[int] = None,
                 rpc_layer: Optional[str] = None, environment: Optional[str] = None, *,
                 settings: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__("tf_config", settings, task_type, task_id, rpc_layer,
                         environment)


class SlurmClusterResolver(NamedClusterResolver):
    """The tasks of a Slurm step, from the variables that srun sets for each task.

    jobs: {"chief": 1, "ps": 2, "worker": "*"}, assigned to the tasks by rank; by default
    all are workers. port_base: port of the first task of a node, by default
    made of the job's id.
    gpus_per_node, gpus_per_task: by default detected. tasks_per_node: an int, or a dict
    of host to count. auto_set_gpu: cluster_spec() sets CUDA_VISIBLE_DEVICES of this
    process to its own GPUs.
    """

    def __init__(self, jobs: Optional[Mapping[str, Union[int, str]]] = None,
                 port_base: Union[int, str, None] = None,
                 gpus_per_node: Optional[int] = None,
                 gpus_per_task: Optional[int] = None,
                 tasks_per_node: Union[int, Mapping[str, int], None] = None,
                 auto_set_gpu: bool = True, rpc_layer: str = "grpc", *,
                 settings: Optional[Mapping[str, Any]] = None,
                 timeout: Optional[float] = DEFAULT_TIMEOUT) -> None:
        own: Dict[str, Any] = {
            "jobs": jobs, "port_base": port_base, "gpus_per_node": gpus_per_node,
            "gpus_per_task": gpus_per_task, "tasks_per_node": tasks_per_node,
            "auto_set_gpu": auto_set_gpu, "rpc_layer": rpc_layer}
        self._auto_set_gpu = auto_set_gpu
        super().__init__("slurm", {**own, **(settings or {})}, timeout=timeout)

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the step. FailedPreconditionError or NotFoundError: this is not a
        task of a step; the message names the missing variable."""
        import os

        cluster = super().cluster_spec()
        devices = (self._last or {}).get("visible_devices")
        if self._auto_set_gpu and devices:
            os.environ["CUDA_VISIBLE_DEVICES"] = devices
        return cluster

    def get_task_info(self) -> Tuple[Optional[str], Optional[int]]:
        """Type and index of this process's task."""
        return self.task_type, self.task_id


class SageMakerClusterResolver(NamedClusterResolver):
    """The hosts of a SageMaker training job, all of them workers at `port`."""

    def __init__(self, port: int = 2223, rpc_layer: str = "grpc",
                 task_type: Optional[str] = None, task_id: Optional[int] = None, *,
                 settings: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__("sagemaker",
                         {"port": port, "rpc_layer": rpc_layer, **(settings or {})},
                         task_type, task_id)


class GCEClusterResolver(NamedClusterResolver):
    """The running instances of an instance group of Google Compute Engine, at `port`.

    credentials: "default", None for no token, or the path of a file. service:
    NotImplementedError, since Google's Python client cannot be used here.

    All instances have the same task type: setting it is a RuntimeError.
    """

    def __init__(self, project: Optional[str] = None, zone: Optional[str] = None,
                 instance_group: Optional[str] = None, port: int = 8470,
                 task_type: str = "worker", task_id: Optional[int] = 0,
                 rpc_layer: str = "grpc", credentials: Optional[str] = "default",
                 service: Any = None, *, settings: Optional[Mapping[str, Any]] = None,
                 timeout: Optional[float] = DEFAULT_TIMEOUT) -> None:
        _refuse_service(service)
        own: Dict[str, Any] = {
            "project": project, "zone": zone, "instance_group": instance_group,
            "port": port, "task_type": task_type, "rpc_layer": rpc_layer,
            "credentials": "none" if credentials is None else credentials}
        super().__init__("gce", {**own, **(settings or {})}, None, task_id,
                         timeout=timeout)

    @property
    def task_type(self) -> Optional[str]:
        """The task type of all instances."""
        return self._settings["task_type"]

    @task_type.setter
    def task_type(self, task_type: Optional[str]) -> None:
        raise RuntimeError("the task type of a GCEClusterResolver is that of all its "
                           "instances: say it when the resolver is made")

    @property
    def rpc_layer(self) -> Optional[str]:
        """What masters begin with, "grpc"; "": nothing."""
        return self._rpc_layer if self._rpc_layer is not None else self._settings[
            "rpc_layer"]

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Optional[str]) -> None:
        self._override("_rpc_layer", rpc_layer)


def _refuse_service(service: Any) -> None:
    if service is not None:
        raise NotImplementedError("a client object of another library cannot be used: "
                                  "settings={\"api_endpoint\": ...} asks another server")


class ExecutableLocation:
    """Where a process that queries Kubernetes runs."""

    WITHIN_CLUSTER = "within_cluster"
    OFF_CLUSTER = "off_cluster"


class KubernetesClusterResolver(NamedClusterResolver):
    """Pods selected by labels, from the Kubernetes API.

    job_to_label_mapping: job to a list of label selectors, {"worker": ["app=a,tier=b"],
    "ps": ["app=c"]}; by default {"worker": ["job-name=tensorflow"]}. tf_server_port: the
    port of every pod. override_client: NotImplementedError. executable_location: of
    ExecutableLocation; by default it is detected.

    A pod that does not run is waited for until `timeout`; then the DeadlineExceededError
    names it.
    """

    def __init__(self, job_to_label_mapping: Optional[Mapping[str, Sequence[str]]] = None,
                 tf_server_port: int = 8470, rpc_layer: str = "grpc",
                 override_client: Any = None,
                 executable_location: Optional[str] = None, *,
                 settings: Optional[Mapping[str, Any]] = None,
                 timeout: Optional[float] = DEFAULT_TIMEOUT) -> None:
        _refuse_service(override_client)
        selectors = None
        if job_to_label_mapping is not None:
            selectors = ";".join(f"{job}:{labels}"
                                 for job, every in job_to_label_mapping.items()
                                 for labels in ([every] if isinstance(every, str)
                                                else every))
        own: Dict[str, Any] = {
            "selectors": selectors, "port": tf_server_port, "rpc_layer": rpc_layer,
            "executable_location": executable_location}
        super().__init__("kubernetes", {**own, **(settings or {})}, timeout=timeout)


class TPUClusterResolver(NamedClusterResolver):
    """Cloud TPUs, by name or address; by default from environment variables and metadata.

    tpu: a name, a full name "projects/p/locations/z/nodes/n", that of a queued resource,
    addresses "grpc://10.0.0.2:8470,10.0.0.3", "local", or a list of names. zone, project:
    this machine's by default. coordinator_name, coordinator_address: job and address of
    this process, when it does not run on one of the TPU's hosts. credentials: "default",
    None, or the path of a file. service: NotImplementedError. discovery_url: a document
    with the API's address.
    """

    def __init__(self, tpu: Union[str, Sequence[str], None] = None,
                 zone: Optional[str] = None, project: Optional[str] = None,
                 job_name: str = "worker", coordinator_name: Optional[str] = None,
                 coordinator_address: Optional[str] = None,
                 credentials: Optional[str] = "default", service: Any = None,
                 discovery_url: Optional[str] = None, *,
                 settings: Optional[Mapping[str, Any]] = None,
                 timeout: Optional[float] = DEFAULT_TIMEOUT) -> None:
        _refuse_service(service)
        if isinstance(tpu, (list, tuple)) and not tpu:
            raise ValueError("tpu is an empty list: at least one name or address is "
                             "needed")
        own: Dict[str, Any] = {
            "tpu": tpu, "zone": zone, "project": project, "job_name": job_name,
            "coordinator_name": coordinator_name,
            "coordinator_address": coordinator_address,
            "credentials": "none" if credentials is None else credentials,
            "discovery_url": discovery_url}
        super().__init__("tpu", {**own, **(settings or {})}, timeout=timeout)

    def _tpu(self) -> _muster.Tpu:
        tpu = _muster.Tpu()
        for key, value in self._settings.items():
            tpu.set(key, value)
        return tpu

    def get_master(self) -> str:
        """The same as master()."""
        return self.master()

    def get_job_name(self) -> Optional[str]:
        """The job of the TPU's hosts."""
        return self._settings["job_name"]

    def get_coordination_service_leader(self) -> str:
        """The task that should host the coordination service: "/job:worker/task:0"."""
        return self._tpu().leader()

    def describe(self, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """The state of each TPU: a dict with name, project, zone, state ("READY"), health
        ("HEALTHY"), health_description, accelerator_type, runtime_version, topology,
        endpoints (number of hosts), recoverable, and why it is not."""
        return self._tpu().describe(self._timeout_of(timeout))

    def recoverable(self, timeout: Optional[float] = None) -> bool:
        """Whether all TPUs are usable, perhaps after some time: false when one was
        terminated, preempted, or out of memory in the last 90 seconds."""
        return self._tpu().recoverable(self._timeout_of(timeout))[0]

    def wait_for_healthy(self, timeout_s: float = 1200, interval: float = 30) -> None:
        """Wait until all TPUs are healthy, polling every `interval` seconds.

        DeadlineExceededError with the last state; FailedPreconditionError as soon as one
        is terminated or preempted.
        """
        self._tpu().wait_healthy(timeout_s, interval)

    def request_version(self, version: str, restart_type: str = "always",
                        timeout: Optional[float] = None) -> None:
        """Have all hosts switch to another version of their software; restart_type:
        "always" or "ifNeeded". NotFoundError: no such version."""
        self._tpu().request_version(version, restart_type, self._timeout_of(timeout))


# ---- for the extension ----

def _to_handle(resolver: Any) -> _muster.Resolver:
    """A resolver of the library for a ClusterResolver, or for an object with its
    methods."""
    if isinstance(resolver, _muster.Resolver):
        return resolver
    if isinstance(resolver, ClusterResolver):
        return resolver._new_handle()
    if callable(getattr(resolver, "cluster_spec", None)):
        return _muster.Resolver.of_python(resolver, _plain_name(type(resolver).__name__))
    raise TypeError(f"a ClusterResolver was expected, got {resolver!r}")


def _told(resolver: Any, timeout: float) -> Dict[str, Any]:
    """The results of a resolver in Python, for the library."""
    spec: Optional[ClusterSpecLike] = resolver.cluster_spec()
    cluster = None if spec is None else ClusterSpec(spec)
    own_master = getattr(type(resolver), "master", None) is not ClusterResolver.master
    master = resolver.master() if own_master and hasattr(resolver, "master") else ""
    index = getattr(resolver, "task_id", None)
    return {
        "cluster": cluster if cluster else None,
        "task_type": getattr(resolver, "task_type", None) or "",
        "task_index": -1 if index is None else int(index),
        "rpc_layer": getattr(resolver, "rpc_layer", None) or "",
        "environment": getattr(resolver, "environment", None) or "",
        "master": master or "",
    }


def _told_error(error: BaseException) -> Tuple[int, str]:
    """Code and message of an exception that a resolver in Python raised."""
    if isinstance(error, errors.MusterError):
        return -error.code, str(error)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return -errors.UnavailableError.code, f"{type(error).__name__}: {error}"
    if isinstance(error, (ValueError, TypeError)):
        return -errors.InvalidArgumentError.code, f"{type(error).__name__}: {error}"
    return -errors.UnknownError.code, f"{type(error).__name__}: {error}"
