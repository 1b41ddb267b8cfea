"""Actors: objects on workers whose methods are called from anywhere."""

import asyncio
import collections
import contextlib
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import actor_classes as classes
import muster
from muster import _scope
from conftest import wait_until


@pytest.fixture
def counter(coordinator):
    counter = coordinator.spawn(classes.Counter)
    yield counter
    counter.stop()


# ---- calls ----

def test_an_actor_has_its_arguments_and_state(coordinator):
    counter = coordinator.spawn(classes.Counter, (5,), {"step": 2})
    assert counter.add(1).fetch(10) == 7
    assert counter.add(number=3).fetch(10) == 13
    counter.stop()


def test_calls_of_one_caller_run_in_order(counter):
    values = [counter.append(i) for i in range(5000)]
    assert [value.fetch(30) for value in values] == list(range(1, 5001))
    assert counter.items().fetch(10) == list(range(5000))


def test_a_call_gives_a_remote_value(coordinator, counter):
    value = counter.add(4)
    assert isinstance(value, muster.RemoteValue)
    assert value.wait(10) and value.done() and value.exception() is None
    assert [done.fetch() for done in muster.as_completed([counter.add(1)])] == [5]
    assert coordinator.schedule(lambda n: n * 2, (counter.add(1),)).fetch(10) == 12
    assert coordinator.fetch({"a": [counter.add(1)]}) == {"a": [7]}


def test_a_value_is_awaited(counter):
    async def main():
        return await asyncio.gather(*(counter.add(1) for _ in range(3)))

    assert asyncio.run(main()) == [1, 2, 3]


def test_remote_values_are_arguments_wherever_they_stand(coordinator, counter):
    other = coordinator.spawn(classes.Counter, (10,))
    closure = coordinator.schedule(lambda: 100)
    assert counter.echo([other.add(1), {"b": closure}]).fetch(10) == [11, {"b": 100}]
    assert counter.add(other.add(1)).fetch(10) == 12


def test_arrays_come_and_go(counter):
    array = np.arange(100000, dtype=np.float32)
    values = [counter.echo(array) for _ in range(40)]
    for value in values:
        assert np.array_equal(value.fetch(30), array)


def test_a_large_argument_fits_after_small_ones(counter):
    for size in (10, 9 << 20, 5 << 20, 5 << 20, 10, 9 << 20):
        assert counter.size(bytes(size)).fetch(30) == size


def test_each_actor_of_a_class_has_its_own_state(coordinator):
    counters = [coordinator.spawn(classes.Counter) for _ in range(20)]
    for number, counter in enumerate(counters):
        counter.add(number)
    assert [counter.add(0).fetch(10) for counter in counters] == list(range(20))
    for counter in counters:
        counter.stop()


def test_actors_are_given_to_all_workers_or_to_the_one_that_was_said(coordinator):
    actors = [coordinator.spawn(classes.Counter) for _ in range(4)]
    assert collections.Counter(actor.where().fetch(10)[0] for actor in actors) == \
        {0: 2, 1: 2}
    for worker in (0, 1):
        actor = coordinator.spawn(classes.Counter, worker=worker, worker_type="worker")
        assert actor.where().fetch(10) == (worker, "worker")
    with pytest.raises(muster.errors.InvalidArgumentError, match="there are 2 tasks"):
        coordinator.spawn(classes.Counter, worker=2)
    with pytest.raises(muster.errors.NotFoundError, match="no tasks of type 'other'"):
        coordinator.spawn(classes.Counter, worker_type="other")


def test_a_class_of_the_program_itself_is_sent_by_content(coordinator):
    class Local:
        def __init__(self, base):
            self.base = base

        def add(self, number):
            return self.base + number + classes.one()

    local = coordinator.spawn(Local, (10,))
    assert local.add(5).fetch(10) == 16
    local.stop()


# ---- errors ----

def test_an_exception_of_a_method_is_raised_with_its_traceback(counter):
    with pytest.raises(KeyError, match="no key") as error:
        counter.fail("no key").fetch(10)
    assert "in fail" in str(error.value.__cause__)
    assert counter.add(1).fetch(10) == 1


