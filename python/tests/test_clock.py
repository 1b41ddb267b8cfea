"""Clocks: members that may be so many steps apart."""

import threading

import pytest

import jobs
import muster
from muster import errors


@pytest.fixture
def name(request):
    return request.node.name


def test_one_member_is_never_held_back(shared_cluster, name):
    with muster.Clock(shared_cluster, name, staleness=0) as clock:
        assert [clock.tick() for _ in range(3)] == [1, 2, 3]
        assert clock.minimum() == 3
        assert (clock.name, clock.staleness) == (name, 0)
    with pytest.raises(errors.MusterError, match="the clock was closed"):
        clock.tick()


@pytest.mark.parametrize("staleness, ahead", [(0, 0), (1, 1), (3, 3), (None, 9)])
def test_a_member_may_be_ahead_by_the_staleness(shared_cluster, name, staleness, ahead):
    with muster.Clock(shared_cluster, name, staleness) as fast, \
            muster.Clock(shared_cluster, name, staleness) as slow:
        for step in range(1, ahead + 1):
            assert fast.tick(timeout=20) == step
        assert slow.minimum() == 0
        if staleness is not None:
            with pytest.raises(errors.DeadlineExceededError,
                               match=f"step {ahead + 1} waits: /job:.* is at step 0"):
                fast.tick(timeout=0.3)
            thread = threading.Thread(target=slow.tick)
            thread.start()
            assert fast.tick(timeout=20) == ahead + 1
            slow.close()    # of what may wait for the next step
            thread.join()


def test_nobody_waits_for_a_member_that_has_left(shared_cluster, name):
    with muster.Clock(shared_cluster, name, 0) as clock:
        with muster.Clock(shared_cluster, name, 0):
            with pytest.raises(errors.DeadlineExceededError):
                clock.tick(timeout=0.1)
        assert clock.tick(timeout=20) == 1


def test_functions_are_members(coordinator, name):
    steps = coordinator.schedule(jobs.clock_steps, (name, 3))
    assert steps.fetch(60) == [1, 2, 3]


def test_another_staleness_is_refused(shared_cluster, name):
    with muster.Clock(shared_cluster, name, 2):
        with pytest.raises(errors.FailedPreconditionError,
                           match="with staleness 2, and /job:.* with unlimited"):
            muster.Clock(shared_cluster, name, None)


@pytest.mark.parametrize("staleness", [-1, 1 << 64, "two"])
def test_staleness_is_a_number(shared_cluster, name, staleness):
    with pytest.raises((OverflowError, TypeError)):
        muster.Clock(shared_cluster, name, staleness)
