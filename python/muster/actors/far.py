"""Actors as functions and actors in processes of a worker call them: by their worker."""

from __future__ import annotations

import collections
import itertools
import threading
from typing import Any, Dict, Generator, List, Mapping, Optional, Tuple

from .. import _muster, _process, errors
from . import hosting

_OPEN_MAX = 10000       # calls of a worker's processes whose answers nobody has taken
_ACTORS_MAX = 256


# ---- in the process ----

class Actor:
    """Like _muster.Actor."""

    def __init__(self, node: Any, address: str) -> None:
        self.node = node
        self.address = address

    def end(self) -> None:
        """Stop it now."""
        _process.ask("actor_end", self.address)


_dropped: List[int] = []    # values that nobody wants: the worker hears it with a call


class Value:
    """The answer of a call: of a RemoteValue what one needs in a process."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._answer: Optional[Tuple[bool, Any]] = None

    def fetch(self, timeout: Optional[float] = None) -> Any:
        """Wait for the answer: its value, or its exception is raised."""
        if self._answer is None:
            try:
                self._answer = True, _process.ask("actor_answer", self._number, timeout)
            except errors.DeadlineExceededError as error:
                if isinstance(error, errors.ActorError):
                    self._answer = False, error
                raise
            except Exception as error:
                self._answer = False, error
        fine, answer = self._answer
        if fine:
            return answer
        raise answer

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """Wait for the answer: its exception, or None."""
        try:
            self.fetch(timeout)
        except errors.DeadlineExceededError:
            if self._answer is None:
                raise
        except Exception:
            pass
        assert self._answer is not None
        return None if self._answer[0] else self._answer[1]

    def __await__(self) -> Generator[Any, None, Any]:
        return self.fetch()
        yield

    def __reduce__(self) -> Any:
        return (hosting.same, (self.fetch(),))

    def __del__(self) -> None:
        if self._answer is None:
            _dropped.append(self._number)


class Method:
    """Like _muster.ActorMethod."""

    def __init__(self, actor: Actor, name: str, label: str, doc: Optional[str],
                 timeout: Optional[float], flags: int) -> None:
        self._how = actor.address, name, label, timeout, flags
        self.__name__ = name
        self.__qualname__ = label
        self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> Optional[Value]:
        dropped = [_dropped.pop() for _ in range(len(_dropped))]
        number = _process.ask("actor_call", self._how, args, kwargs, dropped)
        return None if number == 0 else Value(number)


# ---- in the worker ----

_values: "collections.OrderedDict[int, Any]" = collections.OrderedDict()
_actors: "collections.OrderedDict[Tuple[int, str], Any]" = collections.OrderedDict()
_numbers = itertools.count(1)
_lock = threading.Lock()


def _actor_of(address: str) -> Any:
    """One for all calls, as it counts what is under way."""
    node = _muster.current_run().node
    key = id(node), address
    with _lock:
        known = _actors.get(key)
        if known is None or known.node is not node:
            known = _actors[key] = _muster.Actor(node, None, address)
        _actors.move_to_end(key)
        while len(_actors) > _ACTORS_MAX:
            _actors.popitem(last=False)
        return known


def call(how: Tuple[str, str, str, Optional[float], int], args: Tuple[Any, ...],
         kwargs: Mapping[str, Any], dropped: List[int]) -> int:
    """Make a call for a process; its number, or 0 when there is no answer."""
    address, name, label, timeout, flags = how
    method = _muster.ActorMethod(_actor_of(address), name, label, None, timeout, flags)
    value = method(*args, **kwargs)
    if value is None:
        return 0
    number = next(_numbers)
    unwanted = []
    with _lock:
        for other in dropped:
            unwanted.append(_values.pop(other, None))
        _values[number] = value
        while len(_values) > _OPEN_MAX:
            unwanted.append(_values.popitem(last=False)[1])
    return number


def answer(number: int, timeout: Optional[float]) -> Any:
    """Wait for the answer of a call."""
    value = _values.get(number)
    if value is None:
        raise errors.ResourceExhaustedError(
            f"the answer was dropped: {_OPEN_MAX} later ones wait to be fetched")
    if not value.wait(timeout):
        value.fetch(0)      # says what is missing
    with _lock:
        _values.pop(number, None)
    return value.fetch()


def end(address: str) -> None:
    """Stop an actor now."""
    _actor_of(address).end()


ANSWERS: Dict[str, Any] = {"actor_call": call, "actor_answer": answer, "actor_end": end}
