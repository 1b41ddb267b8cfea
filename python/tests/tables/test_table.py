"""Embedding tables from Python."""

import numpy as np
import pytest

import muster
from muster import errors


@pytest.fixture
def name(request):
    return request.node.name


def test_rows_are_made_by_gradients(shared_cluster, name):
    with muster.Table(name, dim=3, optimizer=1.0, node=shared_cluster) as table:
        ids = np.array([[5, -1], [5, 1 << 40]])
        assert table.lookup(ids).shape == (2, 2, 3)
        assert not table.lookup(ids).any()
        table.apply_gradients(ids, np.ones((2, 2, 3), np.float32))
        rows = table.lookup(ids)
        assert rows.tolist() == [[[-2.0] * 3, [-1.0] * 3], [[-2.0] * 3, [-1.0] * 3]]
        assert not table.lookup([7, 8]).any()
        table.delete([5])
        assert table.lookup([5, -1]).tolist() == [[0.0] * 3, [-1.0] * 3]
        assert table.lookup([]).shape == (0, 3)
    with pytest.raises(errors.MusterError, match="the table was closed"):
        table.lookup([1])


def test_an_optimizer_of_keras_names(shared_cluster, name):
    adagrad = muster.optimizers.Adagrad(learning_rate=0.1, initial_accumulator_value=0.1,
                                        epsilon=1e-7)
    table = muster.Table(name, dim=2, optimizer=adagrad, node=shared_cluster)
    table.apply_gradients([3], [[1.0, 2.0]])
    gradient = np.array([1.0, 2.0])
    expected = -0.1 * gradient / np.sqrt(0.1 + gradient ** 2 + 1e-7)
    assert np.allclose(table.lookup([3]), expected, rtol=1e-6)
    with pytest.raises(errors.FailedPreconditionError, match="is trained with adagrad"):
        table.apply_gradients([3], [[1.0, 2.0]],
                              optimizer=muster.optimizers.Adam(learning_rate=0.1))


def push_ones(table, ids):
    rows = table.lookup(ids)
    table.apply_gradients(ids, np.ones_like(rows))
    return float(rows.sum())


def test_a_function_pushes_once(coordinator, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=coordinator)
    ids = np.arange(100)
    for _ in range(5):
        coordinator.schedule(push_ones, (table, ids), effect_once=True)
    coordinator.join()
    assert (table.lookup(ids) == -5).all()


@pytest.mark.parametrize("call, error, words", [
    (lambda t: t.lookup([0.5]), TypeError, "ids are integers"),
    (lambda t: t.apply_gradients([1, 2], [[1.0]]), ValueError, "rows of 2 for each"),
    (lambda t: t.apply_gradients([1], [[float("nan"), 0]]), errors.InvalidArgumentError,
     "the gradient of id 1 is NaN or infinite in column 0")])
def test_what_is_refused(shared_cluster, name, call, error, words):
    table = muster.Table(name, dim=2, node=shared_cluster)
    with pytest.raises(error, match=words):
        call(table)


@pytest.mark.parametrize("options, error", [
    ({"dim": 0}, errors.InvalidArgumentError), ({"initializer": "zeroes"}, ValueError),
    ({"optimizer": muster.optimizers.Lion()}, errors.InvalidArgumentError),
    ({"existing": True}, errors.NotFoundError)])
def test_tables_that_are_refused(shared_cluster, name, options, error):
    with pytest.raises(error):
        muster.Table(name, **{"dim": 2, "node": shared_cluster, **options})


def test_another_form_is_refused(shared_cluster, name):
    muster.Table(name, dim=2, node=shared_cluster)
    with pytest.raises(errors.FailedPreconditionError, match="rows of 2 numbers"):
        muster.Table(name, dim=3, node=shared_cluster)


# ---- policies ----

def values(table, ids):
    return table.lookup(ids)[:, 0].tolist()


def test_a_row_is_made_at_a_push_of_its_id(shared_cluster, name):
    table = muster.Table(name, dim=1, initializer=5.0, optimizer=1.0, admit_after=3,
                         node=shared_cluster)
    for expected in (5, 5, 4, 3):
        table.apply_gradients([7], [[1.0]])
        assert values(table, [7, 8]) == [expected, 5]


