"""A counter that is exact although a worker is killed: effects are applied once.

    python examples/python/once.py

Each closure adds 1 to a variable. A closure of the killed worker runs again elsewhere,
and what it had added already is not added a second time.
"""

import muster

CLOSURES = 2000


def count(total):
    """What is added is sent when the function has returned."""
    muster.current_run().add(total, 1)


def main():
    with muster.LocalCluster(workers=3, ps=2) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        total = muster.Variable(0, name="total", dtype="int64")
        values = [coordinator.schedule(count, (total,), effect_once=True)
                  for _ in range(CLOSURES)]
        values[CLOSURES // 4].wait()
        cluster.kill("worker", 0)
        coordinator.join()
        counted = int(total.read())
    print(f"{CLOSURES} closures, a worker killed: the counter is at {counted}")
    return 0 if counted == CLOSURES else 1


if __name__ == "__main__":
    raise SystemExit(main())
