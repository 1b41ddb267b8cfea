"""Scheduling, joining, errors, options of closures."""

import concurrent.futures
import pickle
import time

import numpy as np
import pytest

import jobs
import muster
from conftest import wait_until
from muster import errors


def test_join_waits_for_everything_scheduled(coordinator):
    values = [coordinator.schedule(jobs.same, (i,)) for i in range(1000)]
    coordinator.join(60)
    assert all(value.done() for value in values) and coordinator.done()


def test_the_first_error_is_raised_once_and_the_rest_is_cancelled(coordinator):
    with pytest.raises(ValueError, match="first"):
        coordinator.schedule(jobs.fail, ("first",))
        for _ in range(100):
            coordinator.schedule(jobs.sleep, (0.05,))
        coordinator.join(60)
    coordinator.join(60)
    assert coordinator.schedule(jobs.same, (1,)).fetch(30) == 1


def test_all_errors_can_be_listed(coordinator):
    coordinator.schedule(jobs.fail, ("listed",))
    with pytest.raises(ValueError):
        coordinator.join(60)
    assert "listed" in [str(error) for error in coordinator.errors()]
    assert coordinator.errors() == []


def test_counts_add_up(coordinator):
    before = coordinator.counts()
    coordinator.fetch([coordinator.schedule(jobs.same, (i,)) for i in range(10)], 30)
    coordinator.join(30)
    after = coordinator.counts()
    assert after["scheduled"] - before["scheduled"] == 10
    assert after["finished"] - before["finished"] == 10 and after["outstanding"] == 0


def test_a_closure_is_cancelled(coordinator):
    value = coordinator.schedule(jobs.sleep, (30,))
    value.cancel()
    with pytest.raises(muster.errors.CancelledError):
        value.fetch(30)
    value.cancel()
    coordinator.join(30)


def test_a_function_sees_that_it_is_cancelled(coordinator):
    value = coordinator.schedule(jobs.sleep, (30,), worker=0)
    wait_until(lambda: coordinator.explain(value, 5)["state"] in ("sent", "running"))
    begun = time.monotonic()
    value.cancel()
    assert coordinator.schedule(jobs.same, (1,), worker=0).fetch(30) == 1
    assert time.monotonic() - begun < 5


def test_a_deadline_ends_a_closure(coordinator):
    value = coordinator.schedule(jobs.sleep, (30,), deadline=0.1)
    with pytest.raises(muster.errors.DeadlineExceededError):
        value.fetch(30)


def test_a_run_that_takes_too_long_runs_elsewhere(coordinator):
    def stuck_once():
        run = muster.current_run()
        if run.attempt == 1:
            limit = time.monotonic() + 20
            while time.monotonic() < limit and not run.cancelled():
                time.sleep(0.01)
        return run.attempt

    assert coordinator.schedule(stuck_once, run_timeout=0.3).fetch(30) > 1


def test_workers_can_be_named_and_excluded(coordinator):
    for index in (0, 1):
        only = [coordinator.schedule(jobs.whoami, worker=index) for _ in range(5)]
        never = [coordinator.schedule(jobs.whoami, not_worker=index) for _ in range(5)]
        assert {run["worker"] for run in coordinator.fetch(only, 30)} == {index}
        assert {run["worker"] for run in coordinator.fetch(never, 30)} == {1 - index}


