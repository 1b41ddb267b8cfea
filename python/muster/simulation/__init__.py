"""A simulated cluster for actors in Python: one thread, virtual time, faults of a seed.

    with muster.Simulation(seed=7) as sim:
        counter = sim.spawn(Counter, (5,), name="total", kept=True)
        sim.chaos(10)
        print(counter.add(1), sim.now)

Methods run inline. An asynchronous one may wait for other actors, `await other.add(1)`,
and for time, `await asyncio.sleep(0.5)`, with all of asyncio that needs no files or
threads. A call from outside lets time pass until it is answered. The same seed gives the
same trace.
"""

from __future__ import annotations

import asyncio
import ctypes as c
import itertools
import pickle
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple, cast

from .. import errors
from ..actors.about import describe
from ._hosted import Hosted, Stream
from ._library import (CHECK, LOAD, NOTICE, REPLAY, SAVE, STOP, TURN, Address, Error,
                       Method, Options, Type, load_library)
from ._loop import Loop

__all__ = ["Handle", "Simulation", "Stream"]

_ANSWER, _TIMER = 1, 2              # enum mu_notice_kind
_KEPT = 8                           # enum mu_actor_flag
_CALL_SECONDS = 10.0
_RESTART = {"failed": 0, "never": 1, "always": 2}   # enum mu_actor_restart
_FAULTS = {"crash": 1, "pause": 4, "cut": 8, "block": 32, "partition": 64, "slow": 128}
_STORY = b"client:0"        # who calls from outside: it has no faults of these kinds
_SPARED = 7
_PYTHON, _PYTHON_KEPT = b"python", b"python-kept"

_running: Any = None        # the simulation of the innermost `with`


class Answer(asyncio.Future):   # type: ignore[type-arg]
    """What a call in an actor gives, to be awaited."""

    def fetch(self, timeout: Optional[float] = None) -> NoReturn:
        """An actor of a simulation cannot block."""
        raise errors.FailedPreconditionError(
            "a simulated actor waits in asynchronous methods: await the call")


class Handle:
    """An actor of a simulation."""

    def __init__(self, cls: type, address: bytes, timeout: float = _CALL_SECONDS,
                 one_way: bool = False) -> None:
        self._cls, self._address = cls, address
        self._timeout, self._one_way = timeout, one_way

    def __reduce__(self) -> Any:
        return (Handle, (self._cls, self._address))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    @property
    def name(self) -> Optional[str]:
        """The actor's own name; None: it has none."""
        return Address.from_buffer_copy(self._address).name.decode() or None

    def options(self, *, timeout: float = _CALL_SECONDS,
                one_way: bool = False) -> "Handle":
        """The methods, with options for their calls. one_way: in an actor; there is no
        answer then."""
        return Handle(self._cls, self._address, timeout, one_way)

    def stop(self) -> Any:
        """End the actor, once it has answered the calls that it has."""
        return _running.call(self._address, "muster.stop", (self._address,))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        about = None if name.startswith("_") else describe(self._cls).methods.get(name)
        if about is None:
            raise AttributeError(f"{self._cls.__qualname__} has no method {name!r}")

        def call(*args: Any, **kwargs: Any) -> Any:
            result = _running.call(self._address, name, args, kwargs, self._timeout,
                                   self._one_way)
            return Stream(_running, self._address, result) if about.is_stream else result
        return call


