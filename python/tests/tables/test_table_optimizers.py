"""Optimizers of tables, by name and of Keras; schedules and clipping of pushes; tables in
the scope of a strategy; calls that do not wait."""

import asyncio

import numpy as np
import pytest

import muster
from muster import errors, optimizers
from muster.optimizers import schedules


@pytest.fixture
def name(request):
    return request.node.name


class Adagrad:
    """Like Keras' own."""

    def __init__(self, rate=0.5):
        self.rate = rate

    def get_config(self):
        return {"name": "adagrad", "learning_rate": self.rate, "weight_decay": None,
                "clipnorm": None, "use_ema": False, "initial_accumulator_value": 0.25}


def test_optimizers_by_name():
    assert type(optimizers.get("adam")) is type(optimizers.get("Adam")) is optimizers.Adam
    assert optimizers.get(0.5).learning_rate == 0.5
    found = optimizers.get(Adagrad())
    assert (found.learning_rate, found.initial_accumulator_value) == (0.5, 0.25)
    assert optimizers.get(found) is found
    for wrong in ("adams", None, object()):
        with pytest.raises(ValueError, match="is unknown"):
            optimizers.get(wrong)
    with pytest.raises(ValueError, match="has the rate"):
        optimizers.get(Adagrad({"class_name": "CosineDecay"}))


def test_an_optimizer_of_keras(shared_cluster, name):
    table = muster.Table(name, dim=2, optimizer=Adagrad(), node=shared_cluster)
    table.apply_gradients([3], [[1.0, 2.0]])
    gradient = np.array([1.0, 2.0])
    expected = -0.5 * gradient / np.sqrt(0.25 + gradient ** 2 + 1e-7)
    assert np.allclose(table.lookup([3]), expected, rtol=1e-6)


def test_a_schedule_is_followed(shared_cluster, name):
    halves = schedules.ExponentialDecay(1.0, 1, 0.5)
    table = muster.Table(name, dim=1, optimizer=optimizers.SGD(halves),
                         node=shared_cluster)
    for expected in (-1.0, -1.5, -1.75):
        table.apply_gradients([1], [[1.0]])
        assert table.lookup([1]) == expected
    table.apply_gradients([1], [[1.0]], step=0)     # as that of a closure
    assert table.lookup([1]) == -2.75


def test_steps_of_adam_are_those_of_rows(shared_cluster, name):
    table = muster.Table(name, dim=1, optimizer="adam", node=shared_cluster)
    table.apply_gradients([1], [[5.0]], step=1000)
    assert np.allclose(table.lookup([1]), -0.001, rtol=1e-5)


@pytest.mark.parametrize("clip, expected", [
    ({"clipvalue": 1.0}, [-1.0, -1.0]), ({"clipnorm": 1.0}, [-0.6, -0.8]),
    ({"global_clipnorm": 10.0}, [-3.0, -4.0])])
def test_pushes_are_clipped(shared_cluster, name, clip, expected):
    table = muster.Table(name, dim=2, optimizer=optimizers.SGD(1.0, **clip),
                         node=shared_cluster)
    table.apply_gradients([1], [[3.0, 4.0]])
    assert np.allclose(table.lookup([1]), expected)


def test_a_table_among_variables(shared_cluster, name):
    """As optimizer.apply_gradients(zip(gradients, variables)) of Keras."""
    table = muster.Table(name, dim=2, optimizer=0.5, node=shared_cluster)
    variable = muster.Variable(np.zeros((3, 2)), name=name, node=shared_cluster)
    dense = muster.Variable(np.zeros(2), name=name + "/dense", node=shared_cluster)
    sparse = muster.IndexedSlices([[3.0, 0.0], [0.0, 4.0]], [2, 2])
    sgd = optimizers.SGD(1.0, global_clipnorm=np.sqrt(75) / 2)
    sgd.apply_gradients(zip([sparse, sparse, np.array([5.0, 0.0])],
                            [table, variable, dense]))
    assert np.allclose(table.lookup([2, 0]), [[-1.5, -2], [0, 0]])
    assert np.allclose(variable.read(), [[0, 0], [0, 0], [-1.5, -2]])
    assert np.allclose(dense.read(), [-2.5, 0])
    with pytest.raises(TypeError, match="its gradient is a muster.IndexedSlices"):
        sgd.apply_gradients([(np.ones(2), table)])


# ---- in functions ----

def push(table, step):
    table.apply_gradients([1], [[1.0]], step=step)


def test_functions_follow_a_schedule(coordinator, name):
    """Each handle has its own: a second one of the same table, with another rate."""
    halves = schedules.ExponentialDecay(1.0, 1, 0.5)
    table = muster.Table(name, dim=1, optimizer=optimizers.SGD(halves), node=coordinator)
    for step in range(3):
        coordinator.schedule(push, (table, step), effect_once=True)
    coordinator.join()
    assert table.lookup([1]) == -1.75
    steep = muster.Table(name, dim=1, optimizer=8.0, node=coordinator)
    coordinator.schedule(push, (steep, 0), effect_once=True)
    coordinator.join()
    assert table.lookup([1]) == -9.75


def test_a_strategy_makes_tables(shared_cluster, name):
    """As TensorFlow's tutorial has it."""
    strategy = muster.ParameterServerStrategy(shared_cluster)
    coordinator = muster.ClusterCoordinator(strategy)
    with strategy.scope():
        table = muster.Table(name, dim=4, initializer="glorot_uniform",
                             optimizer=optimizers.Adagrad(0.1))
        bias = muster.Variable(0.0, name=name, dtype="float32")
        sgd = optimizers.SGD(0.5)

    def step(ids):
        def replica_fn(rows):
            table.apply_gradients(ids, np.zeros_like(rows))
            sgd.apply_gradients([(np.float32(-1), bias)])
            return rows.shape

        return strategy.run(replica_fn, args=(table.lookup(ids),))

    value = coordinator.schedule(step, args=([5, 6],))
    coordinator.join()
    assert value.fetch() == (2, 4) and bias.numpy() == 0.5
    assert table.lookup([5]).any()


# ---- calls that do not wait ----

def test_futures(shared_cluster, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=shared_cluster)
    pushes = [table.apply_gradients_async([i % 7], [[1.0, 1.0]]) for i in range(700)]
    for pushed in pushes:
        assert pushed.result(60) is None
    assert (table.lookup(np.arange(7)) == -100).all()
    with pytest.raises(errors.InvalidArgumentError, match="is NaN"):
        table.apply_gradients_async([1], [[float("nan"), 0.0]]).result(60)


def test_futures_are_awaited(shared_cluster, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=shared_cluster)
    variable = muster.Variable(np.zeros((3, 2), np.float32), name=name,
                               node=shared_cluster)

    async def train():
        rows, whole = await asyncio.gather(table.lookup_async([1, 2]),
                                           variable.read_async())
        await table.apply_gradients_async([1], rows[:1] + 1)
        await variable.assign_async(whole + 1)
        await variable.assign_add_async(1)
        await variable.scatter_add_async([1], [[3.0, 3.0]])
        await variable.apply_gradient_async(np.ones((3, 2), np.float32), 1.0)
        return await variable.gather_async([1, 0])

    assert asyncio.run(train()).tolist() == [[4.0, 4.0], [1.0, 1.0]]
    assert table.lookup([1]).tolist() == [[-1.0, -1.0]]
