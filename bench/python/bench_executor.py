#!/usr/bin/env python3
"""muster.Executor beside the standard library's process pool, in the same run: submit(),
chunked map(), and one call at a time.

    bench_executor.py [--calls N] [--items N] [--repeat N]

Prints one JSON object a line: bench, metric, value, unit; ratio and target where there is
one. Each figure is the median of the repeats, with muster and the pool in turn.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import statistics
import time

import muster

CHUNKSIZE = 1000


def noop():
    return None


def add_one(x):
    return x + 1


def put(metric, value, unit, **more):
    row = {"bench": "python_executor", "metric": metric, "value": round(value, 3),
           "unit": unit}
    row.update({key: round(item, 3) if isinstance(item, float) else item
                for key, item in more.items()})
    print(json.dumps(row), flush=True)


def submit(executor, calls):
    """Calls a second, results taken."""
    begun = time.perf_counter()
    for future in [executor.submit(noop) for _ in range(calls)]:
        future.result()
    return calls / (time.perf_counter() - begun)


def chunked_map(executor, items):
    """Items a second."""
    begun = time.perf_counter()
    total = sum(executor.map(add_one, range(items), chunksize=CHUNKSIZE))
    rate = items / (time.perf_counter() - begun)
    assert total == items * (items + 1) // 2
    return rate


def one_call(executor, calls):
    """Seconds of one call, submit to result: the median."""
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        executor.submit(noop).result()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=100000)
    parser.add_argument("--items", type=int, default=2000000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    found = {name: ([], []) for name in ("submit", "map", "one")}
    for executors in _pairs(options.repeat):
        for which, executor in enumerate(executors):
            # The pool is so much slower that a part of the calls is enough.
            share = 1 if which == 0 else 10
            submit(executor, options.calls // 20 // share)
            found["submit"][which].append(submit(executor, options.calls // share))
            found["map"][which].append(chunked_map(executor, options.items // share * 2))
            found["one"][which].append(one_call(executor, 2000 // share))
    rates = {name: [statistics.median(values) for values in both]
             for name, both in found.items()}
    ours, pools = rates["submit"]
    put("submit_per_second", ours, "1/s", pool=pools, ratio=ours / pools,
        target_ratio=15, target=100000)
    ours, pools = rates["map"]
    put("map_items_per_second", ours, "1/s", chunksize=CHUNKSIZE, pool=pools,
        ratio=ours / pools, target_ratio=1.3)
    ours, pools = rates["one"]
    put("one_call", ours * 1e6, "us", pool=pools * 1e6, ratio=ours / pools,
        target_ratio=0.25)


def _pairs(repeat):
    """Both executors in turn, each with two workers that are there."""
    with muster.Executor(2) as ours, \
            concurrent.futures.ProcessPoolExecutor(2) as pool:
        for executor in (ours, pool):
            list(executor.map(add_one, range(100), chunksize=10))
        for _ in range(repeat):
            yield ours, pool


if __name__ == "__main__":
    main()
