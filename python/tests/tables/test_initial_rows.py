"""What rows of tables begin as: muster.initializers, by an independent generator."""

import math
from statistics import NormalDist

import numpy as np
import pytest

import muster
from muster import errors, initializers

WORD, LONG = (1 << 32) - 1, (1 << 64) - 1


@pytest.fixture
def name(request):
    return request.node.name


def philox(counter, key):
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [second >> 32 ^ counter[1] ^ key[0], second & WORD,
                   first >> 32 ^ counter[3] ^ key[1], first & WORD]
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return counter


def mixed(number):
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & LONG
    number = (number ^ number >> 27) * 0x94D049BB133111EB & LONG
    return number ^ number >> 31


def units_of(name, seed, row, dim):
    """Numbers between 0 and 1 of a row."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001B3 & LONG
    seed = mixed(seed + (mixed(digest) | 1) & LONG)
    key = [seed & WORD, seed >> 32]
    return [(philox([row & WORD, row >> 32, column // 4, 0], key)[column % 4] + 0.5)
            / 2 ** 32 for column in range(dim)]


def truncated(unit):
    low = NormalDist().cdf(-2)
    return NormalDist().inv_cdf(low + (1 - 2 * low) * unit)


@pytest.mark.parametrize("initializer, value", [
    (initializers.RandomUniform(-1, 3, seed=7), lambda unit: 4 * unit - 1),
    (initializers.RandomNormal(5, 2, seed=7), lambda u: NormalDist(5, 2).inv_cdf(u)),
    (initializers.TruncatedNormal(5, 2, seed=7), lambda unit: 5 + 2 * truncated(unit)),
    (initializers.GlorotUniform(seed=7), lambda u: math.sqrt(6 / 12) * (2 * u - 1)),
    (initializers.HeNormal(seed=7),
     lambda unit: math.sqrt(2 / 6) / 0.87962566103423978 * truncated(unit))],
    ids=lambda value: type(value).__name__)
def test_values(shared_cluster, name, initializer, value):
    table = muster.Table(name, dim=6, initializer=initializer, node=shared_cluster)
    ids = [0, 1, 1 << 40, LONG]
    expected = [[value(unit) for unit in units_of(name, 7, row, 6)] for row in ids]
    rows = table.lookup(np.array(ids, np.uint64))
    assert np.allclose(rows, np.array(expected, np.float32), rtol=2e-7, atol=0)


@pytest.mark.parametrize("initializer, low, high", [
    ("zeros", 0, 0), ("Ones", 1, 1), (0.5, 0.5, 0.5), ("uniform", -0.05, 0.05),
    (("uniform", 2, 3), 2, 3), (("normal", 10, 0.1), 9, 11), (("constant", 3), 3, 3),
    ("he_uniform", -math.sqrt(6 / 64), math.sqrt(6 / 64))])
def test_what_an_initializer_can_be(shared_cluster, name, initializer, low, high):
    table = muster.Table(name, dim=64, initializer=initializer, node=shared_cluster)
    rows = table.lookup(np.arange(1000))
    assert rows.min() >= np.float32(low) and rows.max() <= np.float32(high)
    assert (rows == table.lookup(np.arange(1000))).all()
    assert low == high or rows.min() < rows.max()


def test_seeds(shared_cluster, name):
    """That of the table is for an initializer without one, so that who opens it again
    has the same."""
    def open_it(initializer, **options):
        return muster.Table(name, dim=4, initializer=initializer, node=shared_cluster,
                            **options)

    rows = open_it(initializers.RandomUniform(-1, 1), seed=3).lookup([1, 2])
    again = open_it(initializers.RandomUniform(-1, 1, seed=3)).lookup([1, 2])
    assert (rows == again).all()
    assert (rows == open_it(("uniform", -1, 1), seed=3).lookup([1, 2])).all()
    with pytest.raises(errors.FailedPreconditionError, match="expected the same"):
        open_it(initializers.RandomUniform(-1, 1, seed=4))
    with pytest.raises(errors.FailedPreconditionError, match="expected the same"):
        open_it(("uniform", -1, 1))


def test_zeros_are_zeros_whatever_they_are_called(shared_cluster, name):
    for initializer in ("zeros", 0, initializers.Constant(0.0), initializers.Zeros()):
        muster.Table(name, dim=4, initializer=initializer, seed=id(initializer),
                     node=shared_cluster)


class RandomUniform:
    """Like Keras' own."""

    def __init__(self):
        self.minval, self.maxval, self.seed = 1.0, 2.0, object()


def test_an_initializer_of_keras(shared_cluster, name):
    found = initializers.get(RandomUniform())
    assert (type(found), found.minval) == (initializers.RandomUniform, 1.0)
    table = muster.Table(name, dim=4, initializer=RandomUniform(), node=shared_cluster)
    rows = table.lookup(np.arange(100))
    assert 1 <= rows.min() < rows.max() <= 2


@pytest.mark.parametrize("initializer, error, words", [
    ("zero-ish", ValueError, "is unknown"), ((), ValueError, "is unknown"),
    (object(), ValueError, "is unknown"), (("uniform", 1, 0), errors.InvalidArgumentError,
                                           "the lower one first"),
    (("normal", 0, -1), errors.InvalidArgumentError, "a deviation from 0 on"),
    (1e39, errors.OutOfRangeError, "out of the range of float32"),
    (initializers.Orthogonal(), errors.InvalidArgumentError, "not for rows of tables")])
def test_initializers_that_are_refused(shared_cluster, name, initializer, error, words):
    with pytest.raises(error, match=words):
        muster.Table(name, dim=2, initializer=initializer, node=shared_cluster)
