#!/usr/bin/env python3
"""Requests of a small variable from Python: one after the other, and many under way.

    bench_variables.py [--elements N] [--under-way N] [--rounds N]

One parameter server. A request that nobody waits for is begun as soon as one has ended.
Prints one JSON object a line, as bench_closures.py does: the best of all rounds, and the
microseconds of this process's processors for each request.
"""

from __future__ import annotations

import argparse
import collections
import json
import time

import numpy as np

import muster

SECONDS = 0.5       # of a round


def measured(begin, under_way, rounds):
    """Requests a second, and processor time here for each, of the best round; `begin`
    gives a future, or the result when there is one under way at a time."""
    best = 0.0, 0.0
    for _ in range(rounds):
        futures = collections.deque()
        count, began, spent = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < began + SECONDS:
            if under_way == 1:
                begin()
            else:
                futures.append(begin())
                if len(futures) == under_way:
                    futures.popleft().result()
            count += 1
        for future in futures:
            future.result()
        best = max(best, (count / (time.perf_counter() - began),
                          1e6 * (time.process_time() - spent) / count))
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=4)
    parser.add_argument("--under-way", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with muster.LocalCluster(workers=1, ps=1) as cluster:
        variable = muster.Variable(np.zeros(options.elements, np.float32), name="small",
                                   node=cluster)
        ones = np.ones(options.elements, np.float32)
        for what, begin, under_way in (
                ("read", variable.read, 1),
                ("read_async", variable.read_async, options.under_way),
                ("assign_add_async", lambda: variable.assign_add_async(ones),
                 options.under_way)):
            rate, here_us = measured(begin, under_way, options.rounds)
            print(json.dumps({"bench": "python_variables", "metric": what,
                              "value": round(rate), "unit": "requests/s",
                              "under_way": under_way, "here_us": round(here_us, 1)}),
                  flush=True)


if __name__ == "__main__":
    main()
