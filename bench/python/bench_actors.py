#!/usr/bin/env python3
"""Actors: calls, latency, streams, making them, and what an idle one needs; in threads
and in processes of their own, beside a manager of multiprocessing, and beside Ray and
Dask where these are installed.

    bench_actors.py [--calls N]

Prints one JSON object a line: bench, metric, value, unit, and target where there is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import time
from multiprocessing.managers import BaseManager

import muster


class Counter:
    def __init__(self):
        self.n = 0

    def add(self, k):
        self.n += k
        return self.n

    def rows(self, count):
        yield from range(count)


class Manager(BaseManager):
    """Of multiprocessing."""


Manager.register("Counter", Counter)


def put(metric, value, unit, **more):
    row = {"bench": "python_actors", "metric": metric, "value": round(value, 2),
           "unit": unit}
    row.update(more)
    print(json.dumps(row), flush=True)


def latency_us(call, count=2000):
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def rate_of(call, get, count):
    """Calls a second, of which many are under way."""
    begun = time.perf_counter()
    values = [call() for _ in range(count)]
    get(values)
    return count / (time.perf_counter() - begun)


def best_rate(call, get, count):
    return max(rate_of(call, get, count) for _ in range(3))


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


def bench_muster(calls):
    with muster.LocalCluster(workers=1) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        for where, target, delay in (("thread", 150_000, 90), ("process", 60_000, 150)):
            counter = coordinator.spawn(Counter, where=where)
            counter.add(1).fetch()
            count = calls if where == "thread" else calls // 10
            put(f"{where}_calls", best_rate(lambda a=counter: a.add(1),
                                            lambda values: values[-1].fetch(), count),
                "calls/s", target=target)
            put(f"{where}_latency", latency_us(lambda a=counter: a.add(1).fetch()), "us",
                target=delay)
            begun = time.perf_counter()
            assert sum(counter.rows(calls)) == calls * (calls - 1) // 2
            put(f"{where}_stream", calls / (time.perf_counter() - begun), "items/s",
                target=200_000)
            counter.stop()
        pid = coordinator.schedule(os.getpid).fetch()
        count = 10_000
        before = resident_kib(pid)
        begun = time.perf_counter()
        actors = [coordinator.spawn(Counter) for _ in range(count)]
        assert len({actor.address for actor in actors}) == count    # waits for each
        put("made", count / (time.perf_counter() - begun), "actors/s", target=20_000)
        put("idle_actor", (resident_kib(pid) - before) * 1024 / count, "bytes",
            target=2048)
        del actors
        begun = time.perf_counter()
        coordinator.spawn(Counter, where="process").add(1).fetch()
        put("process_made", time.perf_counter() - begun, "s", target=0.2)


def bench_manager():
    with Manager() as manager:
        counter = manager.Counter()
        put("manager_latency", latency_us(lambda: counter.add(1)), "us")


def bench_ray(calls):
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    counter = ray.remote(Counter).remote()
    ray.get(counter.add.remote(1))
    put("ray_calls", best_rate(lambda: counter.add.remote(1), ray.get, calls // 10),
        "calls/s")
    put("ray_latency", latency_us(lambda: ray.get(counter.add.remote(1))), "us")
    ray.shutdown()


def bench_dask(calls):
    from dask.distributed import Client

    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        counter = client.submit(Counter, actor=True).result()
        put("dask_calls", best_rate(lambda: counter.add(1),
                                    lambda values: [v.result() for v in values],
                                    calls // 50), "calls/s")
        put("dask_latency", latency_us(lambda: counter.add(1).result(), 500), "us")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    calls = parser.parse_args().calls
    bench_muster(calls)
    bench_manager()
    for name, run in (("ray", bench_ray), ("distributed", bench_dask)):
        if importlib.util.find_spec(name) is not None:
            run(calls)


if __name__ == "__main__":
    main()
