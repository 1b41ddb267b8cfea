"""Optimizers on the servers: from the program and from functions."""

import doctest
import pickle

import numpy as np
import pytest

import muster
from muster import errors, optimizers
from muster.optimizers import schedules


@pytest.fixture
def name(request):
    return request.node.name


# What Keras publishes: from ones, after a gradient of 0.01 and then 0.1, 0.2 ... 1.0.
PUBLISHED = [
    (optimizers.Adam(amsgrad=True), [0.999, 0.9982, 0.9974, 0.9965, 0.9955]),
    (optimizers.RMSprop(centered=True), [0.9967, 0.9933, 0.9908, 0.9885, 0.9864]),
    (optimizers.Adagrad(0.2, initial_accumulator_value=0.3, epsilon=1e-6),
     [0.9963, 0.9604, 0.9251, 0.8903, 0.856]),
    (optimizers.AdamW(1.0, weight_decay=0.5, epsilon=2),
     [0.4998, 0.2486, 0.1223, 0.0586, 0.0263]),
    (optimizers.Ftrl(0.05, learning_rate_power=-0.2, initial_accumulator_value=0.4,
                     l1_regularization_strength=0.05, l2_regularization_strength=0.15,
                     l2_shrinkage_regularization_strength=0.01, beta=0.3),
     [0.0, -0.0034, -0.0078, -0.0121, -0.0164]),
    (optimizers.Adadelta(1.0, rho=0.8, epsilon=1e-6),
     [0.9978, 0.9947, 0.9915, 0.9882, 0.9849]),
    (optimizers.Adamax(0.2, beta_1=0.85, beta_2=0.95, epsilon=1e-6),
     [0.8, 0.6827, 0.5333, 0.368, 0.1933]),
    (optimizers.Nadam(0.5, beta_1=0.5, beta_2=0.67, epsilon=1e-5),
     [0.4281, -0.1738, -0.7115, -1.2335, -1.7492]),
    (optimizers.Lion(), [0.999, 0.998, 0.997, 0.996, 0.995]),
    (optimizers.Lamb(), [0.999, 0.9982, 0.9974, 0.9965, 0.9955]),
    (optimizers.SGD(nesterov=True), [0.9999, 0.9989, 0.9979, 0.9969, 0.9959]),
]


@pytest.mark.parametrize("optimizer, expected", PUBLISHED,
                         ids=[type(row[0]).__name__ for row in PUBLISHED])
def test_published_values(shared_cluster, name, optimizer, expected):
    variable = muster.Variable(np.ones(10, "f4"), name=name, node=shared_cluster)
    gradients = [np.full(10, 0.01, "f4")] + 4 * [np.arange(1, 11).astype("f4") / 10]
    for gradient, value in zip(gradients, expected):
        optimizer.apply_gradients([(gradient, variable)])
        assert np.isclose(variable.read()[0], value, rtol=5e-4, atol=5e-4)


def test_a_function_applies_gradients_once(coordinator, shared_cluster, name):
    variable = muster.Variable(np.zeros(3), name=name, node=shared_cluster)
    adam = optimizers.Adam(learning_rate=0.01)

    def step():
        adam.apply_gradients([(np.ones(3), variable)])
        assert (variable.read() == before).all()

    before = variable.read()
    coordinator.schedule(step, effect_once=True).fetch(30)
    assert np.allclose(variable.read(), -0.01)
    before = variable.read()
    coordinator.schedule(step, effect_once=True).fetch(30)
    assert np.allclose(variable.read(), -0.02)


def test_the_two_forms_of_momentum(shared_cluster, name):
    torch = muster.Variable(np.zeros(1), name=name + "/torch", node=shared_cluster)
    keras = muster.Variable(np.zeros(1), name=name + "/keras", node=shared_cluster)
    for kind, variable in (optimizers.Momentum, torch), (optimizers.SGD, keras):
        for rate in 1.0, 0.1:
            kind(learning_rate=rate, momentum=0.5).apply_gradients([([1.0], variable)])
    assert np.isclose(torch.read()[0], -1 - 0.1 * 1.5)
    assert np.isclose(keras.read()[0], -1 - (0.5 + 0.1))