class Simulation:
    """See the module."""

    def __init__(self, seed: int = 1, workers: int = 2, calm: bool = False) -> None:
        self.library = load_library()
        self.seed, self.workers, self._calm = seed, workers, calm
        self.loop: Loop = cast(Any, Loop)(self)
        self.numbers = itertools.count(1)       # of streams
        self._classes: List[Tuple[Any, ...]] = []
        self._names: Dict[str, Handle] = {}
        self._actors: Dict[int, Hosted] = {}    # by the address of its state
        self._waits: Dict[int, Tuple[Hosted, Callable[[Any], None]]] = {}
        self._tokens = itertools.count(1)
        self._turn: Optional[int] = None        # the C library's actor, and ours
        self._own: Optional[Hosted] = None
        self._keep: List[Any] = []

    # ---- values ----

    def _value(self, data: bytes) -> c.c_void_p:
        return c.c_void_p(self.library.mu_value_bytes(data, len(data)))

    def _bytes(self, value: Optional[int]) -> Optional[bytes]:
        data, size = c.c_void_p(), c.c_size_t()
        if value is None or self.library.mu_value_get_bytes(
                c.c_void_p(value), c.byref(data), c.byref(size)) != 0:
            return None
        return c.string_at(data, size.value)

    def _open(self, data: Optional[bytes]) -> Any:
        fine: bool
        value: Any
        fine, value = (True, None) if data is None else pickle.loads(data)
        if fine:
            return value
        raise value

    def _error(self, error: Error) -> errors.ActorError:
        made = errors.ActorError(error.message.decode(), task=error.task.decode(),
                                 code=-error.code)
        made.ran = errors._RAN[error.ran]
        return made

    # ---- what an actor does in its turn ----

    def turn_of(self) -> int:
        """The C library's actor."""
        assert self._turn is not None
        return self._turn

    def answer(self, reply: int, data: bytes) -> None:
        """Of a call that was put off."""
        self.library.mu_reply_give(c.c_void_p(reply), self._value(data), None)

    def record(self, actor: int, record: Optional[bytes]) -> None:
        """A change of a kept actor; None: its whole state."""
        value = c.c_void_p() if record is None else self._value(record)
        rv = self.library.mu_actor_record(c.c_void_p(actor), value)
        self.library.mu_value_free(value)
        if rv != 0:
            self.fail(f"a record was refused: {rv}")

    def stop(self, address: bytes) -> None:
        """The actor whose turn it is, once it has done what waits for it."""
        self.library.mu_actor_stop(c.c_void_p(self._turn),
                                   c.byref(Address.from_buffer_copy(address)), 0)

    def die(self, words: str) -> None:
        """It is broken: it ends when what it has answered in this turn has left."""
        def end() -> None:
            error = Error(code=-10, message=words.encode()[:500])
            self.library.mu_actor_die(c.c_void_p(self._turn), c.byref(error))
        self.timer(0.0, end)

    def _token(self, done: Callable[[Any], None]) -> int:
        assert self._own is not None
        token = next(self._tokens)
        self._waits[token] = self._own, done
        return token

    def timer(self, seconds: float, due: Callable[[], None]) -> None:
        """Call a function in a later turn of the same actor."""
        token = self._token(lambda _: due())
        rv = self.library.mu_actor_timer(c.c_void_p(self._turn),
                                         c.c_uint64(round(seconds * 1000)),
                                         c.c_uint64(token))
        if rv != 0:
            del self._waits[token]
            raise errors.ResourceExhaustedError(f"a timer was refused: {rv}")

    def _call_from_actor(self, to: Address, value: c.c_void_p, timeout_ms: int) -> Answer:
        future = Answer(loop=self.loop)

        def done(notice: Any) -> None:
            if future.done():       # it was cancelled
                return
            try:
                if notice.error:
                    raise self._error(notice.error.contents)
                future.set_result(self._open(self._bytes(notice.value)))
            except Exception as error:
                future.set_exception(error)
        token = self._token(done)
        rv = self.library.mu_actor_call(c.c_void_p(self._turn), c.byref(to), b"call",
                                        value, c.c_int64(timeout_ms), c.c_uint64(token))
        if rv != 0:
            del self._waits[token]
            future.set_exception(
                errors.ResourceExhaustedError(f"the call was refused: {rv}"))
        return future

    # ---- turns ----

    def _host(self, state: int, args: Optional[int]) -> Hosted:
        number, made = pickle.loads(self._bytes(args) or b"")
        own = self._actors[state] = Hosted(self, self._classes[number][0], made,
                                           *self._classes[number][1:])
        return own

    def _start(self, actor: int, state: int, args: Optional[int]) -> int:
        self._own = self._host(state, args)
        try:
            self._own.make()
        except Exception as error:
            return int(self.library.mu_actor_fail(c.c_void_p(actor), -10, b"%s",
                                                  repr(error).encode()))
        return 0

    def _load(self, actor: int, state: int, saved: Optional[int], version: int) -> int:
        own = self._host(state, self.library.mu_actor_args(c.c_void_p(actor)))
        own.recorded = pickle.loads(self._bytes(saved) or b"")
        own.is_loading = True
        return 0

    def _save(self, state: int, ret_saved: Any) -> int:
        ret_saved[0] = self._value(pickle.dumps(self._actors[state].recorded, 5))
        return 0

    def _replay(self, state: int, record: Optional[int]) -> int:
        own = self._actors[state]
        if own.is_loading:          # else the object has done that
            own.recorded.append(self._bytes(record))
        return 0

    def _call(self, actor: int, state: int, args: Optional[int]) -> int:
        reply = self.library.mu_actor_put_off(c.c_void_p(actor))
        self._actors[state].take(reply, self._bytes(args) or b"")
        return 0

    def _notice(self, actor: int, state: int, notice: Any) -> None:
        own, done = self._waits.pop(notice.contents.token, (None, None))
        if done is not None and own is self._actors.get(state):
            done(notice.contents)

    def _stop(self, actor: int, state: int, why: Any) -> None:
        self._actors.pop(state, None)

    def _in_turn(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def turn(actor: int, state: int, *args: Any) -> Any:
            self._turn, self._own = actor, self._actors.get(state)
            try:
                return self.loop.run_turn(lambda: run(actor, state, *args))
            except BaseException as error:      # a defect of the simulation
                self.fail(repr(error))
                return -2
            finally:
                self._turn = self._own = None
        return turn

    # ---- its life ----

    def _types(self) -> Any:
        turns = (TURN(self._in_turn(self._start)), NOTICE(self._in_turn(self._notice)),
                 STOP(self._in_turn(self._stop)))
        kept = (SAVE(self._save), LOAD(self._in_turn(self._load)), REPLAY(self._replay))
        methods = (Method * 2)(Method(b"call", TURN(self._in_turn(self._call))),
                               Method(None))
        kinds = (Type(_PYTHON, 8, methods, *turns),
                 Type(_PYTHON_KEPT, 8, methods, *turns, *kept, 1))
        types = (c.POINTER(Type) * 3)(*map(c.pointer, kinds))
        self._keep = [turns, kept, methods, kinds, types]
        return types

    def __enter__(self) -> "Simulation":
        global _running
        types = self._types()
        self._sim = c.c_void_p(self.library.mu_sim_new(self.seed))
        tasks = f"worker:0-{self.workers - 1}" if self.workers > 1 else "worker:0"
        self.library.mu_sim_add(self._sim, b"chief:0", types, None, None)
        self.library.mu_sim_add(self._sim, _STORY, types, None, None)
        self.library.mu_sim_add(self._sim, tasks.encode(), types, None, None)
        self.library.mu_sim_service(self._sim, b"chief:0")
        self.library.mu_sim_spare(self._sim, _STORY, _SPARED)
        if self._calm:
            self.library.mu_sim_calm(self._sim)
        self._outer, _running = _running, self
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        global _running
        failure = self.library.mu_sim_failure(self._sim)
        self.library.mu_sim_free(self._sim)
        _running = self._outer
        if failure and (kind is None or issubclass(kind, errors.MusterError)):
            raise AssertionError(f"seed {self.seed}: {failure.decode()}")

    # ---- for stories ----

    def spawn(self, cls: type, args: Tuple[Any, ...] = (), *,
              worker: Optional[int] = None, concurrency: int = 1,
              name: Optional[str] = None, kept: bool = False, restart: str = "failed",
              restarts: int = 5, restarts_within: float = 60.0) -> Handle:
        """Make an actor on a worker, by default the first one; with a name it is where
        the cluster has placed it. As ClusterCoordinator.spawn()."""
        if name is not None and worker is not None:
            raise ValueError("the cluster places an actor with a name: worker= is for "
                             "those without")
        if kept and (name is None or concurrency > 1):
            raise ValueError("a kept actor has a name, and runs one call at a time")
        self._classes.append((cls, kept, concurrency))
        value = self._value(pickle.dumps((len(self._classes) - 1, args), 5))
        options = Options()
        self.library.mu_actor_options_init_sized(c.byref(options), c.sizeof(options))
        if name is not None:
            options.name, options.task_type = name.encode(), b"worker"
            options.flags = _KEPT if kept else 0
            options.restart, options.restarts = _RESTART[restart], restarts
            options.restarts_within_ms = round(restarts_within * 1000)
        address = Address()
        task = f"worker:{worker or 0}".encode() if name is None else _STORY
        rv = self.library.mu_sim_spawn(
            self._sim, task, _PYTHON_KEPT if kept else _PYTHON, value, c.byref(options),
            c.byref(address))
        self.library.mu_value_free(value)
        if rv != 0:
            raise errors.UnavailableError(f"worker {worker} does not run now")
        handle = Handle(cls, bytes(address))
        if name is not None:
            self._names[name] = handle
        return handle

    def actor(self, name: str) -> Handle:
        """The actor that has a name."""
        if name not in self._names:
            raise errors.NotFoundError(f"this simulation has made no actor {name!r}")
        return self._names[name]

    def call(self, address: bytes, name: str, args: Tuple[Any, ...],
             kwargs: Optional[Dict[str, Any]] = None, timeout: float = _CALL_SECONDS,
             one_way: bool = False) -> Any:
        """Call an actor: in one something to wait for, else its answer."""
        to = Address.from_buffer_copy(address)
        value = self._value(pickle.dumps((name, args, kwargs or {}), 5))
        timeout_ms = round(timeout * 1000)
        error, answer = Error(), c.c_void_p()
        try:
            if self._turn is not None and one_way:
                self.library.mu_actor_send(c.c_void_p(self._turn), c.byref(to), b"call",
                                           value)
                return None
            if self._turn is not None:
                return self._call_from_actor(to, value, timeout_ms)
            rv = self.library.mu_sim_request(
                self._sim, _STORY, c.byref(to), b"call", value, c.c_int64(timeout_ms),
                c.byref(error), c.byref(answer))
        finally:
            self.library.mu_value_free(value)
        if rv != 0:
            raise self._error(error)
        found = self._bytes(answer.value)
        self.library.mu_value_free(answer)
        return self._open(found)

    def look_at(self, handle: Handle) -> Any:
        """The object of an actor, for a check; None: it has none now."""
        address = Address.from_buffer_copy(handle._address)
        state = self.library.mu_sim_state(self._sim, c.byref(address))
        own = self._actors.get(state)
        return None if own is None else own.look()

    @property
    def now(self) -> float:
        """Seconds of virtual time."""
        return int(self.library.mu_sim_now_ms(self._sim)) / 1000

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.library.mu_sim_run_until(self._sim,
                                      c.c_uint64(round((self.now + seconds) * 1000)))

    def chaos(self, seconds: float) -> None:
        """Faults that the seed draws, for so long."""
        self.library.mu_sim_chaos(self._sim, 0, c.c_uint64(0), c.c_uint64(0),
                                  c.c_uint64(round((self.now + seconds) * 1000)))

    def fault(self, kind: str, worker: int, seconds: float,
              other: Optional[int] = None) -> None:
        """A fault of the story's own, from now on for so long.

        kind: "crash": the worker is gone, and starts again then. "pause": it stands
        still. "partition": it loses all others. "slow": its work takes ten times as long.
        With another worker: "cut": the connection breaks. "block": what the worker sends
        to the other one is held back.
        """
        if kind not in _FAULTS:
            raise ValueError(f"kind is {kind!r}, expected one of {sorted(_FAULTS)}")
        self.library.mu_sim_fault(
            self._sim, _FAULTS[kind], f"worker:{worker}".encode(),
            None if other is None else f"worker:{other}".encode(),
            c.c_uint64(round(self.now * 1000)), c.c_uint64(round(seconds * 1000)))

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
