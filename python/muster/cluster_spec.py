"""Cluster specs: the tasks of a cluster and their addresses.

The same names, arguments and errors as TensorFlow's ``tf.train.ClusterSpec``.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _muster, errors

__all__ = ["ClusterSpec", "ClusterSpecLike"]

#: Types that a cluster spec can be made from.
ClusterSpecLike = Union[
    "ClusterSpec", str, Mapping[str, Union[Sequence[str], Mapping[int, str],
                                           Mapping[str, str]]]]


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8")
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, expected a str")
    return value


def _index(job: str, index: Any) -> int:
    if isinstance(index, bool) or not isinstance(index, (int, str)):
        raise TypeError(f"job {job!r}: task index {index!r}: expected an int")
    try:
        number = int(index)
    except ValueError:
        raise ValueError(f"job {job!r}: task index {index!r}: expected a "
                         "number") from None
    if number < 0:
        raise ValueError(f"job {job!r}: task index {number} is negative")
    return number


def _read_job(job: str, tasks: Any) -> Dict[int, str]:
    if isinstance(tasks, Mapping):
        pairs: List[Tuple[int, Any]] = [(_index(job, index), address)
                                        for index, address in tasks.items()]
    elif isinstance(tasks, (list, tuple)):
        pairs = list(enumerate(tasks))
    else:
        raise TypeError(f"job {job!r}: the tasks are {tasks!r}, expected a list of "
                        "addresses or a dict of index to address")
    read: Dict[int, str] = {}
    for index, address in sorted(pairs, key=lambda pair: pair[0]):
        if index in read:
            raise ValueError(f"job {job!r}: task {index} is there twice")
        read[index] = _text(address, f"job {job!r}: the address of task {index}")
    return read


def _as_dict(jobs: Mapping[str, Dict[int, str]]) -> Dict[str, Any]:
    """Dense jobs as lists, sparse ones as dicts, empty ones as {}."""
    return {job: list(tasks.values()) if tasks and max(tasks) == len(tasks) - 1
            else dict(tasks) for job, tasks in jobs.items()}


class ClusterSpec:
    """The tasks of a cluster: task type (job) and index to address.

    >>> cluster = ClusterSpec({"worker": ["w0:2222", "w1:2222"], "ps": ["p0:2222"]})
    >>> cluster.num_tasks("worker")
    2
    >>> cluster.task_address("ps", 0)
    'p0:2222'

    ``cluster``: a dict of job to a list of addresses, or to a dict of index to address
    (a sparse job, whose indices have gaps); the same as JSON; or another ClusterSpec. An
    address is "host:port", "tcp://host:port" or "ipc:///path".

    The jobs "chief", "worker", "ps", "evaluator" and "client" have a role; a program may
    use other names: at most 15 small letters, digits and "_".

    TypeError: an address or a job is not a str. ValueError: an invalid address, an
    unknown job, an index or an address given twice; the message says where.
    """

    __slots__ = ("_jobs", "_cluster", "__weakref__")

    _jobs: Dict[str, Dict[int, str]]
    _cluster: _muster.Cluster

    def __init__(self, cluster: ClusterSpecLike) -> None:
        if isinstance(cluster, ClusterSpec):
            self._jobs, self._cluster = cluster._jobs, cluster._cluster
            return
        source: Any = cluster
        if isinstance(source, str):
            try:
                source = json.loads(source)
            except ValueError as error:
                raise ValueError(f"cluster: this is no JSON: {error}") from None
        if not isinstance(source, Mapping) and callable(getattr(source, "as_dict", None)):
            source = source.as_dict()   # TensorFlow's own
        if not isinstance(source, Mapping):
            raise TypeError("a cluster is a dict, JSON or a ClusterSpec, "
                            f"got {cluster!r}")
        jobs = {_text(job, "the name of a job"): tasks for job, tasks in source.items()}
        self._jobs = {job: _read_job(job, jobs[job]) for job in sorted(jobs)}
        try:
            self._cluster = _muster.Cluster(json.dumps(_as_dict(self._jobs)))
        except errors.InvalidArgumentError:
            raise
        except errors.MusterError as error:
            raise ValueError(str(error)) from error

    @classmethod
    def _wrap(cls, cluster: _muster.Cluster) -> ClusterSpec:
        self = cls.__new__(cls)
        self._cluster = cluster
        self._jobs = {}
        for job, index, address in cluster.tasks():
            self._jobs.setdefault(job, {})[index] = address
        return self

    def __bool__(self) -> bool:
        """False for a spec without any job."""
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same tasks at the same addresses; ``other`` may be
        anything that a spec can be made from. Different spellings of one address are
        equal."""
        if not isinstance(other, (ClusterSpec, Mapping, str)):
            return NotImplemented
        try:
            spec = other if isinstance(other, ClusterSpec) else ClusterSpec(other)
        except (TypeError, ValueError):
            return False
        return self._cluster.equal(spec._cluster)

    def __hash__(self) -> int:
        return hash(tuple((job, tuple(tasks)) for job, tasks in self._jobs.items()
                          if tasks))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    def __reduce__(self) -> Any:
        return (ClusterSpec, (self.as_dict(),))

    def as_dict(self) -> Dict[str, Any]:
        """A dict of job to a list of addresses; for a sparse job to a dict of index to
        address, and for one without tasks to {}."""
        return _as_dict(self._jobs)

    def as_json(self) -> str:
        """The spec as JSON, in the format of "cluster" in TF_CONFIG."""
        return json.dumps(self.as_dict())

    @property
    def jobs(self) -> List[str]:
        """The names of the jobs, sorted."""
        return list(self._jobs)

    def _tasks(self, job_name: str) -> Dict[int, str]:
        try:
            return self._jobs[job_name]
        except (KeyError, TypeError):
            known = ", ".join(self._jobs) or "none"
            raise ValueError(f"there is no job {job_name!r} in the cluster; there are: "
                             f"{known}") from None

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has. ValueError: there is no such job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> List[int]:
        """The indices of a job's tasks, ascending. ValueError: there is no such job."""
        return list(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task, as it was given. ValueError: there is no such job, or it
        has no task of this index."""
        tasks = self._tasks(job_name)
        try:
            return tasks[task_index]
        except (KeyError, TypeError):
            raise ValueError(f"job {job_name!r} has no task {task_index!r}; it has: "
                             f"{list(tasks)}") from None

    def job_tasks(self, job_name: str) -> List[Optional[str]]:
        """The addresses of a job as a list, with None for the gaps of a sparse job.
        ValueError: there is no such job."""
        tasks = self._tasks(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    # ---- leaders and task numbers ----

    def validate(self, task_type: Optional[str] = None,
                 task_index: Optional[int] = None) -> None:
        """Check that there is at most one chief and one evaluator, and that the task, if
        given, is in the cluster. ValueError says what is wrong."""
        self._rule("validate", task_type, -1 if task_index is None else task_index)

    def is_chief(self, task_type: str, task_index: int) -> bool:
        """True for the chief and the evaluator, and for worker 0 without a chief.
        ValueError: the task is not in the cluster."""
        result: bool = self._rule("is_chief", task_type, task_index)
        return result

    def collective_leader(self, task_type: Optional[str] = None) -> str:
        """The leader of collective operations: "/job:chief/task:0", or without a chief
        worker 0; "" for an empty spec, and for ``task_type`` "evaluator"."""
        result: str = self._rule("collective_leader", task_type)
        return result

    def coordination_leader(self) -> str:
        """The host of the coordination service by TensorFlow's rule: ps 0, else the
        chief, else worker 0; "" for an empty spec. service_host() has muster's rule."""
        return self._cluster.coordination_leader()

    def service_host(self) -> str:
        """The host of muster's coordination service when the option ``service_hosts`` is
        not set: the chief, else ps 0, else worker 0."""
        return self._cluster.service_host()

    def worker_count(self, task_type: str) -> int:
        """Number of tasks that train together with a task of this type: chief and
        workers, for the evaluator the evaluators. ValueError for other types."""
        result: int = self._rule("worker_count", task_type)
        return result

    def id_in_cluster(self, task_type: str, task_index: int) -> int:
        """The number of a task among those that worker_count() counts. ValueError for
        other types."""
        result: int = self._rule("id_in_cluster", task_type, task_index)
        return result

    def split(self, task_type: Optional[str]) -> ClusterSpec:
        """The part of the cluster that works with a task of this type: for the evaluator
        the evaluators, for all others every task but these."""
        return ClusterSpec._wrap(self._cluster.split(task_type))

    def _rule(self, name: str, *args: Any) -> Any:
        try:
            return getattr(self._cluster, name)(*args)
        except errors.InvalidArgumentError:
            raise
        except errors.MusterError as error:
            raise ValueError(str(error)) from error


def _to_spec(cluster: Optional[ClusterSpecLike]) -> Optional[ClusterSpec]:
    """Anything that a spec can be made from; None stays None."""
    if cluster is None or isinstance(cluster, ClusterSpec):
        return cluster
    return ClusterSpec(cluster)


def _to_cluster(cluster: ClusterSpecLike) -> _muster.Cluster:
    """The extension's cluster object."""
    if isinstance(cluster, _muster.Cluster):
        return cluster
    spec = cluster if isinstance(cluster, ClusterSpec) else ClusterSpec(cluster)
    return spec._cluster
