"""Uses of the package that type checkers accept, with the types that they find."""

from __future__ import annotations

from concurrent import futures as cf
from typing import Any, List, Optional

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import muster


def train(x: int, *, rate: float = 0.5) -> float:
    return x * rate


def join(words: List[str], by: str = " ") -> str:
    return by.join(words)


async def schedule(cluster: muster.LocalCluster) -> None:
    coordinator = muster.ClusterCoordinator(cluster, timeout=5.0)
    value = coordinator.schedule(train, (1,), {"rate": 0.1}, priority=0)
    assert_type(value, "muster.RemoteValue[float]")
    assert_type(value.fetch(timeout=1.0), float)
    assert_type(await value, float)
    assert_type(coordinator.fetch(value), float)
    assert_type(coordinator.fetch([value, value]), List[float])
    dependent = coordinator.schedule(round, (value,))
    print(dependent.get() + 1)
    by_name = coordinator.schedule("square", 4)
    assert_type(by_name, "muster.RemoteValue[Any]")
    values = coordinator.create_per_worker_dataset(lambda: iter(range(3)))
    coordinator.schedule(next, (iter(values),))
    done, not_done = muster.wait([value, dependent], timeout=1.0)
    first: Any = next(muster.as_completed([value]))
    error: Optional[BaseException] = value.exception()
    print(done, not_done, first, error)


class Counter:
    def __init__(self, n: int = 0) -> None:
        self.n = n

    def add(self, k: int) -> int:
        return self.n + k


def actors(cluster: muster.LocalCluster) -> None:
    coordinator = muster.ClusterCoordinator(cluster)
    counter = coordinator.spawn(Counter, (5,), worker=0, concurrency=2)
    assert_type(counter, "muster.Handle[Counter]")
    print(counter.add(1).fetch(5), counter.options(timeout=2).add(1), counter.address)
    counter.stop(now=True)
    try:
        muster.die("reason")
    except muster.ActorError as error:
        assert_type(error.ran, str)


def submit(cluster: muster.LocalCluster) -> None:
    with muster.Executor(cluster, max_workers=2, run_timeout=5.0) as executor:
        future = executor.submit(train, 3, rate=0.1)
        assert_type(future.result(), float)
        plain: cf.Future[float] = future
        joined: str = executor.submit(join, ["a", "b"]).result(timeout=1)
        lengths: List[int] = list(executor.map(len, ["a", "bc"], chunksize=2))
        print(plain, joined, lengths)


def variables() -> None:
    variable = muster.Variable(np.zeros(3), name="w", dtype="float32")
    array: npt.NDArray[Any] = variable.read()
    whole: npt.NDArray[Any] = variable.read(out=array)
    variable.scatter_max([0], array)
    run: muster.Run = muster.current_run()
    run.add(variable, array)
    index: int = run.worker
    error: muster.MusterError = muster.errors.NotFoundError("x", task="t")
    print(whole, index, error.code, muster.partitioners.FixedShardsPartitioner(2))


async def tables() -> None:
    table = muster.Table("emb", dim=3, initializer="he_normal", optimizer="adam")
    future: cf.Future[Any] = table.lookup_async([1, 2])
    rows = await table.lookup_async(np.arange(3))
    table.apply_gradients(np.arange(3), rows, muster.optimizers.Adam(0.1), step=7)
    print(future, table.dim + 1, muster.initializers.get(("uniform", -1, 1)))


def open_nodes() -> None:
    with muster.LocalCluster(workers=2, ps=1, heartbeat=0.2, journal="j",
                             server_failures_window=60, backups=1) as cluster:
        submit(cluster)
    with muster.Node({"chief": ["a:1"]}, task_type="chief", threads=2) as node:
        print(node.status()["tasks"])
