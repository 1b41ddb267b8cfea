"""muster.Executor beside what a concurrent.futures.Executor promises."""

import asyncio
import concurrent.futures as cf
import functools
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import jobs_executor as jobs
import muster
from muster import errors
from muster.executor import BrokenClusterExecutor


@pytest.fixture
def executor(coordinator):
    with muster.Executor(coordinator) as executor:
        yield executor


def test_a_result_and_keyword_arguments(executor):
    assert executor.submit(pow, 2, 8).result(20) == 256
    assert executor.submit(jobs.both, 1, fn=2, self=3).result(20) == ((1,), {"fn": 2,
                                                                           "self": 3})


def test_it_is_an_executor_and_gives_its_futures(executor):
    future = executor.submit(abs, -1)
    assert isinstance(executor, cf.Executor) and isinstance(future, cf.Future)
    assert cf.wait([future], 20).done == {future} and not future.running()


def test_an_exception_is_of_its_class_with_the_traceback_as_cause(executor):
    with pytest.raises(ZeroDivisionError) as caught:
        executor.submit(jobs.divide, 1, 0).result(20)
    assert isinstance(caught.value.__cause__, muster.RemoteTraceback)
    assert "in divide" in str(caught.value.__cause__)


def test_a_large_exception_keeps_its_class_and_arguments(executor):
    error = executor.submit(jobs.fail, "x" * 100000).exception(20)
    assert type(error) is ValueError and len(error.args[0]) == 100000


def test_an_exception_that_cannot_be_pickled_keeps_its_class_and_words(executor):
    error = executor.submit(jobs.fail_with_lock).exception(20)
    assert type(error) is RuntimeError and str(error) == "held"
    assert "fail_with_lock" in str(error.__cause__)


def test_an_exception_is_of_its_future_alone(coordinator, executor):
    good = [executor.submit(jobs.wait_and_give, 0.05, i) for i in range(8)]
    assert isinstance(executor.submit(jobs.divide, 1, 0).exception(20), ZeroDivisionError)
    assert [future.result(20) for future in good] == list(range(8))
    coordinator.join(20)
    assert coordinator.errors() == []


def test_quick_functions_do_not_wait_behind_long_ones(executor):
    for _ in range(2):
        long = [executor.submit(jobs.wait_and_give, 2, i)
                for i in range(3)]                  # the cluster has 4 slots
        quick = [executor.submit(jobs.give, i) for i in range(100)]
        assert [future.result(20) for future in quick] == list(range(100))
        assert not any(future.done() for future in long)
        assert [future.result(20) for future in long] == [0, 1, 2]


def test_futures_outlive_the_error_of_a_scheduled_closure(coordinator, executor):
    futures = [executor.submit(jobs.wait_and_give, 0.01, i) for i in range(100)]
    coordinator.schedule(jobs.divide, (1, 0))
    with pytest.raises(ZeroDivisionError):
        coordinator.join(30)
    assert [future.result(30) for future in futures] == list(range(100))


def test_a_future_as_an_argument_is_refused_with_words(executor):
    error = executor.submit(pow, executor.submit(abs, 2), 2).exception(20)
    assert isinstance(error, TypeError) and "a Future cannot be sent" in str(error)


def test_what_cannot_be_pickled_is_an_error_of_its_future(executor):
    error = executor.submit(abs, threading.Lock()).exception(20)
    assert isinstance(error, (TypeError, pickle.PicklingError))
    error = executor.submit(threading.Lock).exception(20)
    assert isinstance(error, (TypeError, pickle.PicklingError))


def test_what_cannot_be_pickled_is_named(coordinator):
    lock = threading.Lock()

    def locked():
        return lock

    holder = jobs.Thing()
    holder.lock = lock
    for fn, args, kwargs, place in (
            (locked, (), None, "variable 'lock' of function '"),
            (abs, (1, lock), None, "(in argument 2)"),
            (abs, ({"a": [0, lock]},), None, "(in argument 1, key 'a', item 1)"),
            (abs, (holder,), None, "(in argument 1, attribute 'lock')"),
            (abs, (locked,), None, "(in argument 1, variable 'lock' of function '"),
            (abs, (), {"x": lock}, "(in argument 'x')")):
        with pytest.raises(TypeError) as info:
            coordinator.schedule(fn, args, kwargs)
        assert "cannot pickle '_thread.lock' object" in str(info.value)
        assert place in str(info.value)