def test_a_higher_priority_runs_first(own_cluster):
    cluster = own_cluster(workers=1, window=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.schedule(jobs.sleep, (0.5,))
        low = [coordinator.schedule(time.time, priority=7) for _ in range(3)]
        high = [coordinator.schedule(time.time, priority=0) for _ in range(3)]
        assert max(coordinator.fetch(high, 30)) < min(coordinator.fetch(low, 30))


def test_explain_tells_why_a_closure_has_not_run(coordinator):
    value = coordinator.schedule(jobs.sleep, (5,), name="slow")
    reasons = wait_until(lambda: coordinator.explain("slow", 5))
    assert reasons["name"] == "slow" and reasons["state"] in ("queued", "sent", "running")
    assert reasons["function"] == "python.call:sleep"
    assert coordinator.explain(value, 5)["closure"] == reasons["closure"]
    value.cancel()
    with pytest.raises(muster.errors.CancelledError):
        value.fetch(30)
    with pytest.raises(muster.errors.NotFoundError):
        wait_until(lambda: coordinator.explain("slow", 5) and False, 5)


def test_a_failed_input_is_an_input_error_with_its_cause(coordinator):
    bad = coordinator.schedule(jobs.fail_later, (0.5, "the input"))
    user = coordinator.schedule(jobs.add, (bad, 1))
    with pytest.raises(muster.InputError, match="input closure") as caught:
        user.fetch(30)
    assert caught.value.kind == "input"


def test_fetch_at_its_timeout_says_where_the_closure_is(coordinator):
    value = coordinator.schedule(jobs.sleep, (30,), worker=0)
    with pytest.raises(muster.errors.DeadlineExceededError, match="after 50 ms;"):
        value.fetch(0.05)
    with pytest.raises(TimeoutError, match="after 0 ms;"):
        coordinator.fetch([value], 0)
    with pytest.raises(TimeoutError, match="after 30 ms;"):
        coordinator.fetch([value], 0.03)
    with pytest.raises(TimeoutError, match="outstanding after 250 ms;"):
        coordinator.join(0.25)
    assert value.wait(0.01) is False and value.state == "not_ready"
    with pytest.raises(muster.errors.DeadlineExceededError, match="worker/task:0"):
        wait_until(lambda: coordinator.join(0.1))
    value.cancel()
    assert value.wait(30) is True


def test_a_full_queue_blocks_and_says_so(own_cluster):
    cluster = own_cluster(workers=1, queue_max=4)
    with muster.ClusterCoordinator(cluster) as coordinator:
        values = [coordinator.schedule(jobs.sleep, (0.3,)) for _ in range(4)]
        with pytest.raises(muster.errors.WouldBlockError):
            coordinator.schedule(jobs.same, (1,), timeout=0)
        with pytest.raises(muster.errors.DeadlineExceededError):
            coordinator.schedule(jobs.same, (1,), timeout=0.05)
        assert coordinator.schedule(jobs.same, (1,), timeout=20).fetch(30) == 1
        coordinator.fetch(values, 30)


def test_nobody_wants_the_result(coordinator):
    assert coordinator.schedule(jobs.same, (1,), result=False) is None
    coordinator.join(30)


def test_callbacks_are_called_once_the_value_is_ready(coordinator):
    seen = []
    slow = coordinator.schedule(jobs.sleep, (0.1,))
    slow.add_done_callback(lambda value: seen.append(value.fetch()))
    assert wait_until(lambda: seen) == [False]
    slow.add_done_callback(lambda value: seen.append("again"))
    assert wait_until(lambda: len(seen) == 2)


def test_tasks_of_ones_own_type(own_cluster):
    cluster = own_cluster(workers=1, counts={"gpu": 1})
    with muster.ClusterCoordinator(cluster) as coordinator:
        run = coordinator.schedule(jobs.whoami, worker_type="gpu").fetch(30)
        assert run["type"] == "gpu" and run["task"] == "/job:gpu/task:0"


def test_there_is_one_coordinator_for_each_node(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.Executor(cluster) as executor:
        with muster.ClusterCoordinator(cluster) as coordinator:
            assert coordinator is executor.coordinator
            assert muster.ClusterCoordinator(cluster.node) is coordinator
            with muster.ClusterCoordinator(cluster):
                pass
            assert coordinator.schedule(jobs.add, (1, 2)).fetch(30) == 3
        assert executor.submit(jobs.add, 1, 2).result(30) == 3
    coordinator.close()
    with muster.ClusterCoordinator(cluster) as other:
        assert other is not coordinator
        assert other.schedule(jobs.add, (1, 2)).fetch(30) == 3
    with pytest.raises(muster.errors.ClosedError):
        other.schedule(jobs.add, (1, 2))


def test_threads_that_ask_for_a_coordinator_at_once_get_one(own_cluster):
    cluster = own_cluster(workers=1)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: muster.ClusterCoordinator(cluster), range(16)))
    assert len(set(map(id, made))) == 1


