"""Look-ups and pushes that nobody waits for."""

import concurrent.futures
import contextlib
import gc
import os
import signal
import subprocess
import sys
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
def paused_table(own_cluster, **options):
    """A table whose only server does not answer."""
    with own_cluster(workers=1, ps=1) as cluster:
        table = muster.Table("paused", dim=2, node=cluster, **options)
        pid = cluster.pid("ps", 0)
        os.kill(pid, signal.SIGSTOP)
        assert wait_until(lambda: is_stopped(pid))
        try:
            yield table, lambda: os.kill(pid, signal.SIGCONT)
        finally:
            os.kill(pid, signal.SIGCONT)


def test_many_are_under_way_without_threads(own_cluster):
    with paused_table(own_cluster, initializer=3.0) as (table, resume):
        table.lookup_async([0])     # the thread for all ends is there
        before = threading.active_count()
        futures = [table.lookup_async([number]) for number in range(3000)]
        assert threading.active_count() == before
        assert not any(future.done() for future in futures)
        resume()
        assert all((future.result(60) == 3).all() for future in futures)


def test_arrays_are_the_callers_again_at_once(own_cluster):
    with paused_table(own_cluster, optimizer=1.0) as (table, resume):
        ids, gradients = np.arange(2), np.ones((2, 2), np.float32)
        pushed = table.apply_gradients_async(ids, gradients)
        ids[:], gradients[:] = 7, 100
        del ids, gradients
        gc.collect()
        resume()
        assert pushed.result(60) is None
        assert table.lookup([0, 1, 7]).tolist() == [[-1, -1], [-1, -1], [0, 0]]


def test_a_cancelled_one_ends_by_itself(own_cluster):
    with paused_table(own_cluster, optimizer=1.0) as (table, resume):
        looked_up = table.lookup_async(np.arange(1000))
        pushed = table.apply_gradients_async([1], [[1.0, 1.0]])
        assert looked_up.cancel() and pushed.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            looked_up.result(30)
        del looked_up
        gc.collect()
        resume()
        assert table.lookup([1], 60).shape == (1, 2)
        assert pushed.cancelled()


def test_ends_by_the_timeout(own_cluster):
    with paused_table(own_cluster) as (table, _):
        with pytest.raises(errors.DeadlineExceededError, match="paused"):
            table.lookup_async([1], 0.2).result(30)
        with pytest.raises(errors.DeadlineExceededError):
            table.apply_gradients_async([1], [[1.0, 1.0]], timeout=0.2).result(30)


def test_too_many_are_refused(own_cluster):
    with paused_table(own_cluster) as (table, resume):
        ids = np.arange(1 << 22)    # 32 MiB
        begun = []
        with pytest.raises(errors.WouldBlockError, match="wait for some"):
            for _ in range(9):
                begun.append(table.lookup_async(ids))
        assert len(begun) == 8
        assert all(future.cancel() for future in begun)


def test_a_closed_table_ends_what_has_begun(own_cluster):
    with paused_table(own_cluster, initializer=3.0) as (table, resume):
        future = table.lookup_async([1])
        table.close()
        resume()
        assert future.result(60).tolist() == [[3, 3]]
        with pytest.raises(errors.ClosedError):
            table.lookup_async([1])


def test_a_closed_node_ends_them(own_cluster):
    with paused_table(own_cluster) as (table, _):
        future = table.lookup_async([1])
        table.node.close(1.0)
        with pytest.raises(errors.ClosedError):
            future.result(30)


def test_what_is_refused(shared_cluster, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=shared_cluster)
    assert table.lookup_async([]).result(0).shape == (0, 2)
    assert table.apply_gradients_async([], []).result(0) is None
    with pytest.raises(TypeError, match="ids are integers"):
        table.lookup_async([0.5])
    with pytest.raises(ValueError, match="rows of 2 for each"):
        table.apply_gradients_async([1, 2], [[1.0]])
    with pytest.raises(errors.InvalidArgumentError, match="time 4294967296"):
        table.apply_gradients_async([1], [[1.0, 1.0]], time=1 << 32).result(30)
    with pytest.raises(errors.FailedPreconditionError, match="is trained with sgd"):
        table.apply_gradients_async([1], [[1.0, 1.0]], optimizer="adam").result(30)


def test_bags(shared_cluster, name):
    table = muster.Table(name, dim=2, optimizer=1.0, initializer=("uniform", -1, 1),
                         node=shared_cluster)
    ids, offsets = np.arange(500), np.arange(0, 500, 2)
    weights = np.linspace(-1, 1, 500, dtype=np.float32)
    for combiner in ("sum", "mean", "sqrtn"):
        how = {"offsets": offsets, "combiner": combiner, "weights": weights}
        expected = table.lookup(ids, **how)
        assert (table.lookup_async(ids, **how).result(60) == expected).all()
    assert table.lookup_async([], offsets=[0, 0]).result(60).tolist() == [[0, 0]] * 2
    assert table.lookup_async([], offsets=[]).result(0).shape == (0, 2)
    before = table.lookup([1, 2])
    pushed = table.apply_gradients_async([1, 2], [[2.0, 4.0]], offsets=[0])
    assert pushed.result(60) is None
    assert np.allclose(before - table.lookup([1, 2]), [[1, 2], [1, 2]])
    with pytest.raises(ValueError, match="rows of bags are float32"):
        table.lookup_async([1], offsets=[0], dtype="float16")
    with pytest.raises(errors.InvalidArgumentError, match="before the first bag"):
        table.lookup_async([1, 2], offsets=[1]).result(60)


def test_many_bags_are_under_way(own_cluster):
    with paused_table(own_cluster, initializer=3.0) as (table, resume):
        ids, offsets = np.arange(6), np.array([0, 2])
        futures = [table.lookup_async(ids, offsets=offsets, combiner="sum")
                   for _ in range(1000)]
        ids[:], offsets[:] = 9, 0
        del ids, offsets
        gc.collect()
        assert not any(future.done() for future in futures)
        resume()
        assert all(future.result(60).tolist() == [[6, 6], [12, 12]] for future in futures)


def test_pushes_have_their_time(shared_cluster, name):
    table = muster.Table(name, dim=1, optimizer=1.0, eviction="lru",
                         node=shared_cluster)
    for id, day in ((1, 100), (2, 101), (1, 102)):
        table.apply_gradients_async([id], [[1.0]], time=day).result(60)
    table.expire(102)
    assert table.lookup([1, 2])[:, 0].tolist() == [-2, 0]


def test_a_process_ends_without_them():
    program = ("import muster\n"
               "cluster = muster.LocalCluster(workers=1, ps=1)\n"
               "table = muster.Table('emb', dim=4, node=cluster)\n"
               "futures = [table.lookup_async([i]) for i in range(5000)]")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