def test_one_accumulator_for_a_row(shared_cluster, name):
    variable = muster.Variable(np.zeros((2, 2)), name=name, node=shared_cluster)
    optimizer = optimizers.RowwiseAdagrad(learning_rate=1.0)
    optimizer.apply_gradients([([[3.0, 4.0], [0.0, 1.0]], variable)])
    assert np.allclose(variable.read(), [[-3 / 12.5 ** 0.5, -4 / 12.5 ** 0.5],
                                         [0, -2 ** 0.5]])


def test_rows_that_are_sent_in_pieces(coordinator, shared_cluster, name):
    rows = muster.Variable(np.zeros((1000, 999), "f4"), name=name, node=shared_cluster,
                           shards=2)
    optimizer = optimizers.RowwiseAdagrad(learning_rate=1.0)
    gradient = np.arange(1, 1001, dtype="f4")[:, None] * np.ones(999, "f4")
    optimizer.apply_gradients([(gradient, rows)])
    assert np.allclose(rows.read(), -1)

    def step():
        optimizer.apply_gradients([(gradient, rows)])

    coordinator.schedule(step, effect_once=True).fetch(30)
    assert np.allclose(rows.read(), -1 - 0.5 ** 0.5)


def test_slots_of_another_optimizer(shared_cluster, name):
    variable = muster.Variable(np.zeros(2), name=name, node=shared_cluster)
    optimizers.Adam().apply_gradients([([1.0, 1.0], variable)])
    with pytest.raises(muster.errors.FailedPreconditionError, match="slots of adam"):
        optimizers.Adagrad().apply_gradients([([1.0, 1.0], variable)])
    before = variable.read()
    optimizers.Adagrad(replace_slots=True).apply_gradients([([1.0, 1.0], variable)])
    assert (variable.read() < before).all()


def test_nan_is_refused(shared_cluster, name):
    variable = muster.Variable(np.zeros(2), name=name, node=shared_cluster)
    with pytest.raises(muster.errors.InvalidArgumentError, match="element 1"):
        optimizers.SGD().apply_gradients([([1.0, np.nan], variable)])
    assert (variable.read() == 0).all()
    optimizers.SGD(any_number=True).apply_gradients([([1.0, np.inf], variable)])
    assert np.isinf(variable.read()[1])


def test_numbers_out_of_range(shared_cluster, name):
    variable = muster.Variable(np.zeros(1), name=name, node=shared_cluster)
    with pytest.raises(muster.errors.InvalidArgumentError, match="adam: beta1 1"):
        optimizers.Adam(beta_1=1.0).apply_gradients([([1.0], variable)])


def test_clipping(shared_cluster, name):
    a = muster.Variable(np.zeros(2), name=name + "/a", node=shared_cluster)
    b = muster.Variable(np.zeros(1), name=name + "/b", node=shared_cluster)
    rows = [({"clipvalue": 1}, [-1, 1], -1), ({"clipnorm": 1}, [-0.6, 0.8], -1),
            ({"global_clipnorm": 1.3}, [-0.3, 0.4], -1.2), ({}, [-3, 4], -12)]
    for clip, first, second in rows:
        a.assign([0, 0])
        b.assign([0])
        optimizer = optimizers.SGD(learning_rate=1.0, **clip)
        optimizer.apply_gradients([([3.0, -4.0], a), ([12.0], b)])
        assert np.allclose(a.read(), first) and np.allclose(b.read(), second), clip
    with pytest.raises(ValueError, match="clipnorm and clipvalue"):
        optimizers.Adam(clipnorm=1, clipvalue=1)
    with pytest.raises(ValueError, match="above 0"):
        optimizers.Adam(global_clipnorm=0)


def test_weight_decay_and_exceptions(shared_cluster, name):
    decayed = muster.Variable([2.0], name=name + "/w", node=shared_cluster)
    listed = muster.Variable([2.0], name=name + "/listed", node=shared_cluster)
    named = muster.Variable([2.0], name=name + "/bias", node=shared_cluster)
    optimizer = optimizers.Adam(learning_rate=1.0, weight_decay=0.004)
    optimizer.exclude_from_weight_decay(var_list=[listed], var_names=["bias"])
    optimizer.apply_gradients([([0.0], v) for v in (decayed, listed, named)])
    assert np.isclose(decayed.read()[0], 1.992)
    assert listed.read()[0] == 2 and named.read()[0] == 2


