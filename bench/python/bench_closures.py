#!/usr/bin/env python3
"""Closures of Python functions, beside the standard library's process pool and beside
the same in C, in the same run.

    bench_closures.py [--closures N] [--only NAME]

Prints one JSON object a line: bench, metric, value, unit, and ratio and target where
there is one. "limit" is what it is compared with.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import muster

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ARRAY_BYTES = 64 << 20


def noop():
    return None


def same(value):
    return value


def put(metric, value, unit, **more):
    row = {"bench": "python_closures", "metric": metric, "value": round(value, 4),
           "unit": unit}
    row.update({key: round(item, 4) if isinstance(item, float) else item
                for key, item in more.items()})
    print(json.dumps(row), flush=True)


def median(times):
    return statistics.median(times)


# ---- the process pool ----


class Pool:
    """What the standard library does with two processes."""

    def __init__(self):
        self.executor = concurrent.futures.ProcessPoolExecutor(2)
        list(self.executor.map(noop_of, range(100)))

    def throughput(self, count):
        begun = time.perf_counter()
        for future in [self.executor.submit(noop) for _ in range(count)]:
            future.result()
        return count / (time.perf_counter() - begun)

    def latency(self, count):
        return median([timed(lambda: self.executor.submit(noop).result())
                       for _ in range(count)])

    def array(self, count):
        array = np.zeros(ARRAY_BYTES, np.uint8)
        return median([timed(lambda: self.executor.submit(same, array).result())
                       for _ in range(count)])


def noop_of(_):
    return None


def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


# ---- muster ----


def throughput(coordinator, count):
    begun = time.perf_counter()
    schedule = coordinator.schedule
    coordinator.fetch([schedule(noop) for _ in range(count)])
    return count / (time.perf_counter() - begun)


def measure(closures):
    found = {}
    with muster.LocalCluster(workers=2) as cluster:
        cluster.wait()
        with muster.ClusterCoordinator(cluster) as coordinator:
            for _ in range(3):
                throughput(coordinator, closures // 10)
            found["throughput"] = median([throughput(coordinator, closures)
                                          for _ in range(5)])
            call = coordinator.schedule
            for _ in range(1000):
                call(noop).fetch()
            found["latency"] = median([timed(lambda: call(noop).fetch())
                                       for _ in range(3000)])
            array = np.zeros(ARRAY_BYTES, np.uint8)
            for _ in range(2):
                call(same, (array,)).fetch()
            found["array"] = median([timed(lambda: call(same, (array,)).fetch())
                                     for _ in range(7)])
    return found


# ---- the same in C ----


def build(folder):
    package = os.path.dirname(muster.__file__)
    library = os.path.join(package, "libmuster.so.0")
    common = [os.environ.get("CC", "cc"), "-O2", "-I", os.path.join(ROOT, "include"),
              os.path.join(HERE, "c_same.c")]
    subprocess.run([*common, "-shared", "-fPIC", "-o", f"{folder}/c_same.so"], check=True)
    subprocess.run([*common, "-DDRIVER", "-o", f"{folder}/driver", library,
                    f"-Wl,-rpath,{package}"], check=True)


def measure_c():
    folder = tempfile.mkdtemp(prefix="muster-bench-")
    workers = []
    try:
        build(folder)
        cluster = json.dumps({
            "chief": [f"ipc://{folder}/chief"],
            "worker": [f"ipc://{folder}/worker-{i}" for i in range(2)]})
        for i in range(2):
            workers.append(subprocess.Popen(
                [sys.executable, "-m", "muster", "node", "--cluster", cluster, "--task",
                 f"worker:{i}", "--plugin", f"{folder}/c_same.so", "--log-level",
                 "error"], cwd="/"))
        words = [f"{folder}/driver", cluster, str(ARRAY_BYTES)]
        lines = subprocess.run(words, check=True, capture_output=True,
                               text=True).stdout.splitlines()
        return {name: float(value) for name, value in map(str.split, lines)}
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait()
        shutil.rmtree(folder, ignore_errors=True)


# ---- starting ----


FIRST_RESULT = """
import time
begun = time.perf_counter()
import muster
with muster.LocalCluster(workers=4) as cluster:
    value = muster.ClusterCoordinator(cluster).schedule(abs, (-1,)).fetch()
    print(time.perf_counter() - begun)
"""

POOL_FIRST_RESULT = """
import time
begun = time.perf_counter()
import concurrent.futures
with concurrent.futures.ProcessPoolExecutor(4) as pool:
    pool.submit(abs, -1).result()
    print(time.perf_counter() - begun)
"""

IMPORT = """
import time
import numpy
begun = time.perf_counter()
import muster
print(time.perf_counter() - begun)
"""


def median_of_program(text, count):
    return median([float(subprocess.run([sys.executable, "-c", text], check=True, cwd="/",
                                        capture_output=True, text=True).stdout)
                   for _ in range(count)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--closures", type=int, default=200000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wanted = options.only
    if not wanted or wanted == "closures":
        ours, c, pool = measure(options.closures), measure_c(), Pool()
        pool_rate = pool.throughput(10000)
        put("no-op closures to two workers, fetched", ours["throughput"], "1/s",
            limit=pool_rate, ratio=ours["throughput"] / pool_rate, target=15.0,
            ok=ours["throughput"] >= max(100000, 15 * pool_rate))
        put("the same in C", c["throughput"], "1/s",
            ratio=ours["throughput"] / c["throughput"])
        pool_latency = pool.latency(1000)
        put("one closure, schedule to fetch", ours["latency"] * 1e6, "us",
            limit=pool_latency * 1e6, ratio=ours["latency"] / pool_latency, target=0.25,
            ok=ours["latency"] <= pool_latency / 4)
        put("one closure beside C", ours["latency"] * 1e6, "us",
            limit=c["latency"] * 1e6, ratio=ours["latency"] / c["latency"], target=2.0,
            ok=ours["latency"] <= 2 * c["latency"])
        rate = 2 * ARRAY_BYTES / 1e9
        put("64 MiB array to a worker and back", rate / ours["array"], "GB/s",
            limit=rate / c["array"], ratio=c["array"] / ours["array"], target=0.8,
            ok=ours["array"] <= c["array"] / 0.8)
        put("64 MiB array by the process pool", rate / pool.array(3), "GB/s")
        pool.executor.shutdown()
    if not wanted or wanted == "start":
        first = median_of_program(FIRST_RESULT, 7)
        put("LocalCluster(workers=4), import to first result", first, "s",
            limit=median_of_program(POOL_FIRST_RESULT, 3), target=0.6, ok=first <= 0.6)
        imported = median_of_program(IMPORT, 9)
        put("import muster, over numpy", imported * 1000, "ms", target=40.0,
            ok=imported <= 0.04)


if __name__ == "__main__":
    main()
