"""Fixtures for tests that need a cluster, as a pytest plugin that is loaded by itself.

    def test_it(muster_cluster):
        assert list(muster.map(abs, [-1, 2], cluster=muster_cluster)) == [1, 2]

muster_cluster: a LocalCluster for the whole session, with the ini options muster_workers
(2) and muster_ps (0), or --muster-workers and --muster-ps. muster_coordinator: its
coordinator; an error that a test leaves behind does not reach the next one.
muster_executor: an Executor on it. make_muster_cluster(workers=2, ...): clusters of one
test alone, which may kill their workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, List

import pytest

if TYPE_CHECKING:
    from muster.cluster import LocalCluster
    from muster.coordinator import ClusterCoordinator
    from muster.executor import Executor

# A package of its own, since pytest imports it at every start: muster itself is imported
# by the first test that uses it.


def pytest_addoption(parser: pytest.Parser) -> None:
    """--muster-workers, --muster-ps, and the ini options of the same names."""
    group = parser.getgroup("muster")
    group.addoption("--muster-workers", type=int, default=None,
                    help="workers of the fixture muster_cluster")
    group.addoption("--muster-ps", type=int, default=None,
                    help="parameter servers of the fixture muster_cluster")
    parser.addini("muster_workers", "workers of the fixture muster_cluster", default="2")
    parser.addini("muster_ps", "parameter servers of muster_cluster", default="0")


def _number(config: pytest.Config, name: str) -> int:
    given = config.getoption(name)
    text = config.getini(name) if given is None else given
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"{name} is {text!r}, expected a number") from None


@pytest.fixture(scope="session")
def muster_cluster(request: pytest.FixtureRequest) -> "Iterator[LocalCluster]":
    """A LocalCluster for all tests of the session."""
    import muster

    config = request.config
    with muster.LocalCluster(workers=_number(config, "muster_workers"),
                             ps=_number(config, "muster_ps")) as cluster:
        yield cluster


@pytest.fixture
def muster_coordinator(muster_cluster: "LocalCluster") -> "Iterator[ClusterCoordinator]":
    """The coordinator of muster_cluster, without errors of other tests."""
    from muster import _coordinators

    coordinator = _coordinators.coordinator_of(muster_cluster)
    yield coordinator
    while True:
        try:
            coordinator.join(60.0)
            break
        except TimeoutError:
            raise
        except Exception:  # errors of a test's closures that it did not read
            continue
    coordinator.errors()


@pytest.fixture
def muster_executor(muster_coordinator: "ClusterCoordinator") -> "Iterator[Executor]":
    """An Executor on muster_cluster."""
    with muster_coordinator.executor() as executor:
        yield executor


@pytest.fixture
def make_muster_cluster() -> "Iterator[Callable[..., LocalCluster]]":
    """Makes LocalClusters that end with the test."""
    import muster

    made: List[Any] = []

    def make(**options: Any) -> "LocalCluster":
        cluster = muster.LocalCluster(**options)
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.close()
