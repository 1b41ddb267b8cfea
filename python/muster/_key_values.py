"""Key-values of the coordination service; public through coordination.py."""

from __future__ import annotations

import contextlib
from typing import (Any, Callable, Generator, Iterator, List, NamedTuple, Optional, Tuple,
                    Union)

from . import _muster, errors
from ._calls import CallFuture

#: Types of a value: bytes, or str, which becomes UTF-8.
Value = Union[bytes, bytearray, memoryview, str]


def _bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"a value is bytes or a str, got {type(value).__name__}")


def _key(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, got {key!r}")
    if "\0" in key:
        raise ValueError(f"key {key!r}: a zero byte is in it")
    return key


class KeyValue(NamedTuple):
    """A key with its value.

    key: the path. value: bytes. revision: of the change that set the value; it grows with
    each change of the store.
    """

    key: str
    value: bytes
    revision: int

    @property
    def text(self) -> str:
        """The value as UTF-8."""
        return self.value.decode("utf-8")

    @property
    def number(self) -> int:
        """The value as a decimal number, as increment() stores it."""
        return int(self.value)


class KeyValueEvent(NamedTuple):
    """A change that a watch reports.

    type: "put", "deleted", or once "synced": all existing keys were reported.
    key: "" for "synced". value: bytes for "put", else None. revision: for "put", else 0.
    """

    type: str
    key: str
    value: Optional[bytes]
    revision: int


class Outcome(NamedTuple):
    """The result of a transaction.

    revision: the store's revision after the transaction. number: the sum of its first
    increment, else 0.
    """

    revision: int
    number: int


class KeyValueFuture(CallFuture):
    """The response to a call that does not wait."""

    _give_up: Optional[Callable[[], None]] = None

    def cancel(self) -> bool:
        """Cancel the request. A change may have been applied all the same."""
        cancelled = super().cancel()
        if cancelled and self._give_up is not None:
            self._give_up()
        return cancelled


class Watch(Iterator[KeyValueEvent]):
    """All changes of a key, or of the keys below it, as they happen.

    The existing keys come first, as "put", and then "synced" once. Unread changes of one
    key are merged: only its last state is reported. Made by KeyValues.watch(); it is an
    iterator, which ends once close() was called (by any thread), and a context manager.
    """

    def __init__(self, handle: _muster.KeyValueWatch) -> None:
        self._handle = handle

    def next(self, timeout: Optional[float] = None) -> KeyValueEvent:
        """The next event, waiting for it.

        DeadlineExceededError: there was none within the timeout. ResourceExhaustedError:
        more than 65,536 changed keys were not read; the watch then starts again with the
        existing keys. ClosedError: the watch, or its node, was closed.
        """
        kind, key, value, revision = self._handle.next(timeout)
        return KeyValueEvent(_EVENTS[kind], key or "", value, revision)

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> KeyValueEvent:
        try:
            return self.next()
        except errors.ClosedError:
            if self.closed:
                raise StopIteration from None
            raise

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._handle.closed

    def close(self) -> None:
        """Close the watch: a thread that waits in it returns within a tenth of a
        second."""
        self._handle.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_EVENTS = {_muster.KV_EVENT_PUT: "put", _muster.KV_EVENT_DELETED: "deleted",
           _muster.KV_EVENT_SYNCED: "synced"}


class Transaction:
    """Changes of several keys that are applied atomically, if all conditions hold.

        outcome = (service.key_values.transaction()
                   .if_absent("leader").put("leader", "me").increment("terms").commit())

    At most 128 conditions and as many changes, and 2 MiB of keys and values together.
    """

    def __init__(self, node: _muster.Node) -> None:
        self._node = node
        self._checks: List[Tuple[int, str, int, bytes]] = []
        self._changes: List[Tuple[int, int, str, bytes, int]] = []

    def if_revision(self, key: str, revision: int) -> Transaction:
        """Only if the key has this revision; 0: it is absent."""
        self._checks.append((_muster.KV_IF_REVISION, _key(key), revision, b""))
        return self

    def if_absent(self, key: str) -> Transaction:
        """Only if the key is absent."""
        self._checks.append((_muster.KV_IF_ABSENT, _key(key), 0, b""))
        return self

    def if_present(self, key: str) -> Transaction:
        """Only if the key exists."""
        self._checks.append((_muster.KV_IF_PRESENT, _key(key), 0, b""))
        return self

    def if_value(self, key: str, value: Value) -> Transaction:
        """Only if the key has exactly this value."""
        self._checks.append((_muster.KV_IF_VALUE, _key(key), 0, _bytes(value)))
        return self

    def put(self, key: str, value: Value, *, lease: bool = False) -> Transaction:
        """Set a key, whether it exists or not; lease: see KeyValues.put()."""
        self._changes.append((_muster.KV_PUT, _muster.KV_LEASE if lease else 0, _key(key),
                              _bytes(value), 0))
        return self

    def increment(self, key: str, by: int = 1) -> Transaction:
        """Add to a key whose value is a number."""
        self._changes.append((_muster.KV_INCREMENT, 0, _key(key), b"", by))
        return self

    def delete(self, key: str) -> Transaction:
        """Delete a key and all keys below it."""
        self._changes.append((_muster.KV_DELETE, 0, _key(key), b"", 0))
        return self

    def commit(self, timeout: Optional[float] = None) -> Outcome:
        """Apply it.

        FailedPreconditionError: a condition does not hold (the error's `failed` is its
        index), or a key to be incremented is not a number (`failed` is -1).
        OutOfRangeError: the sum is too large. InvalidArgumentError: a key is changed
        twice. Then nothing was changed.
        """
        return Outcome(*_muster.kv_transact(self._node, tuple(self._checks),
                                            tuple(self._changes), timeout))

    def commit_async(self, timeout: Optional[float] = None) -> KeyValueFuture:
        """The same without waiting: a future of an Outcome."""
        future = KeyValueFuture()

        def get(answer: _muster.KeyValueAnswer) -> Outcome:
            try:
                _, revision, number = answer.get()
            except errors.FailedPreconditionError as error:
                error.failed = answer.number - 1  # type: ignore[attr-defined]
                raise
            return Outcome(revision, number)

        request = _muster.kv_transact_begin(
            self._node, tuple(self._checks), tuple(self._changes), timeout,
            lambda answer: future._finish(lambda: get(answer)))
        future._give_up = lambda: _give_up(self._node, request)
        return future


def _give_up(node: _muster.Node, request: int) -> None:
    if not node.closed:
        _muster.kv_cancel(node, request)


class KeyValues:
    """A store of keys and values that all tasks share.

    A key is a path, "config/rate": outer and repeated slashes are dropped; at most 1,023
    bytes. A value is at most 1 MiB of bytes (a str is UTF-8). All operations are
    linearizable. Keys below "_muster" are the service's own: PermissionDeniedError.
    ResourceExhaustedError: the store has a million keys, or 1 GiB.
    """

    def __init__(self, node: _muster.Node) -> None:
        self._node = node

    @staticmethod
    def _flags(overwrite: bool, revision: Optional[int], lease: bool) -> int:
        flags = _muster.KV_LEASE if lease else 0
        if revision is not None:
            return flags | _muster.KV_OVERWRITE | _muster.KV_COMPARE
        return flags | (_muster.KV_OVERWRITE if overwrite else 0)

    def put(self, key: str, value: Value, *, overwrite: bool = True,
            revision: Optional[int] = None, lease: bool = False,
            timeout: Optional[float] = None) -> int:
        """Set a key; returns its new revision.

        overwrite: False: AlreadyExistsError when the key exists. revision: set it only if
        the key has this revision (0: is absent), else FailedPreconditionError. lease: the
        key is deleted when this task ends or leaves.
        """
        return _muster.kv_put(self._node, _key(key), _bytes(value),
                              self._flags(overwrite, revision, lease), revision or 0,
                              timeout)

    def get(self, key: str, timeout: Optional[float] = None) -> KeyValue:
        """The key's value; waits until the key exists."""
        return KeyValue(key, *_muster.kv_get(self._node, _key(key), timeout))

    def try_get(self, key: str, timeout: Optional[float] = None) -> Optional[KeyValue]:
        """The key's value as it is now, None when the key is absent."""
        try:
            return KeyValue(key, *_muster.kv_try_get(self._node, _key(key), timeout))
        except errors.NotFoundError:
            return None

    def increment(self, key: str, by: int = 1, timeout: Optional[float] = None) -> int:
        """Add to a key whose value is a decimal 64 bit number, and return the sum; an
        absent key counts as 0.

        FailedPreconditionError: the value is not a number; OutOfRangeError: the sum is
        too large.
        """
        return _muster.kv_increment(self._node, _key(key), by, timeout)

    def delete(self, key: str, timeout: Optional[float] = None) -> int:
        """Delete a key and all keys below it; returns how many, which may be 0."""
        return _muster.kv_delete(self._node, _key(key), timeout)

    def list(self, directory: str = "", timeout: Optional[float] = None
             ) -> List[KeyValue]:
        """All keys below a key ("": all), in order. Large directories are read in pages;
        only each page is a consistent snapshot."""
        items = _muster.kv_list(self._node, _key(directory), timeout)
        return [KeyValue(item["key"], item["value"], item["revision"]) for item in items]

    # ---- without waiting ----

    def _begin(self, operation: int, key: str, take: Callable[[bytes, int, int], Any],
               value: bytes = b"", flags: int = 0, revision: int = 0, by: int = 0,
               timeout: Optional[float] = None) -> KeyValueFuture:
        future = KeyValueFuture()
        request = _muster.kv_begin(
            self._node, operation, _key(key), value, flags, revision, by, timeout,
            lambda answer: future._finish(lambda: take(*answer.get())))
        future._give_up = lambda: _give_up(self._node, request)
        return future

    def put_async(self, key: str, value: Value, *, overwrite: bool = True,
                  revision: Optional[int] = None, lease: bool = False,
                  timeout: Optional[float] = None) -> KeyValueFuture:
        """put() without waiting: a future of the new revision. WouldBlockError: 65,536
        requests are outstanding."""
        return self._begin(_muster.KV_PUT, key, lambda value, new, number: new,
                           _bytes(value), self._flags(overwrite, revision, lease),
                           revision or 0, 0, timeout)

    def get_async(self, key: str, timeout: Optional[float] = None) -> KeyValueFuture:
        """get() without waiting: a future of a KeyValue."""
        return self._begin(_muster.KV_GET, key,
                           lambda value, revision, number: KeyValue(key, value, revision),
                           timeout=timeout)

    def try_get_async(self, key: str, timeout: Optional[float] = None) -> KeyValueFuture:
        """The value as it is now, without waiting: a future of a KeyValue, whose error is
        a NotFoundError when the key is absent."""
        return self._begin(_muster.KV_TRY_GET, key,
                           lambda value, revision, number: KeyValue(key, value, revision),
                           timeout=timeout)

    def increment_async(self, key: str, by: int = 1, timeout: Optional[float] = None
                        ) -> KeyValueFuture:
        """increment() without waiting: a future of the sum."""
        return self._begin(_muster.KV_INCREMENT, key,
                           lambda value, revision, number: number, by=by, timeout=timeout)

    def delete_async(self, key: str, timeout: Optional[float] = None) -> KeyValueFuture:
        """delete() without waiting: a future of the number of deleted keys."""
        return self._begin(_muster.KV_DELETE, key,
                           lambda value, revision, number: number, timeout=timeout)

    # ---- several keys, changes, leases ----

    def transaction(self) -> Transaction:
        """Atomic changes of several keys, under conditions."""
        return Transaction(self._node)

    def watch(self, key: str, below: bool = False, timeout: Optional[float] = None
              ) -> Watch:
        """Watch a key, or with `below` all keys below it; timeout: of opening the
        watch."""
        return Watch(_muster.KeyValueWatch.open(self._node, _key(key), below, timeout))

    @contextlib.contextmanager
    def hold(self, key: str, value: Value = b"", timeout: Optional[float] = None
             ) -> Generator[KeyValue, None, None]:
        """Hold a key during a `with`, at most as long as this task lives: it is put as a
        lease, and deleted at the end. AlreadyExistsError: the key exists."""
        data = _bytes(value)
        revision = self.put(key, data, overwrite=False, lease=True, timeout=timeout)
        try:
            yield KeyValue(key, data, revision)
        finally:
            with contextlib.suppress(errors.FailedPreconditionError):
                self.transaction().if_revision(key, revision).delete(key).commit(timeout)