def test_a_function_has_its_own_name_in_errors(own_cluster):
    coordinator = muster.ClusterCoordinator(own_cluster(workers=1))
    with muster.Executor(coordinator, attempts=1) as executor:
        error = executor.submit(jobs.end_process, "kill").exception(60)
    assert isinstance(error, errors.AbortedError)
    assert 'function "end_process" lost its worker' in str(error)


def test_functions_of_many_kinds(executor):
    k = 3
    calls = [(jobs.Multiplier(4), 12), (functools.partial(pow, 2), 8),
             (lambda x: x * k, 9), (jobs.Multiplier(5).times, 15), (abs, 3), (float, 3.0)]
    for _ in range(3):
        assert [executor.submit(fn, 3).result(20) for fn, _ in calls] == [
            expected for _, expected in calls]


def test_a_callable_with_a_state_is_sent_as_it_is_now(executor):
    multiplier = jobs.Multiplier(2)
    first = executor.submit(multiplier, 10).result(20)
    multiplier.k = 7
    assert (first, executor.submit(multiplier, 10).result(20)) == (20, 70)


def test_what_waits_is_computed_as_it_was_submitted(coordinator, tmp_path):
    path = tmp_path / "go"
    data, items, factor = np.zeros(100_000), [0], 1

    def scaled(x):
        return x * factor

    with muster.Executor(coordinator, max_workers=1) as executor:
        executor.submit(jobs.wait_for, str(path))
        futures = []
        for i in range(5):
            data[:], items[0], factor = i, i, i
            futures.append([executor.submit(call, *args) for call, *args in (
                (jobs.give, data), (jobs.give, items), (scaled, 10))])
        data[:], items[0], factor = -1, -1, -1
        assert not any(future.done() for three in futures for future in three)
        path.touch()
        for i, (array, given, product) in enumerate(futures):
            assert (array.result(20) == i).all()
            assert (given.result(20), product.result(20)) == ([i], 10 * i)


def test_what_waits_and_cannot_be_pickled_fails_at_once(coordinator, tmp_path):
    path = tmp_path / "go"
    with muster.Executor(coordinator, max_workers=1) as executor:
        first = executor.submit(jobs.wait_for, str(path))
        error = executor.submit(abs, threading.Lock()).exception(0)
        assert isinstance(error, (TypeError, pickle.PicklingError))
        assert not first.done()
        path.touch()
        assert executor.submit(abs, -1).result(20) == 1


@pytest.mark.parametrize("chunksize", [1, 3, 100])
@pytest.mark.parametrize("buffersize", [None, 1, 4])
def test_map_gives_results_in_order(executor, chunksize, buffersize):
    expected = [pow(i, 2) for i in range(20)]
    for given in (range(20), list(range(20)), iter(range(20)), np.arange(20)):
        assert list(executor.map(jobs.square, given, chunksize=chunksize,
                                 buffersize=buffersize)) == expected
    assert list(executor.map(pow, range(20), [2] * 20, chunksize=chunksize,
                             buffersize=buffersize)) == expected
    assert list(executor.map(jobs.Multiplier(2), range(5), chunksize=chunksize)) == [
        0, 2, 4, 6, 8]


def test_map_takes_from_its_iterable_no_more_than_the_buffer(executor):
    taken = []
    results = executor.map(abs, (taken.append(i) or i for i in range(100)), buffersize=3)
    assert len(taken) == 3
    assert next(results) == 0 and len(taken) == 4
    results.close()


def test_map_raises_where_the_call_was_and_at_the_timeout(executor):
    results = executor.map(jobs.divide, [4, 4, 4], [2, 0, 4])
    assert next(results) == 2.0
    with pytest.raises(ZeroDivisionError):
        next(results)
    with pytest.raises(cf.TimeoutError):
        list(executor.map(time.sleep, [0, 3], timeout=0.2))


@pytest.mark.parametrize("options, error", [
    ({"chunksize": 0}, ValueError), ({"buffersize": 0}, ValueError),
    ({"buffersize": 1.5}, ValueError)])
