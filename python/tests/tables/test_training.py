"""A job as users write it: a table and a variable are trained by closures, workers are
killed, and NumPy has the same numbers."""

import numpy as np
import pytest

import muster
from muster import initializers, optimizers

USERS, DIM, BATCHES = 50, 3, 40


@pytest.fixture
def name(request):
    return request.node.name


@pytest.fixture(params=[None, 2], ids=["threads", "processes"])
def own_cluster(request):
    options = {} if request.param is None else {"processes": request.param}
    with muster.LocalCluster(workers=2, ps=2, heartbeat=0.2, **options) as cluster:
        yield cluster


def batches_of(seed):
    """Users, some of them twice, and labels."""
    random = np.random.default_rng(seed)
    for _ in range(BATCHES):
        ids = random.integers(0, USERS, 16)
        yield ids, np.sin(ids).astype(np.float32)


class Model:
    """Factors of users, times weights: what the servers do, in double precision."""

    def __init__(self, factors, weights):
        self.factors, self.weights = factors.astype(float), weights.astype(float)
        self.squares = np.full(self.factors.shape, 0.1)

    def gradients(self, ids, labels):
        return gradients_of(self.factors[ids], self.weights, labels)

    def apply(self, ids, of_rows, of_weights):
        users, at = np.unique(ids, return_inverse=True)
        summed = np.zeros((len(users), DIM))
        np.add.at(summed, at, of_rows)
        self.squares[users] += summed ** 2
        self.factors[users] -= 0.1 * summed / np.sqrt(self.squares[users] + 1e-7)
        norm = np.linalg.norm(of_weights)
        self.weights -= 0.05 * of_weights * min(1, 0.5 / norm)

    def error(self):
        return np.square(self.factors @ self.weights - np.sin(np.arange(USERS))).mean()


def gradients_of(rows, weights, labels):
    wrong = rows @ weights - labels
    return np.outer(wrong, weights), rows.T @ wrong


def test_a_job_is_what_numpy_computes(own_cluster, name):
    """One batch after the other: so each sees what those before have done."""
    strategy = muster.ParameterServerStrategy(own_cluster)
    with strategy.scope():
        users = muster.Table(name, dim=DIM,
                             initializer=initializers.TruncatedNormal(0, 0.5, seed=1),
                             optimizer=optimizers.Adagrad(learning_rate=0.1))
        weights = muster.Variable(initializers.GlorotUniform(seed=2), shape=(DIM,),
                                  name=name)
    sgd = optimizers.SGD(0.05, clipnorm=0.5)
    model = Model(users.lookup(np.arange(USERS)), weights.read())
    before = model.error()

    def step(ids, labels):
        of_rows, of_weights = gradients_of(users.lookup(ids), weights.read(), labels)
        users.apply_gradients(ids, of_rows)
        sgd.apply_gradients([(of_weights, weights)])

    with muster.ClusterCoordinator(strategy) as coordinator:
        for number, (ids, labels) in enumerate(batches_of(3)):
            if number in (10, 25):
                own_cluster.kill("worker", number % 2)
            value = coordinator.schedule(step, (ids, labels), effect_once=True)
            coordinator.fetch(value, 60)
            model.apply(ids, *model.gradients(ids, labels))
    assert np.allclose(users.lookup(np.arange(USERS)), model.factors, atol=1e-4)
    assert np.allclose(weights.read(), model.weights, atol=1e-4)
    assert model.error() < before / 2


def test_each_batch_counts_once_although_workers_are_killed(own_cluster, name):
    """All at once, in any order: sums of whole numbers are the same in each."""
    table = muster.Table(name, dim=DIM, optimizer=1.0, node=own_cluster)
    count = muster.Variable(np.zeros(2), name=name, node=own_cluster)
    top = muster.Variable(np.zeros((2, 2), np.int64), name=name + "/top",
                          node=own_cluster)

    def step(number, ids):
        table.apply_gradients(ids, np.full((len(ids), DIM), number, np.float32))
        run = muster.current_run()
        run.add(count, [1, number])
        run.scatter_max(top, [number % 2], number)

    expected = np.zeros((USERS, DIM))
    with muster.ClusterCoordinator(own_cluster) as coordinator:
        for number, (ids, _) in enumerate(batches_of(4)):
            if number in (7, 22):
                own_cluster.kill("worker", number % 2)
            coordinator.schedule(step, (number, ids), effect_once=True)
            np.add.at(expected, ids, -number)
        coordinator.join(120)
    assert (table.lookup(np.arange(USERS)) == expected).all()
    assert count.read().tolist() == [BATCHES, sum(range(BATCHES))]
    assert top.read().tolist() == [[BATCHES - 2] * 2, [BATCHES - 1] * 2]
