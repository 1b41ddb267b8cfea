"""Requests of variables that nobody waits for."""

import asyncio
import concurrent.futures
import contextlib
import gc
import os
import signal
import threading

import numpy as np
import pytest

import muster
from conftest import wait_until
from muster import errors


@pytest.fixture
def name(request):
    return request.node.name


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


@contextlib.contextmanager
def paused_variable(own_cluster, initial=(1.0, 2.0)):
    """A variable whose only server does not answer."""
    with own_cluster(workers=1, ps=1) as cluster:
        variable = muster.Variable(np.array(initial, np.float32), name="paused",
                                   node=cluster)
        pid = cluster.pid("ps", 0)
        os.kill(pid, signal.SIGSTOP)
        assert wait_until(lambda: is_stopped(pid))
        try:
            yield variable, cluster, lambda: os.kill(pid, signal.SIGCONT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_each_gives_what_the_call_that_waits_gives(shared_cluster, name):
    v = muster.Variable(np.zeros((4, 2), np.float32), name=name, node=shared_cluster)
    assert v.assign_async(np.ones((4, 2))).result(30) is None
    assert v.assign_add_async(2.0).result(30) is None
    assert v.apply_gradient_async(np.ones((4, 2)), 0.5).result(30) is None
    assert v.scatter_add_async([0, 0], 1.0).result(30) is None
    assert v.scatter_add_async(muster.IndexedSlices([[1.0, 0.0]], [3])).result(30) is None
    assert v.read_async().result(30).tolist() == [[4.5, 4.5], [2.5, 2.5], [2.5, 2.5],
                                                  [3.5, 2.5]]
    assert v.read_async().result(30).dtype == np.float32
    assert v.gather_async([[3], [0]]).result(30).tolist() == [[[3.5, 2.5]], [[4.5, 4.5]]]
    assert v.gather_async([]).result(30).shape == (0, 2)
    v.apply_gradient_async(np.ones((4, 2)), muster.optimizers.SGD(1.0)).result(30)
    assert v.read()[1].tolist() == [1.5, 1.5]


def test_a_number_and_bfloat16(shared_cluster, name):
    number = muster.Variable(7, name=name + "1", dtype="int64", node=shared_cluster)
    assert number.read_async().result(30) == 7
    assert number.read_async().result(30).shape == ()
    half = muster.Variable([1.5], name=name + "2", dtype="float16", node=shared_cluster)
    assert half.read_async().result(30).dtype == np.float16


def test_a_read_may_be_old(shared_cluster, name):
    v = muster.Variable([1.0], name=name, node=shared_cluster)
    other = muster.Variable(name=name, shape=(1,), dtype="float64", node=shared_cluster)
    assert v.read_async(max_age=60).result(30) == 1
    other.assign([2.0])
    assert v.read_async(max_age=60).result(30) == 1
    assert v.read_async(max_age=0).result(30) == 2
    v.assign_add_async(1.0).result(30)
    assert v.read_async(max_age=60).result(30) == 3


def test_many_are_under_way_without_threads(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        v.read_async()      # the thread for all ends is there
        before = threading.active_count()
        futures = [v.read_async() for _ in range(3000)]
        assert threading.active_count() == before
        assert not any(future.done() for future in futures)
        resume()
        assert all(future.result(60).tolist() == [1, 2] for future in futures)


def test_in_asyncio(shared_cluster, name):
    v = muster.Variable(np.zeros(3), name=name, node=shared_cluster)

    async def main():
        await asyncio.gather(*(v.assign_add_async(1.0) for _ in range(200)))
        with pytest.raises(errors.OutOfRangeError):
            await v.gather_async([3])
        return await v.read_async()

    assert asyncio.run(main()).tolist() == [200, 200, 200]


def test_by_many_threads(shared_cluster, name):
    v = muster.Variable(np.zeros(2), name=name, node=shared_cluster)

    def add(_):
        for future in [v.assign_add_async(1.0) for _ in range(50)]:
            future.result(60)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(8)))
    assert v.read().tolist() == [400, 400]


def test_arrays_stay_until_the_end(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        added = v.assign_add_async(np.ones(2, np.float32))
        gc.collect()
        resume()
        assert added.result(60) is None
        assert v.read().tolist() == [2, 3]


def test_a_cancelled_one_ends_by_itself(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        read, added = v.read_async(), v.assign_add_async(1.0)
        assert read.cancel() and added.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            read.result(30)
        del read
        gc.collect()
        resume()
        assert wait_until(lambda: v.read(60).tolist() == [2, 3])
        assert added.cancelled()


def test_ends_by_the_timeout(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        late = v.read_async()
        with pytest.raises(errors.DeadlineExceededError, match="paused.*ps/task:0"):
            v.read_async(0.2).result(30)
        with pytest.raises(errors.DeadlineExceededError):
            v.assign_async(1.0, timeout=0.2).result(30)
        assert not late.done()
        resume()
        assert late.result(60).tolist() == [1, 2]


def test_a_killed_server_ends_each_one(own_cluster):
    with paused_variable(own_cluster) as (v, cluster, _):
        futures = [v.read_async(20.0) if i % 2 else v.assign_add_async(1.0, 20.0)
                   for i in range(100)]
        os.kill(cluster.pid("ps", 0), signal.SIGKILL)
        for future in futures:
            try:
                future.result(60)
            except (errors.UnavailableError, errors.DeadlineExceededError,
                    errors.NotFoundError) as error:
                assert "paused" in str(error)


def test_too_many_are_refused(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        rows = np.zeros(1 << 22, np.int64)      # 64 MiB with their places
        begun = []
        with pytest.raises(errors.WouldBlockError, match="wait for some"):
            for _ in range(5):
                begun.append(v.gather_async(rows))
        assert len(begun) == 4
        assert all(future.cancel() for future in begun)


def test_a_closed_variable_ends_what_has_begun(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        future = v.read_async()
        v.close()
        with pytest.raises(errors.ClosedError):
            v.read_async()
        del v
        gc.collect()
        resume()
        assert future.result(60).tolist() == [1, 2]


def test_a_closed_node_ends_them(own_cluster):
    with paused_variable(own_cluster) as (v, _, resume):
        future = v.read_async()
        v.node.close(1.0)
        with pytest.raises(errors.ClosedError):
            future.result(30)
        with pytest.raises(errors.ClosedError):
            v.read_async().result(30)


def test_what_is_refused(shared_cluster, name):
    v = muster.Variable(np.zeros(3, np.float32), name=name, node=shared_cluster)
    with pytest.raises(TypeError, match="None is no value"):
        v.assign_async(None)
    with pytest.raises(ValueError, match="has the shape"):
        v.assign_add_async([1.0, 2.0])
    with pytest.raises(TypeError, match="numbered by integers"):
        v.gather_async([0.5])
    with pytest.raises(errors.OutOfRangeError):
        v.scatter_add_async([3], 1.0).result(30)
    with pytest.raises(errors.InvalidArgumentError):
        v.apply_gradient_async(np.full(3, np.nan), 1.0).result(30)


def add_and_read(variable):
    first = variable.assign_add_async(1.0)
    first.result(30)
    return variable.read_async().result(30).tolist(), first.done()


def test_in_a_worker_s_function(shared_cluster, name):
    v = muster.Variable(np.zeros(2), name=name, node=shared_cluster)
    coordinator = muster.ClusterCoordinator(shared_cluster)
    assert coordinator.schedule(add_and_read, (v,)).fetch(60) == ([1, 1], True)
