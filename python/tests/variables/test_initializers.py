"""Initial values by name: Keras' names, the same on any number of shards."""

import math
import pickle

import numpy as np
import pytest

import muster
from muster import initializers

SHAPE = (60, 20)

# With the bound of all values and their deviation, by Keras' formulas.
KINDS = [
    (initializers.Zeros(), 0, 0),
    (initializers.Ones(), 1, 0),
    (initializers.Constant(-2.5), 2.5, 0),
    (initializers.RandomUniform(-1, 1, seed=3), 1, 1 / math.sqrt(3)),
    (initializers.RandomNormal(0, 2, seed=3), 12, 2),
    (initializers.TruncatedNormal(0, 2, seed=3), 4, 2 * 0.87962566),
    (initializers.GlorotUniform(seed=3), math.sqrt(6 / 80), math.sqrt(2 / 80)),
    (initializers.GlorotNormal(seed=3), 2 * math.sqrt(2 / 80) / 0.87962566,
     math.sqrt(2 / 80)),
    (initializers.HeUniform(seed=3), math.sqrt(6 / 60), math.sqrt(2 / 60)),
    (initializers.HeNormal(seed=3), 2 * math.sqrt(2 / 60) / 0.87962566,
     math.sqrt(2 / 60)),
    (initializers.LecunUniform(seed=3), math.sqrt(3 / 60), math.sqrt(1 / 60)),
    (initializers.LecunNormal(seed=3), 2 * math.sqrt(1 / 60) / 0.87962566,
     math.sqrt(1 / 60)),
    (initializers.VarianceScaling(3, "fan_out", "untruncated_normal", seed=3), 3,
     math.sqrt(3 / 20)),
]


@pytest.mark.parametrize("initializer, bound, deviation", KINDS,
                         ids=lambda value: type(value).__name__)
def test_values_are_distributed(initializer, bound, deviation):
    values = initializer(SHAPE, "float64")
    assert values.shape == SHAPE and np.abs(values).max() <= bound * (1 + 1e-12)
    assert abs(values.std() - deviation) <= 0.06 * deviation
    assert (initializer(SHAPE, "float64") == values).all()


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_variable_begins_alike_on_any_number_of_shards(shared_cluster, request, shards):
    initializer = initializers.HeNormal(seed=7)
    variable = muster.Variable(initializer, name=request.node.name, shape=SHAPE,
                               shards=shards, node=shared_cluster)
    assert (variable.read() == initializer(SHAPE, name=request.node.name)).all()
    assert variable.version() == 1
    assert (initializer(SHAPE, name="another") != variable.read()).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64",
                                   "bool"])
def test_constants_of_all_dtypes(shared_cluster, request, dtype):
    variable = muster.Variable(initializers.Ones(), name=request.node.name, shape=(3, 2),
                               dtype=dtype, node=shared_cluster)
    assert variable.dtype == dtype and (variable.read() == np.ones((3, 2), dtype)).all()


def test_orthogonal_values(shared_cluster, request):
    variable = muster.Variable(initializers.Orthogonal(gain=2, seed=1), shape=(40, 10),
                               name=request.node.name, shards=3, node=shared_cluster)
    values = variable.read().astype("f8")
    assert np.allclose(values.T @ values, 4 * np.eye(10), atol=1e-5)
    wide = initializers.Orthogonal(seed=1)((2, 3, 30), "float64").reshape(6, 30)
    assert np.allclose(wide @ wide.T, np.eye(6), atol=1e-12)


def test_seeds(shared_cluster):
    first, second = initializers.RandomNormal(), initializers.RandomNormal()
    assert first.seed != second.seed and (first(3) != second(3)).all()
    assert (initializers.RandomNormal(seed=-1)(3) ==
            initializers.RandomNormal(seed=2**64 - 1)(3)).all()
    with pytest.raises(TypeError, match="seed"):
        initializers.RandomNormal(seed=0.5)


def test_names_and_configurations():
    assert isinstance(initializers.get("glorot_uniform"), initializers.GlorotUniform)
    assert isinstance(initializers.get("HeNormal"), initializers.HeNormal)
    assert isinstance(initializers.get("zeros"), initializers.Zeros)
    for initializer, _, _ in KINDS:
        assert initializers.get(initializer) is initializer
        again = type(initializer).from_config(initializer.get_config())
        assert (again(SHAPE) == initializer(SHAPE)).all()
        assert (pickle.loads(pickle.dumps(initializer))(3) == initializer(3)).all()
    with pytest.raises(ValueError, match="'nothing' is unknown"):
        initializers.get("nothing")
    assert repr(initializers.Constant(2)) == "Constant(value=2)"


@pytest.mark.parametrize("make, kind, words", [
    (lambda: initializers.VarianceScaling(0), ValueError, "scale"),
    (lambda: initializers.VarianceScaling(1, "fan"), ValueError, "mode"),
    (lambda: initializers.VarianceScaling(1, "fan_in", "x"), ValueError, "distribution"),
    (lambda: initializers.RandomNormal(0, -1)(3), muster.errors.InvalidArgumentError,
     "deviation"),
    (lambda: initializers.RandomUniform(1, -1)(3), muster.errors.InvalidArgumentError,
     "lower"),
    (lambda: initializers.GlorotUniform()(3, "int32"),
     muster.errors.InvalidArgumentError, "int32"),
    (lambda: initializers.Constant(300)(3, "uint8"), muster.errors.OutOfRangeError,
     "out of the range of uint8"),
    (lambda: initializers.Constant(1e39)(3), muster.errors.OutOfRangeError, "float32"),
    (lambda: initializers.Constant(2**53 + 1)(3, "int64"), OverflowError, "range"),
    (lambda: initializers.Orthogonal()(3), muster.errors.InvalidArgumentError,
     "two dimensions"),
    (lambda: initializers.Orthogonal()((2000, 2000)), muster.errors.OutOfRangeError,
     "at most"),
])
def test_wrong_initializers(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def test_an_initializer_needs_a_shape(shared_cluster):
    with pytest.raises(TypeError, match="shape"):
        muster.Variable(initializers.Zeros(), name="shapeless", node=shared_cluster)


def test_a_strategy_creates_with_an_initializer(shared_cluster, request):
    partitioner = muster.partitioners.FixedShardsPartitioner(4)
    strategy = muster.ParameterServerStrategy(shared_cluster, partitioner)
    with strategy.scope():
        variable = muster.Variable(initializers.GlorotUniform(seed=2),
                                   name=request.node.name, shape=SHAPE)
    assert variable.shards == 4
    expected = initializers.GlorotUniform(seed=2)(SHAPE, name=request.node.name)
    assert (variable.read() == expected).all()


def test_a_function_creates_with_an_initializer(coordinator, request):
    name = request.node.name

    def create():
        return muster.Variable(initializers.Ones(), name=name, shape=(2, 2)).read()

    assert (coordinator.schedule(create).fetch(30) == np.ones((2, 2))).all()


def test_an_executor_process_creates_with_both(own_cluster, request):
    """An initializer, and a partitioner that is a function."""
    name = request.node.name
    with own_cluster(workers=1, ps=2, processes=1) as cluster, \
            muster.ClusterCoordinator(cluster) as coordinator:

        def create():
            variable = muster.Variable(initializers.HeNormal(seed=4), name=name,
                                       shape=SHAPE, shards=lambda shape, dtype: [7, 1])
            return variable.shards, variable.read()

        shards, values = coordinator.schedule(create).fetch(60)
    assert shards == 7
    assert (values == initializers.HeNormal(seed=4)(SHAPE, name=name)).all()
