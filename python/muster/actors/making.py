"""Making actors, and finding them by their names."""

from __future__ import annotations

import asyncio
import threading
import time
import types
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping,
                    NamedTuple, Optional, Tuple, TypeVar, cast)

from .. import _content, _muster, _pickling, _scope, errors
from ..errors import ActorError
from .about import About, describe, read_about
from .handles import _OF_NAME, Handle
from .reaching import method_of, reach

if TYPE_CHECKING:
    from ..coordinator import ClusterCoordinator

T = TypeVar("T")

_REGISTER_SECONDS = 10.0
_UNDER_WAY = 256        # actors that a coordinator has not seen made
_RESTART = {"failed": 0, "never": 1, "always": 2}   # enum mu_actor_restart
_KEPT = 8                                           # enum mu_actor_flag

# The pickle of a class, and what it consists of.
_pickles: "weakref.WeakKeyDictionary[type, Tuple[bytes, Dict[str, Any], List[Any]]]" = \
    weakref.WeakKeyDictionary()


def _parts_of(cls: type) -> Dict[str, Any]:
    return {f"{base.__module__}.{base.__qualname__}.{name}": part
            for base in cls.__mro__[:-1] for name, part in vars(base).items()
            if name not in ("__dict__", "__weakref__")}


def _pickle_of(cls: type) -> bytes:
    """The pickle of a class: that of before, while nothing of it has changed, as with
    functions."""
    known = _pickles.get(cls)
    if known is not None and len(known[1]) == len(parts := _parts_of(cls)) and \
            all(parts.get(name, known) is part for name, part in known[1].items()) and \
            all(content.holds() for content in known[2]):
        return known[0]
    parts = _parts_of(cls)
    contents = []
    for part in parts.values():
        if isinstance(part, types.FunctionType):
            contents.append(_content.content_of(part))
        elif not isinstance(part, (str, int, float, bool, bytes, type(None))):
            contents.append(None)       # a list, a property: what it has may change
    data = _pickling.dumps_function(cls)
    if all(content is not None for content in contents):
        _pickles[cls] = data, parts, contents
    return data


def _task_for(coordinator: "ClusterCoordinator", worker: Optional[int],
              worker_type: str) -> int:
    """The worker for a new actor: one after the other."""
    count = coordinator.node.task_count(worker_type)
    if count == 0:
        raise errors.NotFoundError(f"the cluster has no tasks of type {worker_type!r}")
    if worker is None:
        number = coordinator._actors_spawned = coordinator._actors_spawned + 1
        return number % count
    if not 0 <= worker < count:
        raise errors.InvalidArgumentError(
            f"worker is {worker}, and there are {count} tasks of type {worker_type!r}")
    return worker


def _is_passing(error: ActorError, is_named: bool) -> bool:
    """A worker that has just started may be linked before it has the type of actors in
    Python, and a name may not be free yet."""
    return error.code in (errors.NotFoundError.code, errors.UnavailableError.code) and \
        (is_named or error.ran == "no")


class Spawned:
    """An actor that is being made."""

    def __init__(self, is_named: bool, *what: Any) -> None:
        self._is_named = is_named
        self._what: Tuple[Any, ...] = what
        self._value: Any = _muster.actor_spawn(*what)
        self._until: Optional[float] = None     # of trying again
        self._actor: Optional["_muster.Actor"] = None
        self._lock = threading.Lock()

    def actor(self) -> "_muster.Actor":
        """Wait for it; the exception of its constructor is raised."""
        with self._lock:
            while self._actor is None:
                try:
                    address = cast(str, self._value.fetch())
                    node, coordinator = self._what[:2]
                    self._actor = _muster.Actor(node, coordinator, address)
                    self._what, self._value = (), None
                except ActorError as error:
                    now = time.monotonic()
                    if self._until is None:     # perhaps it is used long after spawn()
                        self._until = now + _REGISTER_SECONDS
                    if not _is_passing(error, self._is_named) or now > self._until:
                        raise
                    time.sleep(0.01)
                    self._value = _muster.actor_spawn(*self._what)
            return self._actor

    def wait(self) -> None:
        """Wait until it has been made, or cannot be."""
        try:
            self.actor()
        except Exception:
            pass        # it is told who uses the handle


def _limit(coordinator: "ClusterCoordinator", spawned: Spawned,
           task: Tuple[str, int]) -> None:
    """Wait for the first one on a worker, and for the oldest of many."""
    if task not in coordinator._actors_at:
        spawned.wait()
        coordinator._actors_at.add(task)
        return
    coordinator._actors_made.append(spawned)
    if len(coordinator._actors_made) > _UNDER_WAY:
        coordinator._actors_made.popleft().wait()