def test_wrong_options_of_map(executor, options, error):
    with pytest.raises(error):
        executor.map(abs, [1], **options)


def test_wrong_use(coordinator):
    for arguments, error in [
            (dict(max_workers=0), ValueError), (dict(max_workers=-1), ValueError),
            (dict(cluster=2, max_workers=2), TypeError),
            (dict(cluster=object()), TypeError),
            (dict(cluster=coordinator, threads=2), TypeError),
            (dict(initializer=3), TypeError)]:
        with pytest.raises(error):
            muster.Executor(**arguments)
    with muster.Executor(coordinator) as executor:
        with pytest.raises(TypeError):
            executor.submit(3)
        with pytest.raises(TypeError):
            executor.submit()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, 1)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.map(abs, [1])
    with pytest.raises(TypeError):
        muster.future_of(3)


# ---- cancelling ----

def test_what_waits_is_cancelled_and_what_runs_is_not(coordinator):
    with muster.Executor(coordinator, max_workers=1) as executor:
        first = executor.submit(time.sleep, 0.3)
        second = executor.submit(time.sleep, 0.3)
        assert first.running() and not second.running()
        assert second.cancel() and second.cancelled() and not first.cancel()
        with pytest.raises(cf.CancelledError):
            second.result()
        assert first.result(20) is None


def test_shutdown_cancels_what_waits(coordinator):
    executor = muster.Executor(coordinator, max_workers=1)
    futures = [executor.submit(time.sleep, 0.1) for _ in range(20)]
    executor.shutdown(cancel_futures=True)
    assert futures[0].result(0) is None
    assert sum(future.cancelled() for future in futures) == 19


def test_a_function_that_runs_is_asked_to_stop(coordinator, tmp_path):
    path = str(tmp_path / "stopped")
    with muster.Executor(coordinator, cancel_running=True) as executor:
        future = executor.submit(jobs.run_until_cancelled, path)
        limit = time.monotonic() + 20
        while not os.path.exists(path + ".begun") and time.monotonic() < limit:
            time.sleep(0.01)
        assert future.cancel() and future.cancelled()
        while not os.path.exists(path) and time.monotonic() < limit:
            time.sleep(0.01)
        assert os.path.exists(path)


def test_callbacks_come_once_whatever_happens(executor):
    told = []
    futures = [executor.submit(pow, 2, 3), executor.submit(jobs.divide, 1, 0)]
    for future in futures:
        future.add_done_callback(told.append)
    muster.wait(futures, 20)
    limit = time.monotonic() + 10
    while len(told) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    assert sorted(map(id, told)) == sorted(map(id, futures))
    futures[0].add_done_callback(told.append)
    assert told[2] is futures[0]


# ---- waiting ----

def test_as_completed_and_wait_take_remote_values(coordinator, executor):
    values = [coordinator.schedule(jobs.wait_and_give, (0.05 * i, i)) for i in range(3)]
    futures = [executor.submit(jobs.wait_and_give, 0, i) for i in range(3)]
    seen = list(muster.as_completed([*values, *futures, *values], timeout=20))
    assert len(seen) == 6 and set(seen) == {*values, *futures}
    assert [item for item in seen if item in values] == values
    done, not_done = muster.wait(values, timeout=20)
    assert (done, not_done) == (set(values), set())
    late = coordinator.schedule(time.sleep, (0.5,))
    done, not_done = muster.wait([late, values[0]], return_when=cf.FIRST_COMPLETED)
    assert (done, not_done) == ({values[0]}, {late})
    with pytest.raises(cf.TimeoutError):
        list(muster.as_completed([late], timeout=0.01))


def test_futures_are_awaited(executor, coordinator):
    async def main():
        loop = asyncio.get_running_loop()
        assert await executor.submit(pow, 2, 5) == 32
        assert await asyncio.wrap_future(executor.submit(pow, 2, 6)) == 64
        assert await loop.run_in_executor(executor, pow, 2, 7) == 128
        assert await coordinator.schedule(jobs.square, (3,)) == 9
        assert await asyncio.gather(*[asyncio.wrap_future(executor.submit(jobs.square, i))
                                      for i in range(5)]) == [0, 1, 4, 9, 16]
        with pytest.raises(ZeroDivisionError):
            await executor.submit(jobs.divide, 1, 0)

    asyncio.run(main())


