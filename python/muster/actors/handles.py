"""Making actors, and calling them."""

from __future__ import annotations

import inspect
import time
import types
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Dict, Generic, Iterable, List,
                    Mapping, NamedTuple, Optional, Tuple, TypeVar, cast)

from .. import _content, _muster, _pickling, _scope, errors
from ..errors import ActorError
from .streams import Stream

if TYPE_CHECKING:
    from ..coordinator import ClusterCoordinator

T = TypeVar("T")

_ONE_WAY = 1        # as in src/hosting/hosting.h
_STREAM = 2
_REGISTER_SECONDS = 10.0


class _Method(NamedTuple):
    """What callers know of a method."""

    is_stream: bool
    doc: str
    signature: str


class _About(NamedTuple):
    """What callers know of a class."""

    name: str
    doc: str
    methods: Dict[str, _Method]


_described: "weakref.WeakKeyDictionary[type, _About]" = weakref.WeakKeyDictionary()


def _signature_of(function: Any) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    parts = list(signature.parameters.values())
    is_bound = bool(parts) and not isinstance(function, (staticmethod, classmethod))
    return str(signature.replace(parameters=parts[1:] if is_bound else parts))


def _describe(cls: type) -> _About:
    known = _described.get(cls)
    if known is not None:
        return known
    methods: Dict[str, _Method] = {}
    for name in dir(cls):
        function = getattr(cls, name, None)
        if name.startswith("_") or not callable(function):
            continue
        is_stream = inspect.isgeneratorfunction(function) or \
            inspect.isasyncgenfunction(function)
        methods[name] = _Method(is_stream, inspect.getdoc(function) or "",
                                _signature_of(function))
    about = _About(cls.__qualname__, inspect.getdoc(cls) or "", methods)
    _described[cls] = about
    return about


# ---- handles ----

class StreamMethod:
    """A generator method of an actor: calling it gives a Stream."""

    def __init__(self, method: "_muster.ActorMethod", actor: "_muster.Actor", label: str,
                 doc: str, timeout: Optional[float]) -> None:
        self._method = method
        self._how = actor, label, timeout
        self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> "Stream[Any]":
        return Stream(cast(Any, self._method(*args, **kwargs)), *self._how)


class Handle(Generic[T]):
    """An actor, as its callers have it: handle.method(...) gives a RemoteValue, at once.

    It can be pickled: pass it to functions, to other actors, or keep it. The methods of
    the class are those of the handle; options(), stop() and address are its own.
    """

    _about: _About
    _address: str

    def __init__(self, about: _About, address: str,
                 actor: Optional["_muster.Actor"] = None) -> None:
        self.__dict__.update(_about=about, _address=address, _actor=actor)

    @property
    def address(self) -> str:
        """The actor's address, the same for all handles of it."""
        return self._address

    def _reach(self) -> "_muster.Actor":
        actor = self.__dict__["_actor"]
        if actor is None or actor.node.closed:
            actor = _muster.Actor(_scope.current_node(), None, self._address)
            self.__dict__["_actor"] = actor
        return cast("_muster.Actor", actor)

    def _method(self, name: str, timeout: Optional[float] = None,
                flags: int = 0) -> Any:
        about = self._about.methods.get(name)
        if about is None:
            names = ", ".join(sorted(self._about.methods))
            raise AttributeError(f"{self._about.name} has no method {name!r}; it has: "
                                 f"{names}")
        if about.is_stream and flags & _ONE_WAY:
            raise TypeError(f"{self._about.name}.{name} is a generator: nobody would get "
                            "its items with one_way=True")
        actor = self._reach()
        label = f"{self._about.name}.{name}"
        doc = f"{label}{about.signature}\n\n{about.doc}".rstrip()
        method = _muster.ActorMethod(actor, name, label, doc, timeout,
                                     flags | (_STREAM if about.is_stream else 0))
        return StreamMethod(method, actor, label, doc, timeout) if about.is_stream \
            else method

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Callable[..., Any]: ...
    else:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            method = self._method(name)
            self.__dict__[name] = method    # the next time it is found at once
            return method

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"the attributes of an actor are its own: call a method of "
                             f"{self._about.name} that sets {name}")

    def options(self, *, timeout: Optional[float] = None,
                one_way: bool = False) -> "Options":
        """The methods, with options for their calls.

        timeout: seconds until a call without an answer ends with an error; it is not
        begun any more then. one_way: there is no answer: the call returns None, and an
        exception is logged where it was raised.
        """
        return Options(self, timeout, _ONE_WAY if one_way else 0)

    def stop(self, *, now: bool = False, timeout: Optional[float] = 60.0) -> None:
        """End the actor, once it has answered the calls that it has. now: at once;
        callers of what was not begun get an ActorError."""
        actor = self._reach()
        if now:
            actor.end()
            return
        stop = _muster.ActorMethod(actor, "muster.stop", f"{self._about.name}.stop", None,
                                   timeout, 0)
        try:
            cast(Any, stop()).fetch()
        except ActorError as error:
            if error.ran == "maybe" and isinstance(error, errors.DeadlineExceededError):
                raise   # else it has ended already

    def __dir__(self) -> Iterable[str]:
        return sorted({*object.__dir__(self), *self._about.methods})

    def __repr__(self) -> str:
        return f"<muster.Handle of {self._about.name} at {self._address}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __reduce__(self) -> Any:
        return (_unpickle_handle, (tuple(self._about), self._address))