class Named(NamedTuple):
    """How an actor with a name is made, and started again."""

    name: Optional[str]
    restart: int
    restarts: int
    within_ms: int
    flags: int


def _named(name: Optional[str], restart: str, restarts: int, within: float, kept: bool,
           worker: Optional[int]) -> Named:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is {name!r}, expected a str")
    if name is not None and worker is not None:
        raise ValueError("the cluster places an actor with a name: worker= is for those "
                         "without")
    if restart not in _RESTART:
        raise ValueError(f'restart is {restart!r}, expected "failed", "never" or '
                         '"always"')
    if not 0 <= restarts <= 1 << 30 or not 0 <= within <= 1 << 20:
        raise ValueError(f"restarts is {restarts} within {within} s: too many")
    if kept and name is None:
        raise ValueError("a kept actor has a name: name=")
    return Named(name, _RESTART[restart], restarts, int(within * 1000),
                 _KEPT if kept else 0)


def _check_how(cls: Any, where: str, concurrency: int, kept: bool) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"an actor is made of a class, not of {cls!r}")
    if where not in ("thread", "process"):
        raise ValueError(f'where is {where!r}, expected "thread" or "process"')
    if kept and (where == "process" or concurrency > 1):
        raise ValueError("a kept actor runs one call at a time, on a thread of its "
                         "worker")
    if where == "process" and concurrency > 1:
        raise ValueError("an actor in a process of its own runs one call at a time: make "
                         "several")
    if not 1 <= concurrency <= 10000:
        raise ValueError(f"concurrency is {concurrency}, expected 1 to 10000")


def _about_of(actor: "_muster.Actor", label: str, timeout: Optional[float]) -> About:
    """Of an actor, once its constructor has returned."""
    method = method_of(actor, "muster.about", label, None, timeout, 0)
    return read_about(cast(Any, method()).fetch())


def _about_of_named(actor: "_muster.Actor", name: str, about: About,
                    timeout: Optional[float]) -> About:
    """The same of one that was made or found. One that cannot be made is not tried
    again."""
    try:
        found = _about_of(actor, f"{about.name}.__init__", timeout)
    except ActorError:
        raise
    except Exception:
        actor.end()
        raise
    if found.name.rpartition(".")[2] != about.name.rpartition(".")[2]:
        raise errors.AlreadyExistsError(f"the actor {name!r} is a {found.name}, not a "
                                        f"{about.name}")
    return found


def spawn(coordinator: "ClusterCoordinator", cls: Callable[..., T],
          args: Iterable[Any] = (), kwargs: Optional[Mapping[str, Any]] = None, *,
          where: str = "thread", worker: Optional[int] = None,
          worker_type: str = "worker", concurrency: int = 1, name: Optional[str] = None,
          kept: bool = False, restart: str = "failed", restarts: int = 5,
          restarts_within: float = 60.0,
          timeout: Optional[float] = 60.0) -> "Handle[T]":
    """Make an actor; see ClusterCoordinator.spawn()."""
    _check_how(cls, where, concurrency, kept)
    named = _named(name, restart, restarts, restarts_within, kept, worker)
    about = describe(cast(type, cls))
    node = coordinator.node
    index = _task_for(coordinator, worker, worker_type)
    spawned = Spawned(name is not None, node, coordinator, worker_type, index,
                      tuple(named), _pickle_of(cast(type, cls)), about.name[-63:], where,
                      concurrency, tuple(args), None if kwargs is None else dict(kwargs),
                      timeout)
    if name is None:
        _limit(coordinator, spawned, (worker_type, index))
        return Handle(about, None, None, spawned)
    made = spawned.actor()
    return Handle(_about_of_named(made, name, about, timeout), made.address, made)


def actor(name: str, *, node: Any = None, timeout: Optional[float] = 60.0
          ) -> "Handle[Any]":
    """The actor that has a name, wherever it is. Waits until there is one.

    node: a Node, LocalCluster or coordinator; by default that of this function's or
    method's run, or of the innermost `with`. timeout: seconds for all of this.
    """
    simulation = getattr(asyncio._get_running_loop(), "simulation", None)
    if simulation is not None and node is None:
        return cast("Handle[Any]", simulation.actor(name))
    own = _scope.current_node() if node is None else _scope.node_of(node)
    address = _OF_NAME + name
    found = reach(own, None, address)
    return Handle(_about_of(found, f"actor {name}", timeout), address, found)
