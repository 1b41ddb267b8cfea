"""Actors with names: one in the cluster, found from anywhere, made anew elsewhere."""

import os
import signal
import time

import pytest

import actor_classes as classes
import muster
from conftest import wait_until


@pytest.fixture
def total(coordinator):
    total = coordinator.spawn(classes.Counter, (5,), name="total")
    yield total
    total.stop()


def add_until_it_runs(counter, number):
    """An answer; a call that may have run on a process that was killed is an error."""
    while True:
        try:
            return counter.options(timeout=30).add(number).fetch(60)
        except muster.ActorError as error:
            assert error.ran == "maybe"


# ---- making and finding ----

def test_a_name_is_made_once_and_found(shared_cluster, coordinator, total):
    again = coordinator.spawn(classes.Counter, (100,), name="total")
    found = muster.actor("total", node=shared_cluster)
    assert (total.name, total.address) == ("total", "/actor:total")
    assert total == again == found
    assert [handle.add(1).fetch(10) for handle in (total, again, found)] == [6, 7, 8]
    assert list(found.rows(3)) == [0, 1, 2]
    assert found.add.__doc__ == total.add.__doc__


def test_a_name_is_found_by_functions_and_by_actors(coordinator, total):
    def add(number):
        return muster.actor("total").add(number).fetch(10)

    class Finder:
        def find(self):
            return add(2)

    assert coordinator.schedule(add, (1,)).fetch(10) == 6
    finder = coordinator.spawn(Finder)
    assert finder.find().fetch(10) == 8
    finder.stop()


def test_a_name_may_be_found_before_it_is_made(coordinator, shared_cluster):
    value = coordinator.schedule(lambda: muster.actor("late").add(1).fetch(30))
    late = coordinator.spawn(classes.Counter, (5,), name="late")
    assert value.fetch(30) == 6
    late.stop()
    with pytest.raises(muster.ActorError) as error:
        muster.actor("late", node=shared_cluster, timeout=0.2)
    assert error.value.ran == "no"
    assert isinstance(error.value, muster.errors.DeadlineExceededError)


def test_the_class_of_a_name_is_that_of_its_first_spawn(coordinator, total):
    with pytest.raises(muster.errors.AlreadyExistsError,
                       match="'total' is a Counter, not a Caller"):
        coordinator.spawn(classes.Caller, (None,), name="total")
    assert total.add(0).fetch(10) == 5


def test_what_is_no_name_is_refused(coordinator):
    with pytest.raises(muster.errors.InvalidArgumentError, match="1 to 63 bytes"):
        coordinator.spawn(classes.Counter, name="a/b")
    with pytest.raises(muster.errors.InvalidArgumentError, match="1 to 63 bytes"):
        coordinator.spawn(classes.Counter, name="a" * 64)
    with pytest.raises(TypeError, match="name is 5"):
        coordinator.spawn(classes.Counter, name=5)
    with pytest.raises(ValueError, match="places an actor with a name"):
        coordinator.spawn(classes.Counter, name="total", worker=1)
    with pytest.raises(ValueError, match="restart is 'often'"):
        coordinator.spawn(classes.Counter, name="total", restart="often")


def test_a_constructor_that_raises_leaves_no_name(coordinator):
    with pytest.raises(ValueError, match="below 0"):
        coordinator.spawn(classes.Counter, (-1,), name="fresh")
    fresh = coordinator.spawn(classes.Counter, (1,), name="fresh")
    assert fresh.add(1).fetch(10) == 2
    fresh.stop()


def test_a_name_is_free_after_stop(coordinator):
    for start in (10, 20):
        counter = coordinator.spawn(classes.Counter, (start,), name="twice",
                                    restart="always")
        assert counter.add(1).fetch(10) == start + 1
        counter.stop()


# ---- being made anew ----

def test_it_is_made_anew_when_it_has_died(coordinator, total):
    assert total.add(1).fetch(10) == 6
    with pytest.raises(muster.ActorError, match="enough"):
        total.end("enough").fetch(10)
    assert total.add(1).fetch(30) == 6


def test_what_waited_for_a_life_that_ended_is_called_in_the_next(total):
    values = [total.end("enough"), total.add(1), total.add(1)]
    with pytest.raises(muster.ActorError, match="enough"):
        values[0].fetch(10)
    assert [value.fetch(30) for value in values[1:]] == [6, 7]


def test_it_is_made_anew_without_being_called(coordinator, tmp_path):
    class Marking:
        def __init__(self, path):
            with open(path, "a") as file:
                file.write("made\n")

        def end(self):
            muster.die("enough")

    log = tmp_path / "log"
    marking = coordinator.spawn(Marking, (str(log),), name="marking")
    with pytest.raises(muster.ActorError):
        marking.end().fetch(10)
    assert wait_until(lambda: log.read_text() == "made\nmade\n")
    marking.stop()


def test_one_that_is_never_started_again_fails_its_callers(coordinator):
    never = coordinator.spawn(classes.Counter, name="never", restart="never")
    with pytest.raises(muster.ActorError, match="enough"):
        never.end("enough").fetch(10)
    with pytest.raises(muster.ActorError, match="enough") as error:
        never.add(1).fetch(10)
    assert error.value.ran == "no"
    never.stop()


def test_it_fails_for_good_when_it_dies_too_often(coordinator):
    mortal = coordinator.spawn(classes.Counter, name="mortal", restarts=2)
    for _ in range(3):
        with pytest.raises(muster.ActorError, match="enough"):
            mortal.end("enough").fetch(30)
    with pytest.raises(muster.ActorError, match="enough"):
        mortal.add(1).fetch(30)
    mortal.stop()


def test_a_process_that_was_lost_is_replaced(coordinator):
    lone = coordinator.spawn(classes.Counter, (5,), name="lone", where="process")
    assert lone.add(1).fetch(30) == 6
    pid = lone.pid().fetch(10)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 1)
    assert lone.add(1).fetch(30) == 6      # it was not begun in the lost one
    assert lone.pid().fetch(10) != pid
    lone.stop()


def test_it_goes_on_elsewhere_when_its_worker_is_killed(own_cluster):
    cluster = own_cluster(workers=2, reconnect=1.0)
    with muster.ClusterCoordinator(cluster) as coordinator:
        total = coordinator.spawn(classes.Counter, (5,), name="total")
        assert total.add(1).fetch(10) == 6
        for _ in range(4):
            pid = total.pid().fetch(30)
            os.kill(pid, signal.SIGKILL)
            began = time.monotonic()
            assert add_until_it_runs(total, 1) == 6
            assert time.monotonic() - began < 20
            assert total.pid().fetch(10) != pid


def test_it_leaves_a_worker_that_is_drained(own_cluster):
    cluster = own_cluster(workers=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        total = coordinator.spawn(classes.Counter, (5,), name="total")
        worker, pid = total.where().fetch(10)[0], total.pid().fetch(10)
        values = [total.sleep(0.2), *(total.add(1) for _ in range(20))]
        coordinator.drain(worker, 30)
        assert wait_until(lambda: total.pid().fetch(30) != pid)
        ran = []
        for value in values:
            try:
                value.fetch(30)
            except muster.ActorError as error:
                ran.append(error.ran)
        assert ran in ([], ["maybe"])       # the one that was running
        assert add_until_it_runs(total, 0) >= 5
