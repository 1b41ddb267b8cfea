"""Kept actors, as their worker has them: the object, and what is recorded of it.

The state is that of the last record plus what the call under way has changed. A call that
raises is undone by making the object again from what is recorded. A class with a method
`replay` changes its state there alone: its methods record what `replay` is to do.
"""

from __future__ import annotations

import contextvars
import io
import logging
import pickle
import threading
from typing import Any, Callable, List, Optional, Tuple

from .. import _pickling, errors
from .about import describe, pack_about

RECORDS_MAX = 500               # since the whole state was recorded
RECORD_BYTES_MAX = 1 << 20      # of them, or as many as the whole state has
STATE_BYTES_MAX = 16 << 20
_LARGE_BYTES = 100 << 10        # of state in each record: a warning

# What a turn has changed: the whole state, or records that belong behind it.
Changes = Tuple[Optional[bytes], List[bytes]]

_recording: "contextvars.ContextVar[Optional[Kept]]" = contextvars.ContextVar(
    "muster_recording", default=None)
_warned: "set[str]" = set()


# ---- pickles ----

# The class of the object that this thread unpickles: a pickle has this in its place.
_local = threading.local()


def _own_class() -> Any:
    return _local.cls


class _Pickler(pickle.Pickler):
    """Pickles an object without its class."""

    def __init__(self, file: io.BytesIO, cls: type) -> None:
        super().__init__(file, 5)
        self._cls = cls

    def reducer_override(self, value: Any) -> Any:
        return (_own_class, ()) if value is self._cls else NotImplemented


def _dumps(value: Any, cls: type) -> bytes:
    file = io.BytesIO()
    try:
        _Pickler(file, cls).dump(value)
        data = file.getvalue()
        if b"__main__" not in data:
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    return _pickling.dumps_function(value)


def _loads(data: bytes, cls: type) -> Any:
    _local.cls = cls
    try:
        return pickle.loads(data)
    finally:
        del _local.cls


# ---- the object ----

class Kept:
    """A kept actor's object. Its attributes are the methods."""

    def __init__(self, make: Callable[[], Any], cls: type,
                 saved: Optional[List[Any]]) -> None:
        """saved: the whole state, None before it was made, and the records behind it."""
        self._cls = cls
        self._replays = callable(getattr(cls, "replay", None))
        self._state: bytes = b""
        self._records: List[bytes] = []
        self._record_bytes = 0
        self._now: List[bytes] = []     # by the call under way
        self._changes: Optional[Changes] = None
        if saved and saved[0] is not None:
            self._state, self._records = saved[0], list(saved[1:])
            self._record_bytes = sum(map(len, self._records))
            self._object = self._load()
        else:
            self._object = make()
            self._record_state(_dumps(self._object, cls))

    def _load(self) -> Any:
        made = _loads(self._state, self._cls)
        for record in self._records:
            made.replay(_loads(record, self._cls))
        return made

    def _record_state(self, state: bytes) -> None:
        if len(state) > STATE_BYTES_MAX:
            raise errors.ResourceExhaustedError(
                f"the pickled state of {self._cls.__qualname__} has {len(state)} bytes, "
                f"more than {STATE_BYTES_MAX}: keep what is large elsewhere")
        self._state, self._records, self._record_bytes = state, [], 0
        self._changes = state, []

    # ---- one call ----

    def muster_record(self, value: Any) -> None:
        """Record a change, and make it."""
        if not self._replays:
            raise errors.FailedPreconditionError(
                f"{self._cls.__qualname__} has no method replay(self, record)")
        record = _dumps(value, self._cls)
        if len(record) > STATE_BYTES_MAX:
            raise errors.ResourceExhaustedError(f"a record has {len(record)} bytes, more "
                                                f"than {STATE_BYTES_MAX}")
        self._now.append(record)
        self._object.replay(_loads(record, self._cls))

    def _commit_records(self) -> None:
        records, self._now = self._now, []
        self._records += records
        self._record_bytes += sum(map(len, records))
        if len(self._records) > RECORDS_MAX or \
                self._record_bytes > max(RECORD_BYTES_MAX, len(self._state)):
            self._record_state(_dumps(self._object, self._cls))
        else:
            self._changes = None, records

    def _commit(self) -> None:
        if self._now:
            self._commit_records()
        if self._replays:
            return
        state = _dumps(self._object, self._cls)
        if state != self._state:
            self._record_state(state)
            _warn_if_large(self._cls, len(state))

    def _undo(self) -> None:
        if self._now or not self._replays:
            self._now = []
            self._object = self._load()

    async def _finish(self, coroutine: Any) -> Any:
        _recording.set(self)        # of this task
        try:
            result = await coroutine
            self._commit()
            return result
        except BaseException:
            self._undo()
            raise

    def _call(self, name: str, args: Any, kwargs: Any) -> Any:
        token = _recording.set(self)
        try:
            result = getattr(self._object, name)(*args, **kwargs)
            if hasattr(result, "__await__"):
                return self._finish(result)
            if hasattr(result, "__next__") or hasattr(result, "__anext__"):
                raise TypeError(f"{self._cls.__qualname__}.{name} is a generator, which "
                                "a kept actor cannot have: return a list")
            self._commit()
            return result
        except BaseException:
            self._undo()
            raise
        finally:
            _recording.reset(token)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not callable(getattr(self._object, name)):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._call(name, args, kwargs)

    # ---- for the extension ----

    def muster_about(self) -> Tuple[Any, ...]:
        """What callers know of the class."""
        return pack_about(describe(self._cls))

    def muster_changes(self) -> Optional[List[Optional[bytes]]]:
        """What the last call has changed, as [the whole state or None, record, ...];
        None: nothing."""
        changes, self._changes = self._changes, None
        return None if changes is None else [changes[0], *changes[1]]


def _warn_if_large(cls: type, size: int) -> None:
    if size <= _LARGE_BYTES or cls.__qualname__ in _warned:
        return
    _warned.add(cls.__qualname__)
    logging.getLogger("muster").warning(
        "%s is a kept actor, and its pickled state has %d KiB, which are recorded by "
        "each call that changes it: with a method replay(self, record), and "
        "muster.record() in its methods, the changes alone are",
        cls.__qualname__, size >> 10)


def record(value: Any) -> None:
    """Record a change of a kept actor's state, in one of its methods: its method
    replay(self, value) makes it, now, and again when a later life begins."""
    kept = _recording.get()
    if kept is None:
        raise errors.FailedPreconditionError(
            "muster.record() is for the methods of actors that were made with kept=True")
    kept.muster_record(value)