def raise_stop():
    raise StopIteration(5)


def test_a_future_of_a_stop_iteration_is_awaited(executor):
    async def main():
        await executor.submit(raise_stop)

    async def limited():
        await asyncio.wait_for(main(), 60)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(limited())


def test_cancelling_goes_both_ways(coordinator):
    async def main(executor):
        blocker = executor.submit(time.sleep, 0.3)
        future = executor.submit(time.sleep, 0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(future), 0.02)
        assert future.cancelled()
        future = executor.submit(time.sleep, 0)
        waits = asyncio.ensure_future(asyncio.wrap_future(future))
        await asyncio.sleep(0)
        assert future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        await blocker

    with muster.Executor(coordinator, max_workers=1) as executor:
        asyncio.run(main(executor))


def test_a_task_that_awaits_a_remote_value_cancels_it(coordinator, tmp_path):
    path = str(tmp_path / "stopped")

    async def main():
        value = coordinator.schedule(jobs.run_until_cancelled, (path,))
        while not os.path.exists(path + ".begun"):
            await asyncio.sleep(0.01)
        waits = asyncio.ensure_future(_awaited(value))
        await asyncio.sleep(0.01)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        return value

    value = asyncio.run(main())
    assert value.wait(20) and value.state == "aborted"


async def _awaited(value):
    return await value


# ---- workers that die ----

def test_what_ran_on_a_killed_worker_runs_elsewhere(own_cluster):
    cluster = own_cluster(workers=2)
    with muster.Executor(cluster) as executor:
        cluster.wait()
        futures = [executor.submit(jobs.wait_and_give, 0.02, i) for i in range(50)]
        cluster.kill("worker", 0)
        assert [future.result(60) for future in futures] == list(range(50))


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_function_that_ends_its_process_fails_alone(own_cluster, how):
    cluster = own_cluster(workers=2)
    with muster.Executor(cluster, attempts=2) as executor:
        bad = executor.submit(jobs.end_process, how)
        good = [executor.submit(jobs.square, i) for i in range(10)]
        assert isinstance(bad.exception(60), errors.AbortedError)
        assert [future.result(60) for future in good] == [i * i for i in range(10)]


@pytest.mark.parametrize("when", ["pickle", "unpickle"])
def test_objects_that_fail_on_their_way(executor, when):
    argument = jobs.FailsAt(when)
    with pytest.raises((ValueError, pickle.PicklingError)):
        executor.submit(jobs.give, argument).result(20)
    with pytest.raises((ValueError, pickle.PicklingError)):
        executor.submit(jobs.FailsAt, when).result(20)
    assert executor.submit(abs, -1).result(20) == 1


def test_a_closed_cluster_breaks_the_executor():
    cluster = muster.LocalCluster(workers=1)
    executor = muster.Executor(cluster)
    assert executor.submit(abs, -2).result(30) == 2
    cluster.close()
    with pytest.raises((cf.BrokenExecutor, cf.CancelledError)):
        executor.submit(abs, -2).result(30)
    with pytest.raises(cf.BrokenExecutor):
        executor.submit(abs, -2)
    executor.shutdown()


# ---- life ----