def test_unknown_ids_may_give_zeros(shared_cluster, name):
    table = muster.Table(name, dim=1, initializer=5.0, optimizer=1.0, admit_after=2,
                         unknown="zeros", node=shared_cluster)
    for expected in (0, 4):
        table.apply_gradients([7], [[1.0]])
        assert values(table, [7]) == [expected]


def test_chance_is_a_function_of_the_pushes(shared_cluster, name):
    table = muster.Table(name, dim=1, optimizer=1.0, admit_probability=0.25,
                         node=shared_cluster)
    ids = np.arange(8000)
    table.apply_gradients(ids, np.ones((8000, 1), np.float32))
    made = -table.lookup(ids).sum()
    assert 1800 < made < 2200


def test_rows_expire_by_the_times_of_pushes(shared_cluster, name):
    table = muster.Table(name, dim=1, optimizer=1.0, eviction="lru",
                         node=shared_cluster)
    for id, day in ((1, 100), (2, 101), (3, 102), (1, 103)):
        table.apply_gradients([id], [[1.0]], time=day)
    table.expire(before=102)
    assert values(table, [1, 2, 3]) == [-2, 0, -1]


def test_a_capacity(shared_cluster, name):
    table = muster.Table(name, dim=1, optimizer=1.0, capacity=256 * 8, eviction="lru",
                         node=shared_cluster)
    for step in range(1, 5):
        ids = np.arange(1000 * step, 1000 * step + 1000)
        table.apply_gradients(ids, np.ones((1000, 1), np.float32), time=step)
    rows = [int(-table.lookup(np.arange(1000 * step, 1000 * step + 1000)).sum())
            for step in range(1, 5)]
    assert sum(rows) <= 256 * 8 and rows[0] < rows[3]


def test_policies_are_those_of_the_table(shared_cluster, name):
    muster.Table(name, dim=1, ttl=7, node=shared_cluster)
    with pytest.raises(errors.FailedPreconditionError, match="its policies"):
        muster.Table(name, dim=1, ttl=8, node=shared_cluster)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", np.float16])
def test_small_steps_add_up_in_narrow_rows(shared_cluster, name, dtype):
    dtype = dtype if isinstance(dtype, str) else np.dtype(dtype)
    table = muster.Table(name, dim=256, initializer=1.0, optimizer=1.0, dtype=dtype,
                         node=shared_cluster)
    steps = np.full((1, 256), -1 / 1024, np.float32)
    for _ in range(64):
        table.apply_gradients([7], steps)
    row = table.lookup([7])
    assert row.dtype == np.float32
    assert abs(float(row.mean()) - 1.0625) < 0.002


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_rows_are_the_same_wherever_they_are_widened(shared_cluster, name, dtype):
    table = muster.Table(name, dim=5, initializer="uniform", optimizer=1.0, dtype=dtype,
                         node=shared_cluster)
    ids = np.arange(300)
    table.apply_gradients(ids[:200], np.random.default_rng(1).normal(size=(200, 5)))
    here = table.lookup(ids)
    at_the_server = table.lookup(ids, offsets=ids, combiner="sum")
    assert here.any() and np.array_equal(here, at_the_server)


@pytest.mark.parametrize("policies, words", [
    ({"dtype": "int8"}, "float32, float16, bfloat16"),
    ({"eviction": "oldest"}, "'lru' or 'lfu'"),
    ({"unknown": "ones"}, "'initial' or 'zeros'"),
    ({"admit_after": 2, "admit_probability": 0.5}, "not by both"),
    ({"admit_probability": 0.0}, "more than 0"),
    ({"admit_probability": 2.0}, "expected 0 to 1"),
    ({"ttl": 1 << 32}, "less than 2\\^32")])
def test_policies_that_are_refused(shared_cluster, name, policies, words):
    with pytest.raises(ValueError, match=words):
        muster.Table(name, dim=1, node=shared_cluster, **policies)


def test_times_that_are_refused(shared_cluster, name):
    table = muster.Table(name, dim=1, node=shared_cluster)
    for time in (-1, 1 << 32):
        with pytest.raises(ValueError):
            table.apply_gradients([1], [[1.0]], time=time)
    with pytest.raises(errors.FailedPreconditionError, match="no policy"):
        table.expire(before=3)
