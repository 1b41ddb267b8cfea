"""Datasets that are dealt out in shards: each one is visited once per epoch, although
workers die and functions fail."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from . import _muster, errors

__all__ = ["Shard", "ShardDispenser"]


@dataclass(frozen=True)
class Shard:
    """What a closure was dealt.

    index: of the shard, from 0. count: how many there are. epoch: from 1.
    """

    index: int
    count: int
    epoch: int


def _with_shard(dealt: Dict[str, Any], args: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The arguments of a function that was dealt a shard: called by the extension."""
    return (Shard(dealt["shard"], dealt["shards"], dealt["epoch"]), *args)


class ShardDispenser:
    """Deals the shards of a dataset out to closures.

        with muster.ShardDispenser(coordinator, shards=100, epochs=3, seed=1) as shards:
            while shards.schedule(train, (weights,), effect_once=True):
                pass
            shards.join()

    A function gets its Shard as first argument. A closure that fails, or is cancelled,
    gives its shard back, to be dealt next; one counts as consumed when its closure has
    succeeded, and an epoch begins when every shard of the one before is consumed. A
    closure whose worker dies runs again with the same shard; with effect_once what it
    adds to variables by Run.add() is exact: each shard of each epoch is in the sums once.

    shards: 1 to 1,048,576. epochs: 0: without end. seed: of another order of the shards
    in each epoch, the same for the same seed; 0: in order. records: epochs of which
    record() has who consumed what, the current one included.

    InvalidArgumentError names the argument that is out of range.
    """

    def __init__(self, coordinator: _muster.Coordinator, shards: int, epochs: int = 1,
                 seed: int = 0, records: int = 2) -> None:
        for name, value in (("shards", shards), ("epochs", epochs), ("seed", seed),
                            ("records", records)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} is {value!r}, expected an int")
            if value < 0:
                raise ValueError(f"{name} is {value}, expected 0 or more")
        self._deal = _muster.Deal.open(coordinator, shards, epochs, seed, records)

    @classmethod
    def load(cls, coordinator: _muster.Coordinator, path: "str | os.PathLike[str]"
             ) -> ShardDispenser:
        """Go on from a file of save(). Shards that were out when it was saved are dealt
        again. NotFoundError: there is no such file; DataLossError: it is damaged."""
        self = cls.__new__(cls)
        self._deal = _muster.Deal.load(coordinator, os.fspath(path))
        return self

    def schedule(self, fn: "Callable[..., Any] | str", args: Sequence[Any] = (),
                 kwargs: Optional[Mapping[str, Any]] = None, **options: Any) -> bool:
        """Deal the next shard to a new closure of fn(shard, *args, **kwargs). False when
        every shard of every epoch is consumed: then nothing was scheduled.

        Waits while all shards of the epoch are out, and for room, at most `timeout`
        seconds: DeadlineExceededError. The first error of an earlier closure is raised
        here, too. Other options are those of ClusterCoordinator.schedule(). A function by
        its name gets a dict: shard, shards, epoch, args.
        """
        try:
            self._deal.schedule(fn, args, kwargs, **options)
        except errors.OutOfRangeError:
            if self._consumed_all():
                return False
            raise
        return True

    def _consumed_all(self) -> bool:
        state = self._deal.record()
        epochs = int(state["epochs"])
        return epochs != 0 and int(state["consumed"]) >= int(state["shards"]) * epochs

    def join(self, timeout: Optional[float] = None) -> None:
        """Wait until no shard is out: each one is consumed, or was given back by a
        closure that failed, whose error the coordinator raises. DeadlineExceededError
        says how many are out, and where."""
        self._deal.join(timeout)

    def record(self) -> Dict[str, Any]:
        """Where it stands: shards, epochs, seed, records, epoch (the current one),
        consumed (shards, of all epochs), and record, a list with a dict for each epoch on
        record, the oldest first: epoch, and arrays of int64 with an element for each
        consumed shard, in that order: shard, closure, attempt, worker."""
        return self._deal.record()

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Save it, to go on after a restart; the file is replaced as a whole.
        NotFoundError: no such folder; PermissionDeniedError, ResourceExhaustedError."""
        self._deal.save(os.fspath(path))

    def close(self) -> None:
        """Let go of it; its closures run on. Not while another thread is in a call."""
        self._deal.close()

    def __enter__(self) -> ShardDispenser:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