def test_an_initializer_is_called_before_anything_and_on_workers_that_return(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.Executor(cluster, initializer=jobs.initialize, initargs=(5,)) as executor:
        assert executor.submit(jobs.initialized).result(30) == 5
        cluster.kill("worker", 0)
        assert executor.submit(jobs.initialized).result(60) == 5


INITIALIZED_PROGRAM = """
import functools
import muster

model = None
scale = 1

def set_model(value):
    global model
    model = value

def initialize(value):
    global calls
    set_model(value)
    calls = 0

def predict(x):
    return model * x * scale

def count(_):
    global calls
    calls += 1
    return calls

def apply(fn, x):
    return fn(x)

class Predictor:
    def __call__(self, x):
        return predict(x)

if __name__ == "__main__":
    with muster.LocalCluster(workers=1) as cluster:
        with muster.Executor(cluster, initializer=initialize, initargs=(10,)) as executor:
            print(executor.submit(predict, 2).result(60),
                  executor.submit(apply, predict, 3).result(60),
                  executor.submit(functools.partial(predict, 4)).result(60),
                  executor.submit(Predictor(), 5).result(60),
                  list(executor.map(predict, range(4), chunksize=2)))
            later = []
            for scale in (1, 2, 3):
                later.append(executor.submit(lambda: predict(1)))
            print([future.result(60) for future in later])
            print([executor.submit(count, None).result(60) for _ in range(3)],
                  list(executor.map(count, range(4), chunksize=2)))
        with muster.Executor(cluster, initializer=initialize, initargs=(7,)) as executor:
            print(executor.submit(predict, 1).result(60))
    print(model)
"""


def test_functions_of_main_see_the_globals_that_an_initializer_assigns(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(INITIALIZED_PROGRAM)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                          timeout=120)
    assert done.stdout.splitlines() == [
        "20 30 40 50 [0, 10, 20, 30]", "[10, 20, 30]", "[1, 2, 3] [4, 5, 6, 7]", "21",
        "None"], done.stderr


def test_a_failing_initializer_breaks_the_executor(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.Executor(cluster, initializer=jobs.fail, initargs=("no",)) as executor:
        with pytest.raises(BrokenClusterExecutor, match="the initializer failed") as info:
            executor.submit(abs, 1).result(30)
        assert "no" in str(info.value)
        assert isinstance(info.value.__cause__, ValueError)
        with pytest.raises(cf.BrokenExecutor):
            executor.submit(abs, 1)


@pytest.mark.parametrize("how", ["exit", "kill"])
@pytest.mark.parametrize("processes", [0, 1])
def test_an_initializer_that_ends_its_process_breaks_the_executor(own_cluster, processes,
                                                                  how):
    cluster = own_cluster(workers=1, attempts_max=2,
                          **({"processes": 1} if processes else {}))
    with muster.Executor(cluster, initializer=jobs.end_process,
                         initargs=(how,)) as executor:
        futures = [executor.submit(abs, -i) for i in range(3)]
        for future in futures:
            with pytest.raises(BrokenClusterExecutor, match="initializer failed: per"):
                future.result(60)
        assert "python.build" not in str(futures[0].exception())
        with pytest.raises(cf.BrokenExecutor):
            executor.submit(abs, 1)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_failed_input_breaks_no_executor_with_an_initializer(own_cluster, processes):
    cluster = own_cluster(workers=1, **({"processes": 1} if processes else {}))
    coordinator = muster.ClusterCoordinator(cluster)
    failed = [coordinator.schedule(jobs.divide, (1, 0), raise_on_fetch=True),
              coordinator.create_per_worker_value(jobs.divide, (1, 0))]
    with muster.Executor(cluster, initializer=jobs.initialize, initargs=(5,)) as executor:
        for value in failed:
            assert isinstance(executor.submit(jobs.give, value).exception(30),
                              errors.InputError)
            assert executor.submit(jobs.initialized).result(30) == 5


def test_one_that_is_dropped_ends_when_its_work_is_done():
    executor = muster.Executor(1)
    future = executor.submit(jobs.wait_and_give, 0.1, 3)
    cluster = weakref.ref(executor._engine)
    del executor
    gc.collect()
    assert future.result(30) == 3
    limit = time.monotonic() + 20
    del future
    while cluster() is not None and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.05)
    assert cluster() is None


def test_nothing_is_held_once_a_future_is_done(executor):
    thing = jobs.Thing()
    reference = weakref.ref(thing)
    future = executor.submit(jobs.give_thing, thing)
    del thing
    result = future.result(20)
    limit = time.monotonic() + 10
    while reference() is not None and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.01)
    assert reference() is None
    del future
    given = weakref.ref(result)
    del result
    gc.collect()
    assert given() is None


def test_many_threads_submit(executor):
    def work(start):
        futures = [executor.submit(jobs.square, start + i) for i in range(100)]
        return sum(future.result(60) for future in futures)

    with cf.ThreadPoolExecutor(24) as threads:
        sums = list(threads.map(work, range(0, 2400, 100)))
    assert sum(sums) == sum(i * i for i in range(2400))