def test_what_was_closed_says_so(own_cluster):
    cluster = own_cluster(workers=1)
    coordinator = muster.ClusterCoordinator(cluster)
    value = coordinator.schedule(jobs.same, (1,))
    assert value.fetch(30) == 1
    pending = coordinator.schedule(jobs.sleep, (30,))
    coordinator.close()
    coordinator.close()
    for call in (lambda: coordinator.schedule(jobs.same, (1,)), coordinator.join,
                 coordinator.done, coordinator.counts, coordinator.errors):
        with pytest.raises(muster.errors.ClosedError):
            call()
    assert value.fetch(1) == 1
    assert pending.done()
    cluster.close()
    with pytest.raises(muster.errors.ClosedError):
        cluster.node


WRONG = [
    (lambda c: c.schedule(), TypeError, "has no fn"),
    (lambda c: c.schedule(3), TypeError, "expected a function"),
    (lambda c: c.schedule(jobs.same, 3), TypeError, "expected a tuple or a list"),
    (lambda c: c.schedule(jobs.same, (), 3), TypeError, "expected a dict"),
    (lambda c: c.schedule(jobs.same, (), {}, 3), TypeError, "positional"),
    (lambda c: c.schedule(jobs.same, nonsense=1), TypeError, "nonsense"),
    (lambda c: c.schedule(jobs.same, priority=9), ValueError, "priority"),
    (lambda c: c.schedule(jobs.same, priority="x"), TypeError, "priority"),
    (lambda c: c.schedule(jobs.same, attempts=1.5), TypeError, "attempts"),
    (lambda c: c.schedule(jobs.same, name=3), TypeError, "name"),
    (lambda c: c.schedule(jobs.same, name="x" * 200), ValueError, "name"),
    (lambda c: c.schedule(jobs.same, worker=-5), ValueError, "worker"),
    (lambda c: c.schedule(jobs.same, worker=2 ** 40), ValueError, "worker"),
    (lambda c: c.schedule(jobs.same, timeout="x"), TypeError, "timeout is"),
    (lambda c: c.schedule(jobs.same, timeout=float("nan")), ValueError, "nan"),
    (lambda c: c.schedule("name", (1,), {"a": 1}), TypeError, "not both"),
    (lambda c: c.schedule("name", (object(),)), TypeError, "cannot be passed"),
    (lambda c: c.schedule("name", (2 ** 70,)), OverflowError, "64 bits"),
    (lambda c: c.schedule("name", ({1: 2},)), TypeError, "key"),
    (lambda c: c.schedule("x" * 100), ValueError, "function's name"),
    (lambda c: c.fetch(), TypeError, "val"),
    (lambda c: c.join("x"), TypeError, "timeout is a .*'x'"),
    (lambda c: c.explain(3), TypeError, "RemoteValue"),
    (lambda c: muster.ClusterCoordinator(3), TypeError, "expected a Node"),
    (lambda c: muster.LocalCluster(workers=-1), ValueError, "worker"),
    (lambda c: muster.LocalCluster(nonsense=1), TypeError, "nonsense"),
    (lambda c: muster.LocalCluster(threads=0), ValueError, "threads"),
    (lambda c: muster.LocalCluster(workers="2"), TypeError, "workers is '2'"),
    (lambda c: muster.LocalCluster(threads="2"), TypeError, "threads is '2'"),
    (lambda c: muster.LocalCluster(restarts_max="x"), TypeError, "restarts_max"),
    (lambda c: muster.LocalCluster(log_level="loud"), ValueError, "log_level.*debug"),
    (lambda c: muster.LocalCluster(counts=["gpu"]), TypeError, "counts"),
    (lambda c: muster.LocalCluster(env={"A": 1}), TypeError, "env has 'A': 1"),
    (lambda c: muster.LocalCluster(python=3), TypeError, "python"),
    (lambda c: muster.LocalCluster(on_line=3), TypeError, "on_line"),
    (lambda c: muster.LocalCluster(heartbeat="x"), TypeError, "heartbeat"),
    (lambda c: muster.Node({"worker": []}, task_type="worker"), muster.MusterError,
     "worker"),
    (lambda c: muster.Node(3), TypeError, "cluster"),
    (lambda c: muster.Node("{", task_type="chief"), ValueError, "cluster"),
    (lambda c: muster.Node({"worker": ["a:1"]}, nonsense=1), TypeError, "nonsense"),
    (lambda c: muster.Node({"worker": ["a:1"]}, threads="x"), TypeError,
     "threads is 'x'"),
    (lambda c: muster.Node({"worker": ["a:1"]}, threads=-1), ValueError, "threads"),
]