@pytest.mark.parametrize("use", [
    lambda handle: handle.add(1),
    lambda handle: handle.rows,
    lambda handle: handle.address,
    lambda handle: handle.stop(),
    pickle.dumps,
])
def test_an_exception_of_the_constructor_is_that_of_each_use(coordinator, use):
    handle = coordinator.spawn(classes.Counter, (-1,))
    assert "not known yet" in repr(handle)
    for _ in range(2):
        with pytest.raises(ValueError, match="below 0"):
            use(handle)
    other = coordinator.spawn(classes.Counter, kwargs={"other": 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        use(other)


def test_many_actors_are_made_at_the_same_time(coordinator):
    class Slow:
        def __init__(self, number):
            time.sleep(0.4)
            self.number = number

        def get(self):
            return self.number

    coordinator.spawn(classes.Counter, worker=0)
    coordinator.spawn(classes.Counter, worker=1)
    begun = time.monotonic()
    slow = [coordinator.spawn(Slow, (i,)) for i in range(8)]
    assert time.monotonic() - begun < 0.3
    assert [one.get().fetch(10) for one in slow] == list(range(8))
    assert time.monotonic() - begun < 3


def test_more_actors_than_may_be_under_way(coordinator):
    many = [coordinator.spawn(classes.Counter, (i if i % 100 else -1,))
            for i in range(1000)]
    assert [many[i].add(0).fetch(10) for i in (1, 99, 101, 999)] == [1, 99, 101, 999]
    with pytest.raises(ValueError, match="below 0"):
        many[100].add(0)
    for actor in many:
        with contextlib.suppress(ValueError):
            actor.stop(now=True)


def test_an_actor_that_is_not_made_in_time_ends(coordinator, tmp_path):
    class Slow:
        def __init__(self, path):
            time.sleep(1.5)
            self.path = path

        def __del__(self):
            with open(self.path, "w", encoding="ascii") as file:
                file.write("dropped")

    path = tmp_path / "dropped"
    other = coordinator.spawn(classes.Counter, worker=0)
    slow = coordinator.spawn(Slow, (str(path),), worker=0, timeout=0.5)
    with pytest.raises(muster.errors.DeadlineExceededError):
        slow.stop()
    assert wait_until(lambda: other.add(1).fetch(10) and path.exists())
    other.stop()


def test_a_method_that_is_not_there_is_refused_by_the_handle(counter):
    with pytest.raises(AttributeError, match="has no method 'ad'; it has: add, "):
        counter.ad(1)
    with pytest.raises(AttributeError, match="the attributes of an actor are its own"):
        counter.n = 3


def test_a_method_that_only_the_caller_has_is_an_actor_error(coordinator):
    shadow = coordinator.spawn(classes.Shadow)
    with pytest.raises(muster.ActorError) as error:
        shadow.vanishing().fetch(10)
    assert (error.value.ran, error.value.reason) == \
        ("no", "Shadow has no method vanishing")
    assert error.value.actor == shadow.address
    assert shadow.present().fetch(10) == "here"


def test_what_cannot_be_pickled_is_one_error_and_nothing_else_is_lost(counter):
    before = counter.add(1)
    with pytest.raises(TypeError, match="cannot pickle.*in argument 1"):
        counter.echo(threading.Lock())
    with pytest.raises(TypeError, match="cannot pickle"):
        counter.lock().fetch(10)
    with pytest.raises(RuntimeError, match="not here"):
        counter.echo(classes.Unloadable()).fetch(10)
    assert before.fetch(10) == 1
    assert counter.add(1).fetch(10) == 2


def test_an_answer_that_is_too_deep_is_one_error(coordinator):
    counter = coordinator.spawn(classes.Counter)
    value, after = counter.deep(200000), counter.add(1)
    with pytest.raises(RecursionError):
        value.fetch(30)
    assert after.fetch(10) == 1


def test_a_call_that_was_not_answered_in_time_says_whether_it_ran(counter):
    slow = counter.sleep(0.5)
    with pytest.raises(muster.ActorError) as error:
        counter.options(timeout=0.1).add(1).fetch(10)
    assert isinstance(error.value, muster.errors.DeadlineExceededError)
    assert error.value.ran in ("no", "maybe")
    slow.fetch(10)
    assert counter.add(0).fetch(10) == 0     # its time was over before it was begun


def test_die_ends_an_actor_and_each_caller_hears_why(counter):
    values = [counter.end("enough"), counter.add(1)]
    errors = []
    for value in values:
        with pytest.raises(muster.ActorError) as error:
            value.fetch(10)
        errors.append(error.value)
    assert [error.ran for error in errors] == ["yes", "no"]
    assert str(errors[0]) == "Counter has ended: enough"
    assert "Counter has ended: enough" in str(errors[1])
    assert errors[1].task.startswith("/job:worker/task:")

    def is_gone():
        with pytest.raises(muster.ActorError) as error:
            counter.add(1).fetch(10)
        return error.value.ran == "no" and "no such actor" in str(error.value)

    assert wait_until(is_gone)


def test_stop_answers_what_was_asked_before(coordinator):
    counter = coordinator.spawn(classes.Counter)
    values = [counter.sleep(0.02) for _ in range(5)]
    counter.stop()
    assert [value.fetch(1) for value in values] == [None] * 5
    with pytest.raises(muster.ActorError, match="no such actor") as error:
        counter.add(1).fetch(10)
    assert error.value.ran == "no"
    counter.stop()      # it has ended already


def test_stop_now_does_not_begin_what_waits(coordinator):
    counter = coordinator.spawn(classes.Counter)
    values = [counter.sleep(0.3) for _ in range(3)]
    wait_until(lambda: False, 0.1)
    counter.stop(now=True)
    ran = []
    for value in values:
        with pytest.raises(muster.ActorError) as error:
            value.fetch(10)
        ran.append(error.value.ran)
    assert ran == ["maybe", "no", "no"]


def test_an_actor_error_travels(counter):
    counter.end("reason")
    with pytest.raises(muster.ActorError) as error:
        counter.options(timeout=5).add(1).fetch(10)
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is type(error.value)
    assert (again.ran, again.actor, again.reason) == \
        (error.value.ran, counter.address, str(error.value))


def test_a_killed_worker_ends_the_calls_of_its_actors_alone(own_cluster):
    cluster = own_cluster(workers=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        lost_pid = coordinator.schedule(os.getpid, worker=0).fetch(10)
        lost = coordinator.spawn(classes.Counter, worker=0)
        other = coordinator.spawn(classes.Counter, worker=1)
        value = lost.sleep(60)
        values = [other.add(1) for _ in range(100)]
        os.kill(lost_pid, signal.SIGKILL)
        with pytest.raises(muster.ActorError) as error:
            value.fetch(30)
        assert error.value.ran == "maybe"
        assert error.value.task == "/job:worker/task:0"
        assert [value.fetch(10) for value in values] == list(range(1, 101))
        with pytest.raises(muster.ActorError) as error:
            lost.options(timeout=20).add(1).fetch(30)
        assert error.value.ran == "no"
        assert other.add(1).fetch(10) == 101


# ---- options ----

def test_one_way_calls_have_no_answer_and_keep_their_place(counter):
    for i in range(1000):
        assert counter.options(one_way=True).append(i) is None
    assert counter.items().fetch(10) == list(range(1000))


def test_an_exception_that_nobody_waits_for_is_logged(own_cluster):
    lines = []
    cluster = own_cluster(workers=1, on_line=lambda *line: lines.append(line))
    with muster.ClusterCoordinator(cluster) as coordinator:
        counter = coordinator.spawn(classes.Counter)
        counter.options(one_way=True).fail("unheard")
        assert counter.add(1).fetch(10) == 1
        assert wait_until(lambda: any("nobody waits for the error of a call: KeyError: "
                                      "'unheard'" in line[2] for line in lines))


def test_an_actor_that_is_not_made_is_logged_though_nobody_uses_it(own_cluster):
    lines = []
    cluster = own_cluster(workers=1, on_line=lambda *line: lines.append(line))
    with muster.ClusterCoordinator(cluster) as coordinator:
        for _ in range(2):
            coordinator.spawn(classes.Counter, (-1,))
        assert wait_until(lambda: 2 == sum("was not made: ValueError" in line[2]
                                           for line in lines))


# ---- methods that are asynchronous, or run together ----

@pytest.mark.parametrize("method", ["overlap", "overlap_async"])
def test_one_call_runs_at_a_time_whatever_its_spelling(counter, method):
    values = [getattr(counter, method)(0.01) for _ in range(10)]
    assert [value.fetch(30) for value in values] == [1] * 10


@pytest.mark.parametrize("method", ["overlap", "overlap_async"])
def test_concurrency_is_how_many_run_at_a_time(coordinator, method):
    counter = coordinator.spawn(classes.Counter, concurrency=4)
    values = [getattr(counter, method)(0.1) for _ in range(12)]
    assert max(value.fetch(30) for value in values) == 4
    counter.stop()


def test_an_exception_of_an_asynchronous_method(counter):
    with pytest.raises(KeyError, match="later"):
        counter.fail_async("later").fetch(10)
    assert counter.add(1).fetch(10) == 1


def test_die_in_an_asynchronous_method(counter):
    with pytest.raises(muster.ActorError, match="Counter has ended: async"):
        counter.end_async("async").fetch(10)


# ---- streams ----

@pytest.mark.parametrize("method", ["rows", "rows_async"])
def test_a_generator_method_is_a_stream(counter, method):
    stream = getattr(counter, method)(500)
    assert isinstance(stream, muster.Stream)
    assert list(stream) == list(range(500))
    assert list(stream) == []


def test_a_stream_is_iterated_asynchronously(counter):
    async def main():
        return [row async for row in counter.rows(100)]

    assert asyncio.run(main()) == list(range(100))


@pytest.mark.parametrize("method", ["rows", "rows_async"])
def test_the_exception_of_a_stream_comes_after_its_items(counter, method):
    items = []
    with pytest.raises(ValueError, match="after 70"):
        for item in getattr(counter, method)(1000, 70):
            items.append(item)
    assert items == list(range(70))


def test_a_stream_runs_ahead_by_64_items_at_most(counter):
    stream = counter.counted_rows(10000)
    first = [next(stream) for _ in range(10)]
    assert first == list(range(10))
    wait_until(lambda: False, 0.1)
    assert counter.made().fetch(10) <= 10 + 64
    stream.close()
    assert counter.add(1).fetch(10) == 1


def test_a_stream_that_was_dropped_ends_its_generator(counter):
    stream = counter.guarded_rows(1000)
    next(stream)
    del stream
    assert wait_until(lambda: counter.is_closed().fetch(10))


def test_a_stream_of_a_lost_worker_ends_with_an_error(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        counter = coordinator.spawn(classes.Counter)
        pid = coordinator.schedule(os.getpid).fetch(10)
        stream = counter.rows(10 ** 9)
        for _ in range(100):
            next(stream)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(muster.ActorError):
            for _ in stream:
                pass


def test_a_generator_is_not_called_one_way(counter):
    with pytest.raises(TypeError, match="nobody would get its items"):
        counter.options(one_way=True).rows(3)


# ---- in processes of their own ----

@pytest.fixture
def own_process(coordinator):
    counter = coordinator.spawn(classes.Counter, where="process")
    yield counter
    counter.stop()


def test_an_actor_in_a_process_of_its_own(own_process):
    assert own_process.pid().fetch(30) != own_process.parent().fetch(30)
    values = [own_process.append(i) for i in range(2000)]
    assert [value.fetch(30) for value in values] == list(range(1, 2001))
    array = np.arange(100000.0)
    assert np.array_equal(own_process.echo(array).fetch(30), array)
    with pytest.raises(KeyError, match="no key") as error:
        own_process.fail("no key").fetch(10)
    assert "in fail" in str(error.value.__cause__)
    assert own_process.overlap_async(0.01).fetch(10) == 1
    with pytest.raises(TypeError, match="cannot pickle"):
        own_process.lock().fetch(10)
    assert own_process.run_facts().fetch(10)[1:] == ("worker", 0, 1, False, "Counter")


@pytest.mark.parametrize("method", ["rows", "rows_async"])
def test_a_stream_of_a_process(own_process, method):
    assert list(getattr(own_process, method)(300)) == list(range(300))
    with pytest.raises(ValueError, match="after 70"):
        list(getattr(own_process, method)(300, 70))


def test_the_constructor_in_a_process_raises(coordinator):
    with pytest.raises(ValueError, match="below 0"):
        coordinator.spawn(classes.Counter, (-1,), where="process").add(1)


def test_an_actor_ends_with_its_process(own_process):
    pid = own_process.pid().fetch(30)
    values = [own_process.sleep(60), own_process.add(1)]
    wait_until(lambda: False, 0.2)
    os.kill(pid, signal.SIGKILL)
    errors = []
    for value in values:
        with pytest.raises(muster.ActorError, match="was killed by signal 9") as error:
            value.fetch(30)
        errors.append(error.value.ran)
    assert errors == ["maybe", "no"]


def test_a_method_that_is_stuck_is_killed(coordinator):
    counter = coordinator.spawn(classes.Counter, where="process")
    pid = counter.pid().fetch(30)
    value = counter.sleep(600)
    wait_until(lambda: False, 0.2)
    counter.stop(now=True)
    with pytest.raises(muster.ActorError):
        value.fetch(30)
    assert wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_die_in_a_process(own_process):
    with pytest.raises(muster.ActorError, match="Counter has ended: enough") as error:
        own_process.end("enough").fetch(30)
    assert error.value.ran == "yes"


@pytest.fixture
def own_caller(coordinator, counter):
    caller = coordinator.spawn(classes.Caller, (counter,), where="process")
    yield caller
    caller.stop()


def test_an_actor_in_a_process_calls_actors(own_caller):
    assert own_caller.sync(1).fetch(30) == 1
    assert own_caller.later(1).fetch(10) == 2
    assert own_caller.many(2000).fetch(60) == list(range(3, 2003))
    assert own_caller.items().fetch(10) == [0, 1, 2]
    assert own_caller.nested().fetch(10) == [2003]
    assert own_caller.unanswered().fetch(10) == 2043
    assert own_caller.late().fetch(10) == (None, None)
    for method in (own_caller.failing, own_caller.failing_later):
        assert method("in a process").fetch(10) == "'in a process'"


def test_an_actor_in_a_process_finds_and_stops_actors(coordinator):
    named = coordinator.spawn(classes.Counter, name="of a process")
    caller = coordinator.spawn(classes.Caller, (named,), where="process")
    assert caller.find("of a process").fetch(30) == (1, True)
    caller.stop_other().fetch(10)
    with pytest.raises(muster.ActorError):
        named.options(timeout=0.2).add(1).fetch(10)
    caller.stop()


def test_an_actor_in_a_process_has_variables(coordinator, own_process):
    variable = muster.Variable(np.ones(4, np.float32), name="of_a_process",
                               node=coordinator.node)
    assert own_process.variable_sum(variable).fetch(30) == 4
    own_process.variable_add(variable, np.full(4, 2, np.float32)).fetch(10)
    assert variable.read().tolist() == [3] * 4
    with pytest.raises(muster.errors.FailedPreconditionError, match="made at once"):
        own_process.run_add(variable, np.ones(4, np.float32)).fetch(10)
    variable.close()
    holder = coordinator.spawn(classes.Holder, ("in_a_process",), where="process")
    assert holder.add(1).fetch(30) == [2, 3]
    assert holder.add(1).fetch(10) == [3, 4]
    holder.stop()


def test_a_function_in_a_process_calls_actors(own_cluster):
    def use(handle):
        found = muster.actor("shared")
        return (handle.add(1).fetch(30), found.add(1).fetch(30), list(found.rows(3)),
                found == handle)

    cluster = own_cluster(workers=1, processes=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        shared = coordinator.spawn(classes.Counter, name="shared")
        assert coordinator.schedule(use, (shared,)).fetch(30) == (1, 2, [0, 1, 2], True)
        values = [coordinator.schedule(lambda a: a.add(1).fetch(30), (shared,))
                  for _ in range(50)]
        assert sorted(coordinator.fetch(values)) == list(range(3, 53))
        with pytest.raises(KeyError, match="of a function"):
            coordinator.schedule(lambda a: a.fail("of a function").fetch(30),
                                 (shared,)).fetch(30)


# ---- handles ----

def test_a_handle_pickles_and_equals_itself(shared_cluster, counter):
    again = pickle.loads(pickle.dumps(counter))
    assert again == counter and hash(again) == hash(counter)
    assert again.address == counter.address
    _scope.push(shared_cluster)     # as its `with` does
    try:
        assert again.add(1).fetch(10) == 1
    finally:
        _scope.pop(shared_cluster)


def test_closures_call_actors_wherever_they_run(coordinator, counter):
    values = [coordinator.schedule(lambda handle: handle.add(1).fetch(30), (counter,))
              for _ in range(100)]
    assert sorted(coordinator.fetch(values)) == list(range(1, 101))
    captured = counter
    assert coordinator.schedule(lambda: captured.add(1).fetch(30)).fetch(30) == 101


def test_an_exception_reaches_the_function_that_fetches_it(coordinator, counter):
    def failing(handle):
        try:
            handle.fail("in a function").fetch(10)
        except KeyError as error:
            return str(error)

    assert coordinator.schedule(failing, (counter,)).fetch(30) == "'in a function'"
    other = coordinator.spawn(classes.Caller, (counter,))
    assert other.failing("in an actor").fetch(10) == "'in an actor'"
    assert other.failing_later("in an actor").fetch(10) == "'in an actor'"


def test_actors_call_actors(coordinator, counter):
    for worker in (0, 1):
        other = coordinator.spawn(classes.Caller, (counter,), worker=worker)
        assert other.sync(1).fetch(10) + 1 == other.later(1).fetch(10)
        assert other.items().fetch(10) == [0, 1, 2]
        other.stop()


def test_actors_of_one_worker_that_wait_for_each_other_do_not_starve(own_cluster):
    cluster = own_cluster(workers=1, threads=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        chain = coordinator.spawn(classes.Counter)
        for _ in range(20):
            chain = coordinator.spawn(classes.Link, (chain,))
        values = [coordinator.schedule(lambda a: a.add(1).fetch(30), (chain,))
                  for _ in range(5)]
        assert sorted(coordinator.fetch(values)) == [1, 2, 3, 4, 5]


def test_what_a_handle_says_of_itself(counter):
    address = counter.address
    assert counter.name is None
    assert repr(counter) == f"<muster.Handle of Counter at {address}>"
    assert "add" in dir(counter) and "_hidden" not in dir(counter)
    assert counter.add.__doc__ == "Counter.add(number=1)\n\nAdd a number."
    assert counter.add.__name__ == "add"
    assert "Counter.add" in repr(counter.add)
    assert dir(counter.options()) == sorted(
        name for name in dir(classes.Counter) if not name.startswith("_"))


# ---- what a function can, a method can ----

def test_a_method_has_a_run(coordinator, counter):
    assert counter.run_facts().fetch(10)[2:] == (0, 1, False, "Counter")
    assert counter.run_facts_async().fetch(10) == counter.run_facts().fetch(10)
    counter.report("from_an_actor", 2.5).fetch(10)
    assert wait_until(lambda: [metric["number"] for metric in
                               coordinator.node.status(5)["metrics"]
                               if metric["name"] == "from_an_actor"]) == [2.5]


def test_a_method_reads_and_writes_variables(coordinator, counter):
    variable = muster.Variable(np.ones(4, np.float32), name="of_an_actor",
                               node=coordinator.node)
    assert counter.variable_sum(variable).fetch(10) == 4
    counter.variable_add(variable, np.full(4, 2, np.float32)).fetch(10)
    assert variable.read().tolist() == [3] * 4
    with pytest.raises(muster.errors.FailedPreconditionError, match="made at once"):
        counter.run_add(variable, np.ones(4, np.float32)).fetch(10)
    variable.close()


def test_what_is_no_class_is_refused(coordinator):
    with pytest.raises(TypeError, match="made of a class"):
        coordinator.spawn(lambda: 1)
    with pytest.raises(ValueError, match="concurrency is 0"):
        coordinator.spawn(classes.Counter, concurrency=0)