def _unpickle_handle(about: Tuple[Any, ...], address: str) -> "Handle[Any]":
    name, doc, methods = about
    known = {key: _Method(*value) for key, value in methods.items()}
    return Handle(_About(name, doc, known), address)


class Options:
    """The methods of an actor with options; see Handle.options()."""

    def __init__(self, handle: "Handle[Any]", timeout: Optional[float],
                 flags: int) -> None:
        self._how = handle, timeout, flags

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Callable[..., Any]: ...
    else:
        def __getattr__(self, name: str) -> Any:
            handle, timeout, flags = self._how
            return handle._method(name, timeout, flags)

    def __dir__(self) -> Iterable[str]:
        return sorted(self._how[0]._about.methods)


# ---- making them ----

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


def _start(*what: Any) -> str:
    """Make the actor; its address. A worker that has just started may be linked before it
    has the type of actors in Python."""
    until = time.monotonic() + _REGISTER_SECONDS
    while True:
        try:
            return _muster.actor_spawn(*what)
        except ActorError as error:
            if error.code != errors.NotFoundError.code or time.monotonic() > until:
                raise
        time.sleep(0.01)


def spawn(coordinator: "ClusterCoordinator", cls: Callable[..., T],
          args: Iterable[Any] = (), kwargs: Optional[Mapping[str, Any]] = None, *,
          where: str = "thread", worker: Optional[int] = None,
          worker_type: str = "worker", concurrency: int = 1,
          timeout: Optional[float] = 60.0) -> "Handle[T]":
    """Make an actor; see ClusterCoordinator.spawn()."""
    if not isinstance(cls, type):
        raise TypeError(f"an actor is made of a class, not of {cls!r}")
    if where not in ("thread", "process"):
        raise ValueError(f'where is {where!r}, expected "thread" or "process"')
    if where == "process" and concurrency > 1:
        raise ValueError("an actor in a process of its own runs one call at a time: make "
                         "several")
    if not 1 <= concurrency <= 10000:
        raise ValueError(f"concurrency is {concurrency}, expected 1 to 10000")
    about = _describe(cls)
    node = coordinator.node
    address = _start(node, worker_type, _task_for(coordinator, worker, worker_type),
                     _pickle_of(cls), about.name[-63:], where, concurrency,
                     tuple(args), None if kwargs is None else dict(kwargs), timeout)
    actor = _muster.Actor(node, coordinator, address)
    ready = _muster.ActorMethod(actor, "muster.ready", f"{about.name}.__init__", None,
                                timeout, 0)
    try:
        cast(Any, ready()).fetch()
    except errors.DeadlineExceededError:
        actor.end()
        raise
    return Handle(about, address, actor)