def test_ctrl_c_ends_a_wait(executor):
    future = executor.submit(time.sleep, 1.0)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        future.result(20)
    timer.join()
    assert future.result(20) is None


# ---- data that stays on workers ----

def test_scattered_data_is_used_at_any_depth(coordinator, executor):
    parts = muster.scatter([np.full(100000, i) for i in range(4)], coordinator)
    total = executor.submit(jobs.total, {"parts": [parts, (parts[3],)]}).result(30)
    assert total == 100000 * (0 + 1 + 2 + 3 + 3)
    named = coordinator.scatter({"a": 1, "b": [2, 3]})
    assert coordinator.gather({"x": [named, executor.submit(abs, -4)]}) == {
        "x": [{"a": 1, "b": [2, 3]}, 4]}
    assert coordinator.gather(coordinator.scatter((1, 2))) == (1, 2)


def test_broadcast_data_is_on_every_worker(coordinator, executor):
    everywhere = muster.scatter(np.arange(10), coordinator, broadcast=True)
    futures = [executor.submit(np.sum, everywhere) for _ in range(8)]
    assert [int(future.result(30)) for future in futures] == [45] * 8
    everywhere.close()
    with pytest.raises(TypeError):
        muster.scatter(1, coordinator, broadcast=True, worker=1)


def test_scattered_data_is_spread_over_the_workers(own_cluster):
    def where(item):
        return muster.current_run().worker

    cluster = own_cluster(workers=4)
    with muster.ClusterCoordinator(cluster) as coordinator:
        cluster.wait()
        for _ in range(3):
            items = []
            for i in range(8):      # each is there before the next one comes
                items.append(coordinator.scatter(i))
                items[-1].wait(30)
            places = [coordinator.schedule(where, (item,)).fetch(30) for item in items]
            assert sorted(places) == [0, 0, 1, 1, 2, 2, 3, 3]
        items = coordinator.scatter(list(range(100)))
        coordinator.join(30)
        places = [coordinator.schedule(where, (item,)).fetch(30) for item in items]
        assert {places.count(i) for i in range(4)} <= set(range(10, 50))


def test_scattered_data_is_put_again_when_its_worker_is_lost(own_cluster):
    cluster = own_cluster(workers=2)
    with muster.Executor(cluster) as executor:
        cluster.wait()
        data = muster.scatter(np.arange(100000), cluster)
        holder = executor.submit(jobs.where, data).result(30)
        cluster.kill("worker", holder)
        assert int(executor.submit(np.sum, data).result(60)) == 4999950000


def test_map_of_the_module_and_its_progress(coordinator):
    assert list(muster.map(jobs.square, range(10), cluster=coordinator, chunksize=4,
                           progress="squares")) == [i * i for i in range(10)]
    assert list(coordinator.map(pow, [2, 3], [3, 2])) == [8, 9]
    with coordinator.executor() as executor:
        futures = [executor.submit(jobs.square, i) for i in range(4)]
        assert {future.result() for future in muster.progress(futures)} == {0, 1, 4, 9}


# ---- on workers ----

def outer(kind):
    """Calls inside of a function on a worker, with an executor of its own."""
    coordinator = muster.ClusterCoordinator(muster.current_run().node)
    if kind == "map":
        return list(muster.map(jobs.square, range(40), cluster=coordinator))
    if kind == "joblib":
        import joblib

        from muster import joblib as _  # noqa: F401  (registers the backend)

        with joblib.parallel_config("muster", cluster=coordinator):
            return joblib.Parallel()(joblib.delayed(jobs.square)(i) for i in range(40))
    with muster.Executor(coordinator) as executor:
        return [future.result() for future in
                [executor.submit(jobs.square, i) for i in range(40)]]


@pytest.mark.parametrize("kind", ["submit", "map", "joblib"])
def test_an_executor_inside_of_a_function_ends(own_cluster, kind):
    if kind == "joblib":
        pytest.importorskip("joblib", reason="joblib is not installed")
    with muster.Executor(own_cluster(workers=3)) as executor:
        assert executor.submit(outer, kind).result(60) == [i * i for i in range(40)]
