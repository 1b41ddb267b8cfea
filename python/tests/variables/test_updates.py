"""Rows that are lowered, raised, multiplied and divided; elements by their numbers."""

import numpy as np
import pytest

import muster
from muster import errors

JOIN = {"min": np.minimum, "max": np.maximum, "mul": np.multiply, "div": np.divide}


@pytest.fixture
def name(request):
    return request.node.name


@pytest.fixture
def rows(shared_cluster, name):
    return muster.Variable(np.arange(12, dtype=np.float32).reshape(6, 2), name=name,
                           shards=2, node=shared_cluster)


@pytest.mark.parametrize("how", sorted(JOIN))
def test_rows_are_updated(rows, how):
    expected = rows.numpy()
    indices, values = [5, 0, 5], np.array([[9, 4], [-3, 2], [0.5, 20]], np.float32)
    getattr(rows, f"scatter_{how}")(muster.IndexedSlices(values, indices))
    JOIN[how].at(expected, indices, values)
    assert (rows.numpy() == expected).all()
    getattr(rows, f"scatter_{how}")([1], 2)     # as NumPy broadcasts it
    JOIN[how].at(expected, [1], 2)
    assert (rows.numpy() == expected).all()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
def test_dtypes(shared_cluster, name, dtype):
    variable = muster.Variable(np.full(4, 100, dtype), name=name, node=shared_cluster)
    variable.scatter_min([0], 7)
    variable.scatter_max([1], 101)
    variable.scatter_mul([2], 1)
    variable.scatter_div([3], 8)
    fraction = 12.5 if dtype.startswith("float") else 12
    assert variable.numpy().tolist() == [7, 101, 100, fraction]


def test_updates_that_are_refused(shared_cluster, rows, name):
    numbers = muster.Variable(np.ones(3, np.int32), name=name + "-int",
                              node=shared_cluster)
    truths = muster.Variable(np.ones(3, bool), name=name + "-bool", node=shared_cluster)
    with pytest.raises(errors.InvalidArgumentError, match="divided by 0"):
        numbers.scatter_div([1], 0)
    with pytest.raises(errors.InvalidArgumentError, match="bool, which does not"):
        truths.scatter_max([1], True)
    with pytest.raises(errors.OutOfRangeError, match="row 6"):
        rows.scatter_mul([6], 1)
    assert numbers.numpy().tolist() == [1, 1, 1]


def update(variable):
    run = muster.current_run()
    run.scatter_mul(variable, [0, 0], np.full((2, 2), 2, np.float32))
    run.scatter_max(variable, [1], [[7, 7]])
    run.scatter_min(variable, [2], [[-1, 50]])
    run.scatter_div(variable, muster.IndexedSlices([[2, 2]], [3]))


@pytest.mark.parametrize("processes", [None, 1])
def test_updates_of_functions_count_once(coordinator, name, processes):
    """In a thread of a worker, and in a process of one."""
    def check(coordinator):
        variable = muster.Variable(np.ones((4, 2), np.float32), name=name, shards=2,
                                   node=coordinator)
        coordinator.fetch(coordinator.schedule(update, (variable,), effect_once=True), 60)
        assert variable.numpy().tolist() == [[4, 4], [7, 7], [-1, 1], [0.5, 0.5]]

    if processes is None:
        check(coordinator)
        return
    with muster.LocalCluster(workers=1, ps=1, processes=processes) as cluster:
        with muster.ClusterCoordinator(cluster) as made:
            check(made)


# ---- elements ----

def test_elements_are_read(rows):
    whole = rows.numpy()
    assert rows.gather_nd([[5, 1], [0, 0], [5, 1]]).tolist() == [11, 0, 11]
    assert rows.gather_nd([[[2]], [[1]]]).tolist() == [[whole[2].tolist()],
                                                       [whole[1].tolist()]]
    assert rows.gather_nd([3, 1]) == 7


@pytest.mark.parametrize("how, join", [
    ("add", np.add), ("sub", np.subtract), ("min", np.minimum), ("max", np.maximum)])
def test_elements_are_written(rows, how, join):
    expected = rows.numpy()
    places = np.array([[5, 1], [0, 0], [5, 1], [5, 0]])
    values = np.array([3, -4, 20, 1], np.float32)
    getattr(rows, f"scatter_nd_{how}")(places, values)
    join.at(expected, tuple(places.T), values)
    assert (rows.numpy() == expected).all()
    getattr(rows, f"scatter_nd_{how}")([[[2]], [[3]]], [[[1, 2]], [[30, 4]]])
    join.at(expected, [2, 3], [[1, 2], [30, 4]])
    assert (rows.numpy() == expected).all()


def test_integers_are_raised(shared_cluster, name):
    variable = muster.Variable(np.full((2, 2), -5, np.int8), name=name,
                               node=shared_cluster)
    variable.scatter_nd_max([[0, 1]], [3])
    variable.scatter_nd_min([[1, 0]], [-7])
    assert variable.numpy().tolist() == [[-5, 3], [-7, -5]]


def test_rows_are_replaced(rows):
    rows.scatter_nd_update([[1], [4]], [[1, 1], [4, 4]])
    assert rows.gather([1, 4]).tolist() == [[1, 1], [4, 4]]
    with pytest.raises(ValueError, match="whole rows are replaced"):
        rows.scatter_nd_update([[1, 0]], [1])


@pytest.mark.parametrize("indices, values, error, words", [
    ([[6]], [[1, 1]], errors.OutOfRangeError, r"no \[6\]"),
    ([[0, 2]], [1], errors.OutOfRangeError, r"no \[0, 2\]"),
    ([[0, -1]], [1], errors.OutOfRangeError, r"no \[0, -1\]"),
    ([[0, 0, 0]], [1], ValueError, "a last dimension of 1 to 2"),
    ([[0, 0]], [1, 2], ValueError, "what is written there has the shape"),
    ([[0.5]], [1], TypeError, "numbered by integers")])
def test_elements_that_are_refused(rows, indices, values, error, words):
    with pytest.raises(error, match=words):
        rows.scatter_nd_add(indices, values)