def test_gradients_that_are_missing(shared_cluster, name):
    variable = muster.Variable([0.0], name=name, node=shared_cluster)
    other = muster.Variable([0.0], name=name + "/other", node=shared_cluster)
    with pytest.warns(UserWarning, match=f"no gradient for {name}/other"):
        optimizers.SGD(1.0).apply_gradients([([1.0], variable), (None, other)])
    assert variable.read()[0] == -1 and other.read()[0] == 0
    with pytest.raises(ValueError, match="no variable has a gradient"):
        optimizers.SGD().apply_gradients([(None, variable)])


# ---- Schedules ----

def test_schedules_are_worked_out():
    assert doctest.testmod(schedules).failed == 0
    polynomial = schedules.PolynomialDecay(1.0, 10, 0.0, power=2.0, cycle=True)
    assert [round(polynomial(step), 6) for step in (0, 10, 15, 20)] == [1, 0, 0.0625, 0]
    warm = schedules.CosineDecay(0.0, 10, warmup_target=1.0, warmup_steps=4)
    assert [warm(step) for step in (0, 2, 4, 14)] == [0, 0.5, 1, 0]
    stairs = schedules.ExponentialDecay(1.0, 10, 0.5, staircase=True)
    assert [stairs(step) for step in (9, 10)] == [1, 0.5]


def test_schedules_are_checked():
    with pytest.raises(ValueError, match="decay_steps is 0"):
        schedules.ExponentialDecay(0.1, 0, 0.5)
    with pytest.raises(ValueError, match="one value more"):
        schedules.PiecewiseConstantDecay([1], [1.0])


def test_a_schedule_sees_the_step(coordinator, shared_cluster, name):
    variable = muster.Variable([0.0], name=name, node=shared_cluster)
    schedule = schedules.PiecewiseConstantDecay([9], [1.0, 0.5])
    optimizer = optimizers.SGD(learning_rate=schedule)
    with pytest.raises(TypeError, match="schedule"):
        optimizer.learning_rate = 0.1

    def step(number):
        optimizer.apply_gradients([([1.0], variable)], step=number)

    coordinator.schedule(step, (9,), effect_once=True).fetch(30)
    assert variable.read()[0] == -1
    coordinator.schedule(step, (10,), effect_once=True).fetch(30)
    assert variable.read()[0] == -1.5


def test_an_optimizer_counts_and_is_pickled():
    adam = optimizers.Adam(schedules.InverseTimeDecay(1.0, 1, 1.0))
    assert adam.learning_rate == 1 and adam.rule()["step"] == 0
    adam.iterations = 3
    again = pickle.loads(pickle.dumps(adam))
    assert again.learning_rate == 0.25 and again.rule(step=1)["rate"] == 0.5
    assert again.rule(step=1)["step"] == 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_restored_optimizer_goes_on_bit_by_bit(shared_cluster, name, tmp_path, dtype):
    variable = muster.Variable(np.zeros((50, 3), dtype), name=name, node=shared_cluster,
                               shards=2)
    gradients = np.random.default_rng(1).normal(size=(6, 50, 3)).astype(dtype)
    optimizer = optimizers.Adam(amsgrad=True)
    checkpoint = muster.Checkpoint(variable=variable)

    def train(numbers):
        for number in numbers:
            optimizer.apply_gradients([(gradients[number], variable)])
        return variable.read()

    train(range(3))
    path = checkpoint.save(tmp_path / "model")
    expected = train(range(3, 6))
    checkpoint.restore(path)
    assert (train(range(3, 6)) == expected).all()


def test_floats_of_16_bits(shared_cluster, name):
    """Adam's moments have 32 bits: 16 have no 1e-5, the square of the gradient."""
    variable = muster.Variable(np.ones(4, "f2"), name=name, node=shared_cluster)
    expected, m, v = np.ones(4, "f2"), np.zeros(4, "f4"), np.zeros(4, "f4")
    gradient = np.array([3e-3, -3e-3, 1, 0], "f2")
    optimizer = optimizers.Adam(0.01)
    for t in range(1, 6):
        optimizer.apply_gradients([(gradient, variable)])
        g = gradient.astype("f4")
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        rate = 0.01 * np.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        expected = (expected - rate * m / (np.sqrt(v) + 1e-7)).astype("f2")
    assert np.abs(variable.read() - expected).max() <= 2 * np.finfo("f2").eps
    assert abs(variable.read()[0] - 0.95) < 0.01
    with pytest.raises(errors.InvalidArgumentError, match="not for floats of 16 bits"):
        optimizers.Lamb(replace_slots=True).apply_gradients([(gradient, variable)])
