"""Pi, from random points: `map` in chunks over a cluster.

    python examples/python/monte_carlo.py

Each call draws points from a generator of its own, so that the sum is the same however
many workers there are.
"""

import math

import numpy as np

import muster

CALLS, POINTS = 2000, 20_000


def inside(seed):
    """How many of the points lie in the quarter of a circle."""
    x, y = np.random.default_rng(seed).random((2, POINTS))
    return int(np.count_nonzero(x * x + y * y < 1))


def main():
    with muster.LocalCluster(workers=2) as cluster, muster.Executor(cluster) as executor:
        hits = sum(executor.map(inside, range(CALLS), chunksize=50))
    pi = 4 * hits / (CALLS * POINTS)
    print(f"pi is about {pi:.5f} after {CALLS * POINTS:,} points; "
          f"{abs(pi - math.pi):.5f} beside it")
    return 0 if abs(pi - math.pi) < 1e-3 else 1


if __name__ == "__main__":
    raise SystemExit(main())
