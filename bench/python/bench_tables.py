#!/usr/bin/env python3
"""Requests to an embedding table from Python, beside C.

    bench_tables.py [--c PROGRAM] [--ids N] [--dim N] [--rows N] [--rounds N]

One parameter server, and look-ups and pushes of N ids drawn at random from rows that are
there, one request after the other. PROGRAM is bench_table_requests of a release build,
which does the same in C, and is run before and after. "gather" is NumPy's from an array
of the same rows in this process, without a server or a hash: a limit. Prints one JSON
object a line, as bench_closures.py does: the best of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time

import numpy as np

import muster

SECONDS = 0.5       # of a round
PIECE = 8192        # rows that are made at once
RATIO = 0.8


def in_c(program, options):
    """By what C prints: ids a second, and microseconds of the processor here for each
    request; or nothing."""
    if program is None:
        return {}
    rates = {}
    for request in ("lookup", "push"):
        printed = subprocess.run(
            [program, f"ids={options.ids}", f"dim={options.dim}",
             f"rows={options.rows}", "threads=1", f"only={request}"],
            env={**os.environ, "MUSTER_BENCH": "1"}, check=True, stdout=subprocess.PIPE,
            text=True).stdout
        line = json.loads(printed.splitlines()[-1])
        rates[request] = line["value"], line["here_us"]
    return rates


def rate(call, ids, rounds):
    """The same of the best round."""
    best = 0.0, 0.0
    for _ in range(rounds):
        count, began, spent = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < began + SECONDS:
            call(ids[count % len(ids)])
            count += 1
        best = max(best, (count * ids.shape[1] / (time.perf_counter() - began),
                          1e6 * (time.process_time() - spent) / count))
    return best


def report(metric, measured, in_c):
    (value, here_us), (limit, limit_us) = measured, in_c
    line = {"bench": "python_tables", "metric": metric, "value": round(value),
            "unit": "ids/s", "here_us": round(here_us)}
    if limit:
        line.update(limit=round(limit), ratio=round(value / limit, 3),
                    limit_us=round(limit_us), target=round(RATIO * limit),
                    ok=value >= RATIO * limit)
    print(json.dumps(line), flush=True)


def measure(table, options):
    generator = np.random.default_rng(1)
    ids = generator.integers(0, options.rows, (200, options.ids))
    gradients = np.zeros((options.ids, options.dim), np.float32)
    for first in range(0, options.rows, PIECE):
        piece = np.arange(first, min(first + PIECE, options.rows))
        table.apply_gradients(piece, np.zeros((len(piece), options.dim), np.float32))
    array = np.zeros((options.rows, options.dim), np.float32)
    return {
        "lookup": rate(table.lookup, ids, options.rounds),
        "push": rate(lambda some: table.apply_gradients(some, gradients), ids,
                     options.rounds),
        "gather": rate(array.__getitem__, ids, options.rounds),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--c", help="bench_table_requests")
    parser.add_argument("--ids", type=int, default=1024)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    before = in_c(options.c, options)
    with muster.LocalCluster(workers=1, ps=1, transport="tcp", insecure=True) as cluster:
        with muster.Table("bench", dim=options.dim, node=cluster,
                          optimizer=muster.optimizers.Adagrad(0.1)) as table:
            values = measure(table, options)
    after = in_c(options.c, options)
    for metric, value in values.items():
        limit = max(found.get(metric, (0, 0)) for found in (before, after))
        report(f"{metric}, {options.ids} ids", value, limit)


if __name__ == "__main__":
    main()
