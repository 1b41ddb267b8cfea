"""Calls of actors in processes of their own, of which many are sent ahead of the answers
of those before."""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

import muster


class Writer:
    """Writes down each call that has begun."""

    def __init__(self, path, other=None):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.other = other

    def write(self, number, seconds=0.0):
        os.write(self.file, b"%d\n" % number)
        time.sleep(seconds)
        return number

    def fail(self, number):
        self.write(number)
        raise ValueError(str(number))

    def ask(self, number):
        self.write(number)
        return self.other.write(number).fetch()

    def echo(self, array):
        return array

    def die(self, number):
        self.write(number)
        muster.die("enough")

    def pid(self):
        return os.getpid()


def ends_of(values):
    """What became of each: "yes" has an answer, else as its error says."""
    ends = []
    for value in values:
        try:
            value.fetch(30)
            ends.append("yes")
        except muster.ActorError as error:
            ends.append(error.ran)
    return ends


def written(path):
    return [int(line) for line in open(path, encoding="ascii")]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "calls")


@pytest.fixture
def writer(shared_coordinator, path):
    made = shared_coordinator.spawn(Writer, (path,), where="process")
    yield made
    made.stop(now=True)


@pytest.fixture(scope="module")
def shared_coordinator(shared_cluster):
    with muster.ClusterCoordinator(shared_cluster) as coordinator:
        yield coordinator


def test_calls_run_in_order_and_each_has_its_own_answer(writer, path):
    values = [writer.fail(i) if i % 7 == 0 else writer.write(i) for i in range(1000)]
    for i, value in enumerate(values):
        if i % 7 == 0:
            with pytest.raises(ValueError, match=f"^{i}$"):
                value.fetch(30)
        else:
            assert value.fetch(30) == i
    assert written(path) == list(range(1000))


def test_what_was_answered_has_run_and_what_was_not_begun_has_not(shared_coordinator,
                                                                  path):
    chance = random.Random(7)
    for life in range(8):
        writer = shared_coordinator.spawn(Writer, (f"{path}{life}",), where="process")
        pid = writer.pid().fetch(30)
        values = [writer.write(i, 0.0005) for i in range(400)]
        time.sleep(chance.uniform(0, 0.1))
        os.kill(pid, signal.SIGKILL)
        ends = ends_of(values)
        answered, unsure = ends.count("yes"), ends.count("maybe")
        assert unsure <= 1
        assert ends == ["yes"] * answered + ["maybe"] * unsure + \
            ["no"] * (400 - answered - unsure)
        ran = written(f"{path}{life}")
        assert ran == list(range(len(ran)))
        assert answered <= len(ran) <= answered + unsure


def test_nothing_runs_behind_the_end(writer, path):
    values = [writer.write(0, 0.2), writer.write(1), writer.die(2)] + \
        [writer.write(i) for i in range(3, 100)]
    assert [values[i].fetch(30) for i in range(2)] == [0, 1]
    ends = []
    for value in values[2:]:
        with pytest.raises(muster.ActorError, match="enough") as error:
            value.fetch(30)
        ends.append(error.value.ran)
    assert ends == ["yes"] + ["no"] * 97
    assert written(path) == [0, 1, 2]


def test_a_call_that_is_too_late_does_not_begin(writer, path):
    slow = writer.write(0, 1.0)
    late = [writer.options(timeout=0.3).write(i) for i in range(1, 10)]
    after = writer.write(10)
    for value in late:
        with pytest.raises(muster.ActorError):
            value.fetch(30)
    assert slow.fetch(30) == 0 and after.fetch(30) == 10
    assert written(path) == [0, 10]


def test_large_calls_and_answers_pass_each_other(writer):
    arrays = [np.full(1 << 17, i, np.float64) for i in range(24)]
    values = [writer.echo(array) for array in arrays]
    for array, value in zip(arrays, values):
        assert np.array_equal(value.fetch(60), array)
    sizes = [1, 100, 1000, 10_000, 100_000] * 20
    values = [writer.echo(b"x" * size) for size in sizes]
    assert [len(value.fetch(60)) for value in values] == sizes


def test_a_method_asks_while_calls_wait_behind_it(shared_coordinator, writer, path):
    asker = shared_coordinator.spawn(Writer, (f"{path}-asker", writer), where="process")
    values = [asker.ask(i) if i % 2 else asker.write(i) for i in range(200)]
    assert [value.fetch(30) for value in values] == list(range(200))
    assert written(f"{path}-asker") == list(range(200))
    assert written(path) == list(range(1, 200, 2))
    asker.stop()


def test_many_threads_call_it(writer, path):
    failed = []

    def call(first):
        values = [writer.write(i) for i in range(first, first + 200)]
        failed.extend(i for i, value in enumerate(values, first)
                      if value.fetch(60) != i)

    threads = [threading.Thread(target=call, args=(1000 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    ran = written(path)
    assert sorted(ran) == [1000 * i + j for i in range(8) for j in range(200)]
    for i in range(8):
        own = [number for number in ran if number // 1000 == i]
        assert own == sorted(own)


def test_one_that_is_stopped_now_takes_no_more(shared_coordinator, path):
    writer = shared_coordinator.spawn(Writer, (path,), where="process")
    values = [writer.write(i, 0.01) for i in range(300)]
    values[5].fetch(30)
    writer.stop(now=True)
    ends = ends_of(values)
    ran = written(path)
    unbegun = ends.count("no")
    assert unbegun > 200 and len(ran) <= 300 - unbegun
    assert ran == list(range(len(ran)))
