"""How far the members of a training may be apart."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Optional, Type

from . import _muster, _scope


class Clock(_muster.BaseClock):
    """A member of a clock, which counts the steps that its members have done.

        with muster.Clock(node, "train", staleness=2) as clock:
            for batch in batches:
                weights.assign_sub(gradient(weights.read(), batch))
                clock.tick()

    staleness: how many steps the slowest member may be behind one that goes on. 0:
    synchronous steps; n: bounded staleness; None: unlimited, nobody waits. All members
    give the same: FailedPreconditionError names two that do not.
    node: a Node, LocalCluster, ClusterCoordinator or strategy; None: that of the
    innermost `with`, or of the run.
    timeout: seconds to wait for its server; None: no timeout.

    What a member wrote with methods of variables before a tick, those see whom the tick
    lets through; writes with Run.add() and the like come only after the function. A
    member leaves with close(), at the end of `with`, and when its process ends; one that
    comes joins at the step of the slowest. Functions in executor processes have none.
    """

    def __init__(self, node: Any, name: str, staleness: Optional[int],
                 timeout: Optional[float] = None) -> None:
        owner = _scope.current_node() if node is None else _scope.node_of(node)
        super().__init__(owner, name, staleness, timeout)
        self.name = name
        self.staleness = staleness

    def __enter__(self) -> "Clock":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<muster.Clock {self.name!r} staleness={self.staleness}>"
