"""A simulated cluster for actors in Python: one thread, virtual time, faults of a seed.

    with muster.Simulation(seed=7) as sim:
        counter = sim.spawn(Counter, (5,), worker=0)
        sim.chaos(10)
        print(counter.add(1), sim.now)

Methods run inline, one at a time for each actor. An asynchronous one may wait for other
actors, `await other.add(1)`, and for time, `await muster.simulation.sleep(0.5)`; a call
from outside lets time pass until it is answered. The same seed gives the same trace.
"""

from __future__ import annotations

import collections
import ctypes as c
import inspect
import pickle
from typing import Any, Callable, Deque, Dict, Generator, List, Optional, Tuple

from .. import errors
from ._library import (CHECK, NOTICE, STOP, TURN, Address, Error, Method, Type,
                       load_library)

_ANSWER, _TIMER = 1, 2              # enum mu_notice_kind
_CRASH = 1                          # enum mu_sim_kind
_CALL_MS = 10000
_RAN = ("", "no", "maybe", "yes")


# ---- what actors wait for ----

class _Wait:
    """One thing that a coroutine of an actor waits for."""

    def __init__(self, begin: Callable[[int, int], int]) -> None:
        self.begin = begin

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self)


class _Task:
    """A method that has not returned."""

    def __init__(self, reply: int, coroutine: Any) -> None:
        self.reply = reply
        self.coroutine = coroutine


class _Actor:
    """The object of one actor, and the calls that it has."""

    def __init__(self, sim: "Simulation", target: Any) -> None:
        self.sim = sim
        self.target = target
        self.task: Optional[_Task] = None
        self.queue: Deque[Tuple[int, bytes]] = collections.deque()


def sleep(seconds: float) -> Any:
    """Wait, in an asynchronous method of a simulated actor."""
    def begin(actor: int, token: int) -> int:
        return int(_running.library.mu_actor_timer(
            c.c_void_p(actor), c.c_uint64(int(seconds * 1000)), c.c_uint64(token)))
    return _Wait(begin)


_running: Any = None        # the simulation whose turn this is


class Handle:
    """An actor of a simulation."""

    def __init__(self, cls: type, address: bytes) -> None:
        self._cls = cls
        self._address = address

    def __reduce__(self) -> Any:
        return (Handle, (self._cls, self._address))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not callable(getattr(self._cls, name, None)):
            raise AttributeError(f"{self._cls.__qualname__} has no method {name!r}")

        def call(*args: Any, **kwargs: Any) -> Any:
            return _running.call(self._address, pickle.dumps((name, args, kwargs), 5))
        return call


