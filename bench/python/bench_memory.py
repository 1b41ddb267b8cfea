#!/usr/bin/env python3
"""What a queued closure takes of the program's memory, in which the chief is too.

    bench_memory.py [--closures N]

All workers of a LocalCluster are busy; resident memory before and after N closures
without arguments have been scheduled and the chief has queued them, with their remote
values held. The list that holds those is there before. Each row is of a process of its
own. Prints one JSON object a line, as bench_closures.py does.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time

import muster

TARGET_BYTES = 600
WARM = 1000         # so that what grows once has grown
SECONDS_MAX = 120

# What is scheduled -> how the row is called, and what it may take.
ROWS = {
    "function": ("queued, a Python function", TARGET_BYTES),
    "options": ("queued, a Python function with options", None),
    "argument": ("queued, a Python function of an int", None),
    "name": ("queued, a function by name", None),
}


def noop(_=None):
    return None


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def ways(coordinator):
    schedule = coordinator.schedule
    return {
        "function": lambda: schedule(noop),
        "options": lambda: schedule(noop, priority=5, attempts=3),
        "argument": lambda: schedule(noop, (7,)),
        "name": lambda: schedule("noop"),
    }


def wait_until_queued(node, count):
    limit = time.monotonic() + SECONDS_MAX
    while node.status()["closures"]["queued"] < count:
        if time.monotonic() > limit:
            raise SystemExit("bench_memory: the chief has not queued them all")
        time.sleep(0.02)


def hold():
    """Until the cluster is closed."""
    while not muster.current_run().cancelled():
        time.sleep(0.01)


def block(coordinator):
    value = coordinator.schedule(hold)
    while coordinator.explain(value, 5)["state"] != "running":
        time.sleep(0.01)


def measure(way, count):
    with muster.LocalCluster(workers=1, threads=1) as cluster:
        cluster.wait()
        coordinator = muster.ClusterCoordinator(cluster)
        schedule = ways(coordinator)[way]
        block(coordinator)
        warm = [schedule() for _ in range(WARM)]
        values = [None] * count
        time.sleep(0.2)
        gc.collect()
        before = resident()
        for i in range(count):
            values[i] = schedule()
        wait_until_queued(cluster.node, count)
        after = resident()
        print((after - before) / count)
        coordinator.close()
        del warm, values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--closures", type=int, default=200000)
    parser.add_argument("--measure", choices=sorted(ROWS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.closures)
        return
    for way, (metric, target) in ROWS.items():
        words = [sys.executable, os.path.abspath(__file__), "--measure", way,
                 "--closures", str(options.closures)]
        value = float(subprocess.run(words, check=True, capture_output=True,
                                     text=True).stdout)
        row = {"bench": "python_memory", "metric": metric, "value": round(value, 1),
               "unit": "bytes/closure"}
        if target is not None:
            row.update(target=target, ok=value <= target)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
