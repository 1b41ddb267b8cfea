"""A Store of torch.distributed over muster's key-values.

    store = MusterStore(node, prefix="job-7")
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)

Importing this module needs torch.
"""

from __future__ import annotations

import datetime
import re
import time
from typing import Any, List, Optional, Sequence, Union

try:
    from torch.distributed import Store  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError("muster.torch_store needs torch with torch.distributed, which is "
                      "not installed") from error

from . import errors
from .coordination import CoordinationService, KeyValues

__all__ = ["MusterStore"]

_Timeout = Union[None, float, datetime.timedelta]


# Characters that are escaped in keys: muster merges repeated slashes, which torch's keys
# may have.
_QUOTED = re.compile(r"[%/\x00-\x1f\x7f]")


def _seconds(timeout: _Timeout) -> float:
    if isinstance(timeout, datetime.timedelta):
        seconds = timeout.total_seconds()
    elif timeout is None:
        seconds = 300.0
    elif isinstance(timeout, (int, float)):
        seconds = float(timeout)
    else:
        raise TypeError(f"timeout is {timeout!r}, expected seconds or a timedelta")
    if not seconds >= 0:
        raise ValueError(f"timeout is {seconds} s, expected 0 or more")
    return seconds


def _listed(keys: Sequence[str]) -> Sequence[str]:
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"keys is {keys!r}, expected a list of keys")
    return keys


class MusterStore(Store):  # type: ignore[misc]
    """Keys and values that all tasks of a cluster share, for torch.distributed.

    owner: a Node, LocalCluster, ClusterCoordinator, strategy or CoordinationService;
    None: that of the innermost `with`, or of the run. prefix: the directory of its keys;
    each process group, and each start of it, needs its own. timeout: seconds, or a
    timedelta, that get() and wait() wait (five minutes unless said otherwise).

    It needs no rendezvous of its own: no master's address, no port.
    """

    def __init__(self, owner: Any = None, prefix: str = "torch",
                 timeout: _Timeout = None) -> None:
        super().__init__()
        service = owner if isinstance(owner, CoordinationService) \
            else CoordinationService(owner)
        self._keys: KeyValues = service.key_values
        if not isinstance(prefix, str):
            raise TypeError(f"prefix is {prefix!r}, expected a str")
        self._prefix = prefix.strip("/")
        self._timeout = _seconds(timeout)
        if not self._prefix:
            raise ValueError("the prefix of a store is empty")

    def _path(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(f"a key is a str, got {key!r}")
        quoted = _QUOTED.sub(lambda found: f"%{ord(found.group()):02X}", key)
        return f"{self._prefix}/{quoted or '%'}"

    # ---- the interface of torch.distributed.Store ----

    def set(self, key: str, value: Union[str, bytes]) -> None:
        """Set a key, whether it exists or not."""
        self._keys.put(self._path(key), value, timeout=self._timeout)

    def get(self, key: str) -> bytes:
        """Wait for a key and return its value; LookupError at the timeout."""
        try:
            return self._keys.get(self._path(key), self._timeout).value
        except errors.DeadlineExceededError as error:
            raise LookupError(f'key "{key}" was not set within {self._timeout} s') \
                from error

    def add(self, key: str, value: int) -> int:
        """Add to a number, and return the sum. An absent key counts as 0."""
        return self._keys.increment(self._path(key), int(value), self._timeout)

    def wait(self, keys: Sequence[str], timeout: _Timeout = None) -> None:
        """Wait until all keys exist; RuntimeError at the timeout, which names one."""
        limit = self._timeout if timeout is None else _seconds(timeout)
        end = time.monotonic() + limit
        for key in _listed(keys):
            try:
                self._keys.get(self._path(key), max(0.0, end - time.monotonic()))
            except errors.DeadlineExceededError as error:
                raise RuntimeError(f'wait timeout after {limit} s: key "{key}" is not '
                                   "there") from error

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys exist now."""
        return all(self._keys.try_get(self._path(key), self._timeout) is not None
                   for key in _listed(keys))

    def compare_set(self, key: str, expected: Union[str, bytes],
                    desired: Union[str, bytes]) -> bytes:
        """Set the key if it has the expected value, or if it is absent and "" is
        expected. Returns its value afterwards (the expected one if it is absent)."""
        path = self._path(key)
        wanted = expected.encode() if isinstance(expected, str) else bytes(expected)
        wish = desired.encode() if isinstance(desired, str) else bytes(desired)
        while True:
            found = self._keys.try_get(path, self._timeout)
            if found is None and wanted:
                return wanted
            if found is not None and found.value != wanted:
                return found.value
            try:
                self._keys.put(path, wish, timeout=self._timeout,
                               revision=0 if found is None else found.revision)
                return wish
            except errors.FailedPreconditionError:
                continue    # another task was faster: try again

    def delete_key(self, key: str) -> bool:
        """Delete a key; returns whether it existed."""
        return self._keys.delete(self._path(key), self._timeout) > 0

    def num_keys(self) -> int:
        """Number of keys."""
        return len(self._keys.list(self._prefix, self._timeout))

    # torch's wrappers of this store (PrefixStore) use these names.
    deleteKey = delete_key
    getNumKeys = num_keys

    def set_timeout(self, timeout: _Timeout) -> None:
        """Set the timeout of get() and wait()."""
        self._timeout = _seconds(timeout)

    @property
    def timeout(self) -> datetime.timedelta:
        """The timeout of get() and wait()."""
        return datetime.timedelta(seconds=self._timeout)

    # ---- methods that newer versions use if they exist ----

    def append(self, key: str, value: Union[str, bytes]) -> None:
        """Append to a value; an absent key counts as empty."""
        path = self._path(key)
        more = value.encode() if isinstance(value, str) else bytes(value)
        while True:
            found = self._keys.try_get(path, self._timeout)
            try:
                self._keys.put(path, more if found is None else found.value + more,
                               revision=0 if found is None else found.revision,
                               timeout=self._timeout)
                return
            except errors.FailedPreconditionError:
                continue

    def multi_get(self, keys: Sequence[str]) -> List[bytes]:
        """Wait for several keys and return their values."""
        return [self.get(key) for key in _listed(keys)]

    def multi_set(self, keys: Sequence[str], values: Sequence[Union[str, bytes]]) -> None:
        """Set several keys atomically."""
        keys, values = list(_listed(keys)), list(values)
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys and {len(values)} values")
        change = self._keys.transaction()
        for key, value in zip(keys, values):
            change.put(self._path(key), value)
        change.commit(self._timeout)

    def has_extended_api(self) -> bool:
        """True: append, multi_get and multi_set exist."""
        return True

    def clone(self) -> "MusterStore":
        """Another store on the same keys."""
        other: Optional[MusterStore] = MusterStore.__new__(MusterStore)
        assert other is not None
        Store.__init__(other)
        other._keys, other._prefix = self._keys, self._prefix
        other._timeout = self._timeout
        return other