class Simulation:
    """See the module."""

    def __init__(self, seed: int = 1, workers: int = 2, calm: bool = False) -> None:
        self.library = load_library()
        self.seed, self.workers, self._calm = seed, workers, calm
        self._classes: List[type] = []
        self._actors: Dict[int, _Actor] = {}    # by the address of its state
        self._waits: Dict[int, Tuple[int, _Actor]] = {}
        self._tokens = 0
        self._turn: Optional[int] = None
        self._keep: List[Any] = []

    # ---- values ----

    def _value(self, data: bytes) -> int:
        return int(self.library.mu_value_bytes(data, len(data)))

    def _bytes(self, value: Optional[int]) -> bytes:
        data, size = c.c_void_p(), c.c_size_t()
        if value is None or self.library.mu_value_get_bytes(
                c.c_void_p(value), c.byref(data), c.byref(size)) != 0:
            return pickle.dumps((True, None), 5)
        return c.string_at(data, size.value)

    def _open(self, data: bytes) -> Any:
        fine, value = pickle.loads(data)
        if fine:
            return value
        raise value

    def _raise(self, error: Error) -> Any:
        raised = errors.ActorError(error.message.decode(), task=error.task.decode(),
                                   code=-error.code)
        raised.ran = _RAN[error.ran]
        raise raised

    # ---- turns ----

    def _start(self, actor: int, state: int, args: Optional[int]) -> int:
        number, made = pickle.loads(self._bytes(args))
        try:
            self._actors[state] = _Actor(self, self._classes[number](*made))
        except Exception as error:
            return int(self.library.mu_actor_fail(c.c_void_p(actor), -10, b"%s",
                                                  repr(error).encode()))
        return 0

    def _call(self, actor: int, state: int, args: Optional[int]) -> int:
        reply = self.library.mu_actor_put_off(c.c_void_p(actor))
        self._actors[state].queue.append((reply, self._bytes(args)))
        self._run(actor, self._actors[state])
        return 0

    def _answer(self, reply: int, fine: bool, value: Any) -> None:
        try:
            data = pickle.dumps((fine, value), 5)
        except Exception as error:
            data = pickle.dumps((False, TypeError(str(error))), 5)
        self.library.mu_reply_give(c.c_void_p(reply), c.c_void_p(self._value(data)), None)

    def _step(self, actor: int, own: _Actor, send: Callable[[Any], Any]) -> None:
        """Go on with the method until it waits again, or has returned."""
        task = own.task
        assert task is not None
        try:
            wait = send(task.coroutine)
            self._tokens += 1
            self._waits[self._tokens] = id(task), own
            rv = wait.begin(actor, self._tokens)
            if rv != 0:
                self._waits.pop(self._tokens)
                raise errors.ResourceExhaustedError(f"the call was refused: {rv}")
        except StopIteration as end:
            self._answer(task.reply, True, end.value)
            own.task = None
        except Exception as error:
            self._answer(task.reply, False, error)
            own.task = None

    def _run(self, actor: int, own: _Actor) -> None:
        while own.task is None and own.queue:
            reply, data = own.queue.popleft()
            name, args, kwargs = pickle.loads(data)
            try:
                result = getattr(own.target, name)(*args, **kwargs)
            except Exception as error:
                self._answer(reply, False, error)
                continue
            if not inspect.iscoroutine(result):
                self._answer(reply, True, result)
                continue
            own.task = _Task(reply, result)
            self._step(actor, own, lambda coroutine: coroutine.send(None))

    def _notice(self, actor: int, state: int, notice: Any) -> None:
        at = notice.contents
        task, own = self._waits.pop(at.token, (0, None))
        if own is None or own.task is None or id(own.task) != task:
            return
        try:
            if at.kind == _ANSWER and at.error:
                self._raise(at.error.contents)
            value = None if at.kind == _TIMER else self._open(self._bytes(at.value))
        except Exception as error:
            raised = error
            self._step(actor, own, lambda coroutine: coroutine.throw(raised))
        else:
            self._step(actor, own, lambda coroutine: coroutine.send(value))
        self._run(actor, own)

    def _stop(self, actor: int, state: int, why: Any) -> None:
        self._actors.pop(state, None)

    def _in_turn(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def turn(actor: int, *args: Any) -> Any:
            self._turn = actor
            try:
                return run(actor, *args)
            except BaseException as error:      # a defect of the simulation
                self.fail(repr(error))
                return -2
            finally:
                self._turn = None
        return turn

    # ---- its life ----

    def __enter__(self) -> "Simulation":
        global _running
        start, call = TURN(self._in_turn(self._start)), TURN(self._in_turn(self._call))
        notice = NOTICE(self._in_turn(self._notice))
        stop = STOP(self._in_turn(self._stop))
        methods = (Method * 2)(Method(b"call", call), Method(None))
        kind = Type(b"python", 8, methods, start, notice, stop)
        types = (c.POINTER(Type) * 2)(c.pointer(kind))
        self._keep = [start, call, notice, stop, methods, kind, types]
        self._sim = c.c_void_p(self.library.mu_sim_new(self.seed))
        tasks = f"worker:0-{self.workers - 1}" if self.workers > 1 else "worker:0"
        self.library.mu_sim_add(self._sim, b"chief:0", types, None, None)
        self.library.mu_sim_add(self._sim, tasks.encode(), types, None, None)
        if self._calm:
            self.library.mu_sim_calm(self._sim)
        _running = self
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        global _running
        failure = self.library.mu_sim_failure(self._sim)
        _running = None
        self.library.mu_sim_free(self._sim)
        if failure and (kind is None or issubclass(kind, errors.MusterError)):
            raise AssertionError(f"seed {self.seed}: {failure.decode()}")

    # ---- for stories ----

    def spawn(self, cls: type, args: Tuple[Any, ...] = (), worker: int = 0) -> Handle:
        """Make an actor on a worker."""
        self._classes.append(cls)
        value = self._value(pickle.dumps((len(self._classes) - 1, args), 5))
        address = Address()
        rv = self.library.mu_sim_spawn(self._sim, f"worker:{worker}".encode(), b"python",
                                       c.c_void_p(value), None, c.byref(address))
        self.library.mu_value_free(c.c_void_p(value))
        if rv != 0:
            raise errors.UnavailableError(f"worker {worker} does not run now")
        return Handle(cls, bytes(address))

    def call(self, address: bytes, data: bytes, timeout_ms: int = _CALL_MS) -> Any:
        """Call an actor: from a method something to wait for, else its answer."""
        to = Address.from_buffer_copy(address)
        value = c.c_void_p(self._value(data))
        if self._turn is not None:
            def begin(actor: int, token: int) -> int:
                rv = self.library.mu_actor_call(c.c_void_p(actor), c.byref(to), b"call",
                                                value, c.c_int64(timeout_ms),
                                                c.c_uint64(token))
                self.library.mu_value_free(value)
                return int(rv)
            return _Wait(begin)
        error, answer = Error(), c.c_void_p()
        rv = self.library.mu_sim_request(self._sim, b"chief:0", c.byref(to), b"call",
                                         value, c.c_int64(timeout_ms), c.byref(error),
                                         c.byref(answer))
        self.library.mu_value_free(value)
        if rv != 0:
            self._raise(error)
        found = self._bytes(answer.value)
        self.library.mu_value_free(answer)
        return self._open(found)

    @property
    def now(self) -> float:
        """Seconds of virtual time."""
        return int(self.library.mu_sim_now_ms(self._sim)) / 1000

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.library.mu_sim_run_until(self._sim,
                                      c.c_uint64(int((self.now + seconds) * 1000)))

    def chaos(self, seconds: float) -> None:
        """Faults that the seed draws, for so long."""
        self.library.mu_sim_chaos(self._sim, 0, c.c_uint64(0), c.c_uint64(0),
                                  c.c_uint64(int((self.now + seconds) * 1000)))

    def crash(self, worker: int, seconds: float) -> None:
        """A worker is gone now, and starts again after so long."""
        self.library.mu_sim_fault(self._sim, _CRASH, f"worker:{worker}".encode(), None,
                                  c.c_uint64(int(self.now * 1000)),
                                  c.c_uint64(int(seconds * 1000)))

    def random(self, least: int, most: int) -> int:
        """A number of the seed."""
        return int(self.library.mu_sim_random(self._sim, c.c_uint64(least),
                                              c.c_uint64(most)))

    def check(self, what: Callable[[], Any]) -> None:
        """Call a function after each event: what it raises fails the simulation."""
        def look(*_: Any) -> None:
            try:
                what()
            except Exception as error:
                self.fail(repr(error))
        self._keep.append(CHECK(look))
        self.library.mu_sim_check(self._sim, self._keep[-1], None)

    def fail(self, words: str) -> None:
        """It has failed: time stands still from now on."""
        self.library.mu_sim_fail(self._sim, b"%s", words.encode())

    @property
    def trace(self) -> str:
        """Lines since the last time."""
        return (self.library.mu_sim_trace(self._sim) or b"").decode()
