"""Uses of the package that type checkers refuse: each line with a comment WRONG."""

from __future__ import annotations

import muster
from muster import RemoteValue


def square(x: int) -> int:
    return x * x


def with_option(x: int, *, rate: float = 0.5) -> float:
    return x * rate


def use(cluster: muster.LocalCluster) -> None:
    coordinator = muster.ClusterCoordinator(cluster)
    executor = muster.Executor(cluster)
    executor.submit(square, "wrong")  # WRONG
    executor.submit(square)  # WRONG
    executor.submit(square, 1, 2)  # WRONG
    executor.submit(with_option, 1, rte=0.1)  # WRONG
    executor.submit(square, 1).result().upper()  # WRONG
    coordinator.schedule(square, (1,)).fetch().upper()  # WRONG
    coordinator.schedule(square, (1,), priorty=1)  # WRONG
    coordinator.schedule(7)  # WRONG
    value: RemoteValue[str] = coordinator.schedule(square, (1,))  # WRONG
    print(value)
    for number in executor.map(square, [1]):
        number.upper()  # WRONG
    muster.LocalCluster(workers="two")  # WRONG
    muster.LocalCluster(hartbeat=0.2)  # WRONG
    muster.LocalCluster(heartbeat="0.2 s")  # WRONG
    muster.LocalCluster(task_type="chief")  # WRONG
    muster.Node(7)  # WRONG
    muster.Node({"chief": ["a:1"]}, threds=2)  # WRONG
    muster.current_run().worker = 3  # WRONG
