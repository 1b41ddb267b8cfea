"""A cluster learns to read handwritten digits, and one of its workers is killed halfway.

    python examples/python/digits.py

The parameters live on two parameter servers. Each mini-batch is a closure, which counts
once although the killed worker may have run it already.
"""

import pathlib

import numpy as np

import muster

FILE = pathlib.Path(__file__).resolve().parents[1] / "digits" / "data" / "digits.csv"
STEPS, BATCH = 3000, 32


def load():
    """Images of 64 pixels and their labels: 1437 for training, 360 for testing."""
    rows = np.random.default_rng(1).permutation(np.loadtxt(FILE, delimiter=","))
    images, labels = rows[:, :64].astype("float32") / 8 - 1, rows[:, 64].astype(int)
    return images[:1437], labels[:1437], images[1437:], labels[1437:]


def predict(images, w1, b1, w2, b2):
    hidden = np.maximum(images @ w1 + b1, 0)
    scores = np.exp(hidden @ w2 + b2)
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def step(data, variables, number):
    """One mini-batch, on a worker: the gradient goes to the parameter servers."""
    picked = np.random.default_rng(number).integers(0, len(data[0]), BATCH)
    images, labels = data[0][picked], data[1][picked]
    w1, b1, w2, b2 = (variable.read() for variable in variables)
    hidden, output = predict(images, w1, b1, w2, b2)
    output[np.arange(BATCH), labels] -= 1
    error = output / BATCH
    below = (error @ w2.T) * (hidden > 0)
    gradients = images.T @ below, below.sum(axis=0), hidden.T @ error, error.sum(axis=0)
    for variable, gradient in zip(variables, gradients):
        muster.current_run().apply_gradient(variable, gradient, rate=0.03, momentum=0.5)


def main():
    shapes, random = [(64, 64), (64,), (64, 10), (10,)], np.random.default_rng(2)
    with muster.LocalCluster(workers=3, ps=2) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        variables = [muster.Variable(0.1 * random.standard_normal(shape), dtype="float32")
                     for shape in shapes]
        data = coordinator.create_per_worker_value(load)
        steps = [coordinator.schedule(step, (data, variables, number), effect_once=True)
                 for number in range(STEPS)]
        steps[STEPS * 2 // 5].wait()
        print(f"killed worker/1 (pid {cluster.kill('worker', 1)}) with SIGKILL")
        coordinator.join()
        images, labels = load()[2:]
        output = predict(images, *(variable.read() for variable in variables))[1]
        accuracy = (output.argmax(axis=1) == labels).mean()
        counted = variables[0].version() - 1       # the initial content was a write, too
        print(f"steps: {coordinator.counts()['finished']} finished, {counted} counted")
        print(f"accuracy: {accuracy:.1%} of {len(labels)} digits that it has not seen")
    return 0 if accuracy >= 0.95 and counted == STEPS else 1


if __name__ == "__main__":
    raise SystemExit(main())