@pytest.mark.parametrize("row", range(len(WRONG)))
def test_wrong_use_has_the_right_class_and_words(coordinator, row):
    call, cls, words = WRONG[row]
    with pytest.raises(cls, match=words):
        call(coordinator)


def test_lists_that_contain_themselves_are_refused(coordinator):
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested"):
        coordinator.schedule("name", loop)
    with pytest.raises(RecursionError):
        coordinator.fetch(loop)


# ---- exceptions come whole ----

class Detailed(Exception):
    def __init__(self, first, second, *, extra):
        super().__init__(first)
        self.second, self.extra = second, extra


def raise_as(how):
    import json
    import subprocess

    def deep(level):
        if level == 0:
            raise ValueError("x" * 3000 + " the end")
        deep(level - 1)

    if how == "called":
        raise subprocess.CalledProcessError(7, ["cmd", "-x"], output=b"out" * 500)
    if how == "json":
        json.loads('{"a": 1' + " " * 2002 + "x}")
    if how == "own":
        raise Detailed("message", {"k": list(range(500))}, extra=np.arange(100))
    if how == "deep":
        deep(100)
    raise ValueError("y" * (3 << 20))


def check_whole(how, error):
    if how == "called":
        assert (error.returncode, error.cmd) == (7, ["cmd", "-x"])
        assert error.output == b"out" * 500
    elif how == "json":
        assert error.pos == 2009 and error.doc.startswith('{"a"') and error.lineno == 1
    elif how == "own":
        assert type(error) is Detailed and error.args == ("message",)
        assert error.second == {"k": list(range(500))} and error.extra.sum() == 4950
    elif how == "deep":
        assert str(error) == "x" * 3000 + " the end"
        text = str(error.__cause__)
        assert "Traceback" in text and "in raise_as" in text and "the end" in text
    else:
        assert type(error) is ValueError and str(error).startswith("yyy")
        assert "were cut" in str(error) and len(str(error)) < 1 << 20


@pytest.fixture(scope="module", params=[0, 1], ids=["threads", "processes"])
def whole_coordinator(request):
    with muster.LocalCluster(workers=1, processes=request.param) as cluster:
        yield muster.ClusterCoordinator(cluster, timeout=60)


@pytest.mark.parametrize("data", [b"", b"\x80nonsense", b"its own form",
                                  pickle.dumps(7, 4), pickle.dumps((None, 1, 2, 3), 4)])
def test_data_of_other_languages_is_no_matter(data):
    error = errors._from_fields(3, "bad input", 1, "/job:worker/task:0", "f", 7, 1, "",
                                data)
    assert type(error) is errors.InvalidArgumentError
    assert str(error).startswith("bad input")


@pytest.mark.parametrize("how", ["called", "json", "own", "deep", "huge"])
def test_exceptions_come_whole(whole_coordinator, how):
    value = whole_coordinator.schedule(raise_as, (how,))
    with pytest.raises(Exception) as caught:
        value.fetch(60)
    check_whole(how, caught.value)
    dependent = whole_coordinator.schedule(len, (value,), raise_on_fetch=True)
    with pytest.raises(muster.InputError) as of_input:
        dependent.fetch(60)
    check_whole(how, of_input.value.__cause__)
    with pytest.raises(Exception) as raised:
        whole_coordinator.join(60)
    check_whole(how, raised.value)
    check_whole(how, whole_coordinator.errors()[0])
    own = whole_coordinator.schedule(raise_as, (how,), raise_on_fetch=True)
    with pytest.raises(Exception) as caught:
        own.fetch(60)
    check_whole(how, caught.value)
    dependent = whole_coordinator.schedule(len, (own,), raise_on_fetch=True)
    with pytest.raises(muster.InputError) as of_input:
        dependent.fetch(60)
    check_whole(how, of_input.value.__cause__)
    assert isinstance(of_input.value.__cause__.__cause__, muster.RemoteTraceback)
