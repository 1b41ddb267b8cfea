"""Kept actors: their state survives their workers, and each call takes effect once."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import actor_classes as classes
import muster
from conftest import wait_until


@pytest.fixture(scope="module")
def keeping(tmp_path_factory):
    """The coordinator of a cluster with a keeper."""
    lines = []
    store = tmp_path_factory.mktemp("keeper") / "keys"
    with muster.LocalCluster(workers=2, heartbeat=0.2, reconnect=5.0, restarts_max=1000,
                             store=f"journal:{store}",
                             on_line=lambda *line: lines.append(line[2])) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        coordinator.lines = lines
        coordinator.kept_file = f"{store}.kept"
        yield coordinator


@pytest.fixture
def purse(keeping):
    purse = keeping.spawn(classes.Purse, (5,), name="purse", kept=True,
                          restarts=1000)
    yield purse
    purse.stop()


@pytest.fixture
def log(keeping):
    log = keeping.spawn(classes.Log, name="log", kept=True, restarts=1000)
    yield log
    log.stop()


def kill_owner(actor):
    """Kill the worker that has it, and wait for its next life."""
    pid = actor.pid().fetch(30)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: actor.pid().fetch(30) != pid)


# ---- the state ----

def test_its_state_survives_its_worker(purse):
    assert purse.add(1).fetch(10) == 6
    assert purse.hold({"a": [1, 2]}).fetch(10) == 1
    for number in range(7, 10):
        kill_owner(purse)
        assert purse.add(1).fetch(30) == number
    assert purse.hold(None).fetch(10) == 2


def test_a_later_life_is_not_that_of_the_constructor(keeping, purse):
    again = keeping.spawn(classes.Purse, (100,), name="purse", kept=True)
    assert again.add(1).fetch(10) == 6
    kill_owner(purse)
    assert again.show().fetch(30) == 6


@pytest.mark.parametrize("method", ["add", "add_async"])
def test_a_method_that_raises_has_not_happened(purse, method):
    values = [getattr(purse, method)(number) for number in (1, -100, 2)]
    assert values[0].fetch(10) == 6
    with pytest.raises(ValueError, match="there is only 6"):
        values[1].fetch(10)
    assert values[2].fetch(10) == 8
    kill_owner(purse)
    assert purse.show().fetch(30) == 8


def test_a_state_that_cannot_be_pickled_has_not_happened(purse):
    with pytest.raises(TypeError, match="cannot pickle"):
        purse.lock().fetch(10)
    assert purse.show().fetch(10) == 5


def test_a_state_that_is_too_large_has_not_happened(keeping, purse):
    with pytest.raises(muster.errors.ResourceExhaustedError, match="state of Purse has"):
        purse.fill(17 << 20).fetch(60)
    assert purse.hold(1).fetch(10) == 1


def test_a_large_state_is_recorded_and_warned_of_once(keeping, purse):
    for _ in range(3):
        purse.fill(200 << 10).fetch(30)
    purse.fill(12 << 20).fetch(60)
    kill_owner(purse)
    assert purse.hold(1).fetch(30) == 2
    warnings = [line for line in keeping.lines if "Purse is a kept actor" in line]
    assert 1 <= len(warnings) <= 2      # one of each life
    assert "muster.record()" in warnings[0]


def test_death_undoes_the_method_that_died(purse):
    with pytest.raises(muster.ActorError, match="enough") as error:
        purse.end("enough").fetch(30)
    assert error.value.ran == "yes"
    assert purse.show().fetch(30) == 5


def test_a_class_of_the_program_itself_is_kept(keeping):
    class Thing:
        def __init__(self):
            self.others = []

        def grow(self):
            self.others.append(type(self)())
            return len(self.others)

        def pid(self):
            return os.getpid()

    thing = keeping.spawn(Thing, name="thing", kept=True)
    assert thing.grow().fetch(10) == 1
    kill_owner(thing)
    assert thing.grow().fetch(30) == 2
    thing.stop()


def test_a_name_begins_anew_after_stop(keeping):
    for _ in range(2):
        purse = keeping.spawn(classes.Purse, (5,), name="anew", kept=True)
        assert purse.add(1).fetch(10) == 6
        purse.stop()


def test_a_constructor_that_raises_keeps_nothing(keeping):
    with pytest.raises(ValueError, match="below 0"):
        keeping.spawn(classes.Purse, (-1,), name="none", kept=True)
    fine = keeping.spawn(classes.Purse, (1,), name="none", kept=True)
    assert fine.show().fetch(10) == 1
    fine.stop()


# ---- records ----

def test_records_are_replayed_in_a_later_life(log):
    assert [log.write(number).fetch(10) for number in range(5)] == [1, 2, 3, 4, 5]
    kill_owner(log)
    assert log.write_async(5).fetch(30) == 6
    kill_owner(log)
    assert log.read().fetch(30) == list(range(6))


@pytest.mark.parametrize("method", ["write", "write_async"])
def test_what_a_method_that_raises_has_recorded_is_undone(log, method):
    values = [getattr(log, method)(number, number == 1) for number in range(3)]
    with pytest.raises(ValueError, match="changed its mind"):
        values[1].fetch(10)
    assert log.read().fetch(10) == [0, 2]
    kill_owner(log)
    assert log.read().fetch(30) == [0, 2]


def test_a_record_that_cannot_be_replayed_is_none(log):
    log.write("a").fetch(10)
    with pytest.raises(TypeError, match="no line"):
        log.write(None).fetch(10)
    assert log.read().fetch(10) == ["a"]


def test_many_records_are_followed_by_a_whole_state(log):
    values = [log.write(number) for number in range(1777)]
    assert values[-1].fetch(60) == 1777
    kill_owner(log)
    assert log.count().fetch(30) == 1777
    assert [log.write(number).fetch(10) for number in range(3)] == [1778, 1779, 1780]
    assert log.read(1775).fetch(10) == [1775, 1776, 0, 1, 2]


def test_record_is_for_methods_of_kept_actors(purse, coordinator):
    with pytest.raises(muster.errors.FailedPreconditionError, match="no method replay"):
        purse.record().fetch(10)
    with pytest.raises(muster.errors.FailedPreconditionError, match="kept=True"):
        muster.record(1)
    plain = coordinator.spawn(classes.Log)
    with pytest.raises(muster.errors.FailedPreconditionError, match="kept=True"):
        plain.write(1).fetch(10)
    plain.stop()


# ---- once ----

@pytest.mark.parametrize("cls, change", [(classes.Purse, "add"), (classes.Log, "write")])
def test_each_call_takes_effect_once_while_workers_are_killed(keeping, cls, change):
    actor = keeping.spawn(cls, (0,) if cls is classes.Purse else (), name="once",
                          kept=True, restarts=1000)
    is_over = threading.Event()

    def kill():
        chance = random.Random(5)
        while not is_over.wait(chance.uniform(0.1, 0.4)):
            try:
                os.kill(actor.pid().fetch(30), signal.SIGKILL)
            except ProcessLookupError:
                pass

    killer = threading.Thread(target=kill)
    killer.start()
    answers = []
    until = time.monotonic() + 6
    try:
        while time.monotonic() < until or len(answers) < 300:
            values = [getattr(actor, change)(1) for _ in range(20)]
            answers += [value.fetch(60) for value in values]
    finally:
        is_over.set()
        killer.join()
    assert answers == list(range(1, len(answers) + 1))
    actor.stop()


def test_answers_that_leave_together_are_written_once(keeping, purse):
    before = os.path.getsize(keeping.kept_file)
    values = [purse.add(1) for _ in range(300)]
    assert [value.fetch(30) for value in values] == list(range(6, 306))
    assert os.path.getsize(keeping.kept_file) - before < 300 * 400


def test_a_call_that_runs_on_a_worker_that_is_drained_is_made_again(own_cluster,
                                                                    tmp_path):
    cluster = own_cluster(workers=2, store=f"journal:{tmp_path}/keys")
    with muster.ClusterCoordinator(cluster) as coordinator:
        purse = coordinator.spawn(classes.Purse, (0,), name="purse", kept=True)
        worker = [i for i in range(2) if coordinator.schedule(
            os.getpid, worker=i).fetch(10) == purse.pid().fetch(10)][0]
        values = [purse.add_async(1) for _ in range(200)]
        coordinator.drain(worker, 30)
        values += [purse.add(1) for _ in range(20)]
        assert [value.fetch(60) for value in values] == list(range(1, 221))


def test_its_state_survives_the_cluster(tmp_path):
    """Also one that was closed: its run goes on by its name."""
    program = (
        "import sys, muster, actor_classes\n"
        "with muster.LocalCluster(workers=1, store=sys.argv[1], run='bank') as _:\n"
        "    purse = muster.ClusterCoordinator(_).spawn(\n"
        "        actor_classes.Purse, (0,), name='purse', kept=True)\n"
        "    print(purse.add(1).fetch(30), flush=True)\n"
        "    if len(sys.argv) > 2:\n"
        "        import os\n"
        "        os.kill(os.getpid(), 9)\n")
    folder = os.path.dirname(classes.__file__)
    printed = []
    for more in ((), ("killed",), ("killed",), ()):
        process = subprocess.run(
            [sys.executable, "-c", program, f"journal:{tmp_path}/keys", *more],
            stdout=subprocess.PIPE, text=True, timeout=120,
            env={**os.environ, "PYTHONPATH": folder})
        printed.append(process.stdout.strip())
    assert printed == ["1", "2", "3", "4"]


# ---- what is refused ----

def test_without_a_journal_nothing_is_kept(coordinator):
    with pytest.raises(muster.ActorError, match="option store is not a journal"):
        coordinator.spawn(classes.Purse, (1,), name="unkept", kept=True)


def test_what_cannot_be_kept_is_refused(keeping, purse):
    with pytest.raises(ValueError, match="a kept actor has a name"):
        keeping.spawn(classes.Purse, (1,), kept=True)
    with pytest.raises(ValueError, match="one call at a time, on a thread"):
        keeping.spawn(classes.Purse, (1,), name="a", kept=True, where="process")
    with pytest.raises(ValueError, match="one call at a time, on a thread"):
        keeping.spawn(classes.Purse, (1,), name="a", kept=True, concurrency=2)
    with pytest.raises(muster.ActorError, match="kept"):
        keeping.spawn(classes.Purse, (1,), name="purse")
    with pytest.raises(TypeError, match="cannot pickle"):
        keeping.spawn(classes.Purse, (1, [LockMaker()]), name="locked", kept=True)


class LockMaker:
    """A lock, where it is unpickled."""

    def __reduce__(self):
        return (threading.Lock, ())


def test_a_kept_actor_has_no_streams(purse):
    with pytest.raises(TypeError, match="is a generator"):
        list(purse.rows())
    with pytest.raises(TypeError, match="is a generator"):
        purse.sneak().fetch(10)
