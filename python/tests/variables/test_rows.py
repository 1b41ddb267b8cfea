"""Rows of variables: slices and lists, from the program and from functions."""

import numpy as np
import pytest

import muster

ROWS = np.arange(30, dtype="float32").reshape(10, 3)


@pytest.fixture
def variable(shared_cluster, request):
    """Ten rows in five shards on two servers."""
    return muster.Variable(ROWS, name=request.node.name, shards=5, node=shared_cluster)


@pytest.mark.parametrize("key", [
    np.s_[2:7], np.s_[:], np.s_[5:5], np.s_[8:100], np.s_[-3:], np.s_[7:2], np.s_[::3],
    np.s_[::-1], np.s_[8:2:-2], 0, 9, -1, np.int64(4), np.s_[2:7, 1], np.s_[3, 1],
    np.s_[3, -2:], np.s_[::2, ::2], np.s_[..., 0], np.s_[None], np.s_[...],
    [4, 1, 4], [-1, 0], [], np.array([[9, 0], [3, 3]]), ROWS[:, 0] > 13,
    np.s_[[1, 2], [0, 2]], np.s_[[1, 8], 1:], np.s_[2, None], (),
], ids=repr)
def test_an_index_is_that_of_an_array(variable, key):
    read = variable[key]
    assert np.array_equal(read, ROWS[key]) and np.shape(read) == np.shape(ROWS[key])


@pytest.mark.parametrize("key, kind", [
    (10, IndexError), (-11, IndexError), ([0, 10], IndexError), ([-11], IndexError),
    (np.s_[::0], ValueError), ([0.5], TypeError), ("a", TypeError),
    (np.ones(9, bool), IndexError), (np.s_[0, 3], IndexError),
])
def test_indices_that_are_none(variable, key, kind):
    with pytest.raises(kind):
        variable[key]


def test_a_variable_is_not_walked(variable):
    with pytest.raises(TypeError, match="not iterable"):
        iter(variable)


def test_rows_are_gathered_in_order(variable):
    assert (variable.gather([9, 0, 9, 4]) == ROWS[[9, 0, 9, 4]]).all()
    assert (variable.sparse_read(np.array([[1, 2]], "i4")) == ROWS[[[1, 2]]]).all()
    assert variable.gather([]).shape == (0, 3)
    assert (variable.gather(7) == ROWS[7]).all()
    for wrong in ([10], [0, -1]):
        with pytest.raises(muster.errors.OutOfRangeError, match="expected 0 to 9"):
            variable.gather(wrong)


def test_rows_are_scattered(variable):
    expected = ROWS.copy()
    numbers, values = [9, 0, 9], np.arange(9, dtype="f4").reshape(3, 3)
    variable.scatter_add(muster.IndexedSlices(values, numbers))
    np.add.at(expected, numbers, values)
    assert (variable.read() == expected).all()
    variable.scatter_sub(numbers, values)
    assert (variable.read() == ROWS).all()
    variable.scatter_update(numbers, values)
    expected = ROWS.copy()
    expected[0], expected[9] = values[1], values[2]
    assert (variable.read() == expected).all()
    variable.scatter_update([1, 2], 7)
    variable.scatter_add(np.array([2], "u1"), [1, 2, 3])
    expected[1], expected[2] = 7, [8, 9, 10]
    assert (variable.read() == expected).all()
    variable.scatter_add([], np.zeros((0, 3)))
    assert variable.version() == 1


def test_ranges_are_written(variable):
    expected = ROWS.copy()
    variable.assign_rows(3, np.zeros((4, 3)))
    variable.add_rows(5, np.ones((5, 3), "f4"))
    expected[3:7] = 0
    expected[5:] += 1
    assert (variable.read() == expected).all()


@pytest.mark.parametrize("method, args, kind, words", [
    ("scatter_add", ([10], [[1, 2, 3]]), muster.errors.OutOfRangeError, "row 10"),
    ("scatter_add", ([-1], [[1, 2, 3]]), muster.errors.OutOfRangeError, "row -1"),
    ("scatter_add", ([[1]], [[1, 2, 3]]), ValueError, "expected one dimension"),
    ("scatter_add", ([1, 2], np.ones((3, 3))), ValueError, r"2 rows have .*\(3, 3\)"),
    ("scatter_add", ([1.0], [[1, 2, 3]]), TypeError, "numbered by integers"),
    ("scatter_update", ([1], [[1, 2]]), ValueError, "1 rows have the shape"),
    ("scatter_update", ([1], [[1, 1e300, 1]]), OverflowError, "out of range"),
    ("scatter_update", ([1], "abc"), TypeError, "got a str"),
    ("assign_rows", (8, np.ones((3, 3))), muster.errors.OutOfRangeError, "3 rows from 8"),
    ("assign_rows", (-1, np.ones((1, 3))), ValueError, "rows from -1"),
    ("add_rows", (0, np.ones(3)), ValueError, r"shape \(3,\)"),
    ("add_rows", (0.5, np.ones((1, 3))), TypeError, "integer"),
])
def test_wrong_rows_change_nothing(variable, method, args, kind, words):
    with pytest.raises(kind, match=words):
        getattr(variable, method)(*args)
    assert (variable.read() == ROWS).all()


