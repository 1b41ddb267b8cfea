"""Tables in functions that run in processes of a worker: as in its threads."""

import os

import numpy as np
import pytest

import muster
from muster import errors, optimizers


@pytest.fixture(scope="module")
def cluster():
    with muster.LocalCluster(workers=1, ps=1, processes=2, heartbeat=0.2) as made:
        yield made


@pytest.fixture
def lanes(cluster):
    with muster.ClusterCoordinator(cluster) as coordinator:
        yield coordinator


@pytest.fixture
def name(request):
    return request.node.name


def push_ones(table, ids, alone=False):
    rows = table.lookup(ids)
    table.apply_gradients(ids, np.ones_like(rows))
    if alone:
        assert (table.lookup(ids) == rows).all(), "sent when the function returns"
    return os.getpid(), repr(table)


def test_a_function_pushes_once(cluster, lanes, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=cluster)
    ids = np.arange(10000)      # so many that they are in shared memory
    lanes.fetch(lanes.schedule(push_ones, (table, ids, True), effect_once=True), 60)
    futures = [lanes.schedule(push_ones, (table, ids), effect_once=True)
               for _ in range(5)]
    pids, names = zip(*lanes.fetch(futures, 60))
    assert set(names) == {repr(table)}
    assert cluster.pid("worker", 0) not in pids and os.getpid() not in pids
    assert (table.lookup(ids) == -6).all()


def fail_once(table, folder):
    table.apply_gradients([7], [[1.0, 1.0]])
    mark = os.path.join(folder, "failed")
    if not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(1)


def test_a_push_of_a_process_that_dies_does_not_count(cluster, lanes, name, tmp_path):
    table = muster.Table(name, dim=2, optimizer=1.0, node=cluster)
    lanes.fetch(lanes.schedule(fail_once, (table, str(tmp_path)), effect_once=True), 60)
    assert table.lookup([7]).tolist() == [[-1.0, -1.0]]


def make_and_delete(name):
    table = muster.Table(name, dim=2, initializer=("uniform", 1, 2), optimizer="adagrad")
    assert type(table.node).__name__ == "Node" and table.lookup([]).shape == (0, 2)
    table.delete([3])
    with pytest.raises(errors.FailedPreconditionError):
        muster.Table(name, dim=3)
    return table


def test_a_function_makes_a_table(cluster, lanes, name):
    with muster.ParameterServerStrategy(cluster).scope():
        table = lanes.fetch(lanes.schedule(make_and_delete, (name,)), 60)
        assert isinstance(table.optimizer, optimizers.Adagrad)
        rows = muster.Table(name, dim=2, initializer=("uniform", 1, 2),
                            optimizer="adagrad", existing=True).lookup([3, 4])
    assert 1 <= rows.min() < rows.max() <= 2 and (table.lookup([3, 4]) == rows).all()


def at_once(table, variable):
    rows = table.lookup_async([1]).result()
    table.apply_gradients_async([1], rows + 1).result()
    variable.assign_add_async(2).result()
    return variable.read_async().result()


def test_calls_that_do_not_wait(cluster, lanes, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=cluster)
    variable = muster.Variable(np.zeros(2, np.float32), name=name, node=cluster)
    assert lanes.fetch(lanes.schedule(at_once, (table, variable)), 60).tolist() == [2, 2]
    assert table.lookup([1]).tolist() == [[-1.0, -1.0]]


def bad_push(table):
    table.apply_gradients([1], [[float("nan"), 0.0]])


def test_errors_come_back(cluster, lanes, name):
    table = muster.Table(name, dim=2, node=cluster)
    with pytest.raises(errors.InvalidArgumentError, match="of id 1 is NaN"):
        lanes.fetch(lanes.schedule(bad_push, (table,)), 60)
