"""Bags of ids, and look-ups of several tables at once."""

import numpy as np
import pytest

import muster


@pytest.fixture
def table(shared_cluster, request):
    with muster.Table(request.node.name, dim=4, initializer=("uniform", -1, 1),
                      optimizer=1.0, node=shared_cluster) as table:
        yield table


IDS = np.array([5, 9, 5, 7, 300, 2])
OFFSETS = np.array([0, 3, 3, 4])
WEIGHTS = np.array([1, 2, -0.5, 3, 0.25, 1], np.float32)


def bag_of_each():
    return [slice(0, 3), slice(3, 3), slice(3, 4), slice(4, 6)]


def divisor(combiner, weights):
    if combiner == "sum":
        return 1.0
    return weights.sum() if combiner == "mean" else np.sqrt((weights ** 2).sum())


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_a_row_for_each_bag(table, combiner, weights):
    rows = table.lookup(IDS)
    factors = np.ones(6, np.float32) if weights is None else weights
    combined = table.lookup(IDS, offsets=OFFSETS, combiner=combiner, weights=weights)
    assert combined.shape == (4, 4) and combined.dtype == np.float32
    for bag, row in zip(bag_of_each(), combined):
        expected = (rows[bag] * factors[bag, None]).sum(0)
        if len(rows[bag]) > 0:
            expected = expected / divisor(combiner, factors[bag])
        assert np.allclose(row, expected, atol=1e-5)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_gradients_of_bags(table, combiner):
    before = table.lookup(IDS)
    table.apply_gradients(IDS, np.ones((4, 4), np.float32), offsets=OFFSETS,
                          combiner=combiner, weights=WEIGHTS)
    moved = np.zeros(6)
    for bag in bag_of_each():
        for i in range(bag.start, bag.stop):
            moved[IDS == IDS[i]] += WEIGHTS[i] / divisor(combiner, WEIGHTS[bag])
    assert np.allclose(before - table.lookup(IDS), moved[:, None], atol=1e-5)


def test_the_mean_is_what_is_meant(table):
    assert (table.lookup(IDS, offsets=OFFSETS)
            == table.lookup(IDS, offsets=OFFSETS, combiner="mean")).all()
    assert table.lookup([], offsets=[]).shape == (0, 4)


@pytest.mark.parametrize("arguments, words", [
    ({"offsets": [0, 7]}, "offsets rise"), ({"offsets": [3, 1]}, "offsets rise"),
    ({"offsets": [0], "combiner": "max"}, "expected one of sum, mean, sqrtn"),
    ({"offsets": [0], "weights": [1.0]}, "weights of shape"),
    ({"offsets": [1]}, "before the first bag"),
    ({"offsets": []}, "before the first bag")])
def test_bags_that_are_refused(table, arguments, words):
    with pytest.raises((ValueError, muster.MusterError), match=words):
        table.lookup(IDS, **arguments)


def test_several_tables_at_once(shared_cluster, table):
    with muster.Table("beside", dim=2, initializer=3.0, node=shared_cluster) as other:
        rows = muster.lookup([(table, IDS), (other, IDS.reshape(2, 3)), (table, [])])
        assert (rows[0] == table.lookup(IDS)).all()
        assert rows[1].shape == (2, 3, 2) and (rows[1] == 3).all()
        assert rows[2].shape == (0, 4)
        assert muster.lookup([]) == []
    with pytest.raises(muster.MusterError, match="the table was closed"):
        muster.lookup([(table, IDS), (other, IDS)])