def test_a_number_has_no_rows(shared_cluster, request):
    number = muster.Variable(5.0, name=request.node.name, node=shared_cluster)
    assert number[...] == 5 and number[()] == 5
    with pytest.raises(IndexError):
        number[0]
    for call in (lambda: number.gather([0]), lambda: number.scatter_add([0], [1])):
        with pytest.raises(ValueError, match="no rows"):
            call()


def test_truth_values_are_updated_and_not_added(shared_cluster, request):
    flags = muster.Variable(np.zeros(4, bool), name=request.node.name,
                            node=shared_cluster)
    flags.scatter_update([1, 3], True)
    assert flags[:].tolist() == [False, True, False, True]
    with pytest.raises(muster.errors.InvalidArgumentError, match="does not add"):
        flags.scatter_add([1], True)


def _train(variable, numbers):
    run = muster.current_run()
    assert variable[1:2].shape == variable.gather([1]).shape == (1, 3)
    run.scatter_add(variable, muster.IndexedSlices(np.ones((len(numbers), 3)), numbers))
    run.add_rows(variable, 8, np.ones((2, 3)))


def test_rows_of_a_closure_count_once_although_workers_are_killed(own_cluster, request):
    cluster = own_cluster(workers=2, ps=2)
    variable = muster.Variable(ROWS, name=request.node.name, shards=5, node=cluster)
    expected = ROWS.copy()
    with muster.ClusterCoordinator(cluster) as coordinator:
        for i in range(100):
            coordinator.schedule(_train, (variable, [i % 10, 7, 7]), effect_once=True)
            np.add.at(expected, [i % 10, 7, 7], 1)
            expected[8:] += 1
            if i == 50:
                cluster.kill("worker", 0)
        coordinator.join(60)
    assert (variable.read() == expected).all()


def test_rows_count_once_although_a_server_is_killed(own_cluster, request):
    """Scatters go on while a server dies, and its partitions have another primary."""
    with own_cluster(workers=1, ps=2, backups=1) as cluster:
        variable = muster.Variable(np.zeros((1000, 64)), name=request.node.name,
                                   shards=8, node=cluster, timeout=60)
        expected = np.zeros((1000, 64))
        random = np.random.default_rng(1)
        for i in range(60):
            numbers = random.integers(0, 1000, 300)
            variable.scatter_add(numbers, np.ones((300, 64)), timeout=60)
            np.add.at(expected, numbers, 1)
            if i == 20:
                cluster.kill("ps", 1)
        assert (variable.read(timeout=60) == expected).all()
        assert (variable.gather(numbers) == expected[numbers]).all()


def test_a_closure_replaces_rows(coordinator, variable):
    def replace():
        run = muster.current_run()
        run.scatter_update(variable, [0, 9], np.zeros((2, 3)))
        run.assign_rows(variable, 4, np.ones((1, 3)))
        with pytest.raises(muster.errors.OutOfRangeError):
            run.scatter_update(variable, [10], np.zeros((1, 3)))

    coordinator.schedule(replace).fetch(30)
    expected = ROWS.copy()
    expected[[0, 9]] = 0
    expected[4] = 1
    assert (variable.read() == expected).all()


def test_rows_from_an_executor_process(own_cluster, request):
    cluster = own_cluster(workers=1, ps=2, processes=1)
    variable = muster.Variable(ROWS, name=request.node.name, shards=5, node=cluster)

    def in_process():
        from muster import _process

        assert _process.serves
        read = variable[2:4].tolist()
        variable.scatter_add([9], [[1, 1, 1]])
        muster.current_run().scatter_add(variable, [0, 0], np.ones((2, 3)))
        muster.current_run().assign_rows(variable, 1, np.zeros((1, 3)))
        return read

    with muster.ClusterCoordinator(cluster) as coordinator:
        assert coordinator.schedule(in_process).fetch(60) == ROWS[2:4].tolist()
    expected = ROWS.copy()
    expected[9] += 1
    expected[0] += 2
    expected[1] = 0
    assert (variable.read() == expected).all()
