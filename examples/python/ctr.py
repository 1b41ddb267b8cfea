"""Click prediction: rows of weights and factors by id, on parameter servers.

    python examples/python/ctr.py [FILE]

FILE has lines as in Criteo's data sets: a label, 13 numbers and 26 categories, with tabs
between them. Without it lines of a planted model are made, so that the best AUC is known.
A factorization machine learns from batches of lines; each is a closure, which counts once
although a worker and a parameter server are killed.
"""

import sys
import tempfile

import numpy as np

import muster

LINES, BATCH, DIM, NUMBERS, FIELDS = 100_000, 250, 4, 13, 39


def feature(column, text):
    """An id of 64 bits with the column in the upper 8. Numbers above 2 are put into
    buckets; an empty column is a feature, too."""
    if not text:
        content = 0
    elif column >= NUMBERS:
        content = int(text, 16) + 1
    elif int(text) > 2:
        content = int(np.log(int(text)) ** 2) + 4
    else:
        content = int(text) % 2**32 + 1
    return column << 56 | content


def read(file, begin, end):
    """Labels and ids of the lines that begin in these bytes, and how many are damaged."""
    labels, ids, damaged = [], [], 0
    with open(file, "rb") as lines:
        lines.seek(max(begin - 1, 0))
        if begin > 0:
            lines.readline()
        while lines.tell() < end and (line := lines.readline()):
            label, *columns = line.decode(errors="replace").rstrip("\r\n").split("\t")
            try:
                row = [feature(*column) for column in enumerate(columns)]
                if label not in ("0", "1") or len(row) != FIELDS:
                    raise ValueError(line)
            except ValueError:
                damaged += 1
                continue
            labels.append(float(label))
            ids.append(row)
    return np.array(labels), np.array(ids, np.uint64).reshape(-1, FIELDS), damaged


# The model: logit = bias + sum of weights + 1/2 ((sum of factors)^2 - sum of squares).

def predict(ids, bias, weights, factors):
    """Probabilities of clicks, and what their gradients need."""
    unique, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape)
    w, v = weights.lookup(unique)[places, 0], factors.lookup(unique)[places]
    sums = v.sum(axis=1)
    logits = bias.read() + w.sum(axis=1) + ((sums ** 2).sum(axis=1)
                                            - (v ** 2).sum(axis=(1, 2))) / 2
    return 1 / (1 + np.exp(-logits)), v, sums


def step(file, begin, end, bias, weights, factors, counts):
    """One batch, on a worker: the gradients go to the servers when it has returned."""
    labels, ids, damaged = read(file, begin, end)
    probabilities, v, sums = predict(ids, bias, weights, factors)
    error = probabilities - labels
    muster.optimizers.Adagrad(0.05).apply_gradients([(error.sum(), bias)])
    weights.apply_gradients(ids, np.broadcast_to(error[:, None, None], (*ids.shape, 1)))
    factors.apply_gradients(ids, error[:, None, None] * (sums[:, None] - v))
    muster.current_run().add(counts, [len(labels), damaged])


def scores(labels, probabilities):
    """Area under the ROC curve, by ranks, and log loss."""
    _, places, equal = np.unique(probabilities, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equal) - (equal - 1) / 2)[places]
    clicks = labels.sum()
    auc = (ranks[labels == 1].sum() - clicks * (clicks + 1) / 2) \
        / (clicks * (len(labels) - clicks))
    return auc, -np.log(np.where(labels == 1, probabilities, 1 - probabilities)).mean()


# Lines of a planted model: contents by Zipf's law, with a weight for each.

def make_lines(file, lines, seed=1):
    """Write them; the probabilities of clicks."""
    random = np.random.default_rng(seed)
    kinds = np.resize([30, 3, 100_000, 300, 10, 5000], FIELDS)
    ranks = np.exp(random.random((lines, FIELDS)) * np.log(kinds + 1)).astype(int) - 1
    planted = random.standard_normal((FIELDS, kinds.max())) / np.arange(1, 100_001)
    planted[:NUMBERS, 8:] = 0                   # numbers that share a bucket
    logits = 0.5 * planted[np.arange(FIELDS), ranks].sum(axis=1)
    probabilities = 1 / (1 + np.exp(1.2 - logits + logits.mean()))
    clicks = random.random(lines) < probabilities
    with open(file, "w") as out:
        for click, row in zip(clicks, ranks):
            numbers = "\t".join(map(str, row[:NUMBERS]))
            categories = "\t".join(f"{rank * 2654435761 % 2**32:08x}"
                                   for rank in row[NUMBERS:])
            out.write(f"{click:d}\t{numbers}\t{categories}\n")
    return probabilities


def train(cluster, file, size):
    """Nine tenths of the file in batches; two tasks are killed on the way."""
    coordinator = muster.ClusterCoordinator(cluster)
    optimizers = muster.optimizers
    bias = muster.Variable(np.zeros((), "float32"), name="bias")
    counts = muster.Variable(np.zeros(2, "int64"), name="counts")
    weights = muster.Table("weights", dim=1, optimizer=optimizers.Ftrl(
        0.05, l1_regularization_strength=2, l2_regularization_strength=1, beta=1))
    factors = muster.Table("factors", dim=DIM, initializer=("normal", 0, 0.01),
                           optimizer=optimizers.Adagrad(0.005))
    batch = size * BATCH // LINES
    steps = [coordinator.schedule(step, (file, begin, min(begin + batch, size * 9 // 10),
                                         bias, weights, factors, counts),
                                  effect_once=True)
             for begin in range(0, size * 9 // 10, batch)]
    for part, task in ((3, ("worker", 1)), (2, ("ps", 1))):
        steps[len(steps) // part].wait()
        print(f"killed {task[0]}/{task[1]} (pid {cluster.kill(*task)}) with SIGKILL")
    coordinator.join()
    return (bias, weights, factors), counts.read()


def main(file=None):
    with tempfile.TemporaryDirectory() as folder, \
            muster.LocalCluster(workers=2, ps=2) as cluster:
        planted = None
        if file is None:
            file = f"{folder}/lines"
            planted = make_lines(file, LINES)
        with open(file, "rb") as lines:
            size = lines.seek(0, 2)
        model, (trained, damaged) = train(cluster, file, size)
        labels, ids, _ = read(file, size * 9 // 10, size)
        auc, loss = scores(labels, predict(ids, *model)[0])
        print(f"{trained} lines trained on, {damaged} damaged, {len(labels)} held out")
        print(f"AUC {auc:.4f}, loss {loss:.4f}")
    if planted is None:
        return 0
    best, least = scores(labels, planted[-len(labels):])
    print(f"planted: AUC {best:.4f}, loss {least:.4f}")
    return 0 if best - auc < 0.01 and trained + len(labels) == LINES else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
