"""Fixtures: clusters of real processes."""

import functools
import os
import signal
import sys
import tempfile
import time

import pytest

import muster

# Workers import what tests schedule.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "support")]

# The key of the tests' clusters, not that of who runs them.
CONFIG = tempfile.TemporaryDirectory()
os.environ["XDG_CONFIG_HOME"] = CONFIG.name

# Shells start what is in the background with Ctrl-C ignored, and children inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_until(condition, timeout=20.0):
    """Wait for a condition; what it last was."""
    limit = time.monotonic() + timeout
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    return condition()


@pytest.fixture(scope="session")
def shared_cluster():
    """Two workers and two parameter servers, for tests that kill nothing."""
    with muster.LocalCluster(workers=2, ps=2, threads=2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def shared_coordinator(shared_cluster):
    coordinator = muster.ClusterCoordinator(shared_cluster, timeout=60)
    yield coordinator
    coordinator.close()


@pytest.fixture
def coordinator(shared_coordinator):
    """The coordinator of the shared cluster, without errors of other tests."""
    yield shared_coordinator
    while True:
        try:
            shared_coordinator.join(60)
            break
        except Exception:
            pass
    shared_coordinator.errors()


@pytest.fixture
def own_cluster(make_muster_cluster):
    """Makes clusters of one's own: own_cluster(workers=2, ...)."""
    return functools.partial(make_muster_cluster, heartbeat=0.2)
