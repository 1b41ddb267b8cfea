"""Calling actors."""

from __future__ import annotations

from typing import (TYPE_CHECKING, Any, Callable, Generic, Iterable, Optional, Tuple,
                    TypeVar, cast)

from .. import _muster, _scope, errors
from ..errors import ActorError
from .about import About, pack_about, read_about
from .reaching import method_of, reach
from .streams import Stream

if TYPE_CHECKING:
    from .making import Spawned

T = TypeVar("T")

_ONE_WAY = 1        # as in src/hosting/hosting.h
_STREAM = 2
_OF_NAME = "/actor:"


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
    the class are those of the handle; options(), stop(), address and name are its own.
    """

    _about: About
    _address: Optional[str]

    def __init__(self, about: About, address: Optional[str],
                 actor: Optional["_muster.Actor"] = None,
                 spawned: Optional["Spawned"] = None) -> None:
        self.__dict__.update(_about=about, _address=address, _actor=actor,
                             _spawned=spawned)

    @property
    def address(self) -> str:
        """The actor's address, the same for all handles of it."""
        if self._address is None:
            actor = self.__dict__["_spawned"].actor()
            self.__dict__.update(_actor=actor, _address=actor.address)
        return cast(str, self._address)

    @property
    def name(self) -> Optional[str]:
        """The actor's own name; None: it has none."""
        address = self._address
        has_name = address is not None and address.startswith(_OF_NAME)
        return cast(str, address)[len(_OF_NAME):] if has_name else None

    def _reach(self) -> "_muster.Actor":
        address = self.address
        actor = self.__dict__["_actor"]
        if actor is None or actor.node.closed:
            actor = reach(_scope.current_node(), None, address)
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
        method = method_of(actor, name, label, doc, timeout,
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
        raise AttributeError("the attributes of an actor are its own: call a method of "
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
        callers of what was not begun get an ActorError. A name is free then."""
        actor = self._reach()
        if not now:
            self._stop_later(actor, timeout)
        if now or self.name is not None:
            actor.end()

    def _stop_later(self, actor: "_muster.Actor", timeout: Optional[float]) -> None:
        stop = method_of(actor, "muster.stop", f"{self._about.name}.stop", None,
                                   timeout, 0)
        try:
            cast(Any, stop()).fetch()
        except ActorError as error:
            if error.ran == "maybe" and isinstance(error, errors.DeadlineExceededError):
                raise   # else it has ended already

    def __dir__(self) -> Iterable[str]:
        return sorted({*object.__dir__(self), *self._about.methods})

    def __repr__(self) -> str:
        where = self._address or "an address that is not known yet"
        return f"<muster.Handle of {self._about.name} at {where}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __reduce__(self) -> Any:
        return (_unpickle_handle, (pack_about(self._about), self.address))


def _unpickle_handle(about: Tuple[Any, ...], address: str) -> "Handle[Any]":
    return Handle(read_about(about), address)


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
