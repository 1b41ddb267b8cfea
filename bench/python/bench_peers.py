#!/usr/bin/env python3
"""The same jobs on muster and on what else runs Python functions on processes: the
standard library's process pool, and Dask, Ray and TensorFlow's ClusterCoordinator where
they are installed (scripts/install-deps --bench). All with two workers of one thread.

    bench_peers.py [--only NAME,NAME] [--scale X]

--scale: how many of the usual calls; 0.1 is for a try. Prints one JSON object a line:
"value" is muster's, "limit" the peer's, "ratio" the first by the second. A peer that is
missing or fails is a line on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time

PEERS = ("pool", "dask", "ray", "tensorflow")
CHUNK = 1000
TASKS, TASK_S = 8, 0.1
SECONDS_MAX = 300


def noop():
    return None


def add_one(x):
    return x + 1


def add_chunk(begin, end):
    return [x + 1 for x in range(begin, end)]


def pid_after(seconds):
    time.sleep(seconds)
    return os.getpid()


def chunks(items):
    return [(begin, min(begin + CHUNK, items)) for begin in range(0, items, CHUNK)]


class Peer:
    """What each of them is asked for. Calls: those of a second that are worth it."""

    calls = 5000

    def start(self):
        """Import it, and start two workers."""
        raise NotImplementedError

    def run(self, function, *args):
        """A future of a call."""
        raise NotImplementedError

    def results(self, futures):
        raise NotImplementedError

    def chunked(self, items):
        """add_one of all items, chunked."""
        futures = [self.run(add_chunk, *chunk) for chunk in chunks(items)]
        return [x for chunk in self.results(futures) for x in chunk]

    def result(self, future):
        return self.results([future])[0]

    def worker(self):
        """The pid of a worker."""
        return self.result(self.run(pid_after, 0))

    def tasks_with_a_kill(self, pid):
        """Tasks for both workers, one of which is killed while it runs one."""
        futures = [self.run(pid_after, TASK_S) for _ in range(TASKS)]
        time.sleep(TASK_S / 2)
        os.kill(pid, signal.SIGKILL)
        begun = time.perf_counter()
        assert len(self.results(futures)) == TASKS
        return time.perf_counter() - begun

    def stop(self):
        pass


class Muster(Peer):
    calls = 100000

    def start(self):
        import muster
        self.cluster = muster.LocalCluster(workers=2)
        self.coordinator = muster.ClusterCoordinator(self.cluster)

    def run(self, function, *args):
        return self.coordinator.schedule(function, args)

    def results(self, futures):
        return self.coordinator.fetch(futures)

    def chunked(self, items):
        return list(self.coordinator.map(add_one, range(items), chunksize=CHUNK))

    def stop(self):
        self.coordinator.close()
        self.cluster.close()


class Pool(Peer):
    def start(self):
        import concurrent.futures
        self.pool = concurrent.futures.ProcessPoolExecutor(2)

    def run(self, function, *args):
        return self.pool.submit(function, *args)

    def results(self, futures):
        return [future.result() for future in futures]

    def chunked(self, items):
        return list(self.pool.map(add_one, range(items), chunksize=CHUNK))

    def tasks_with_a_kill(self, pid):
        """The pool is broken then: its user makes another one and begins again."""
        from concurrent.futures.process import BrokenProcessPool
        begun = time.perf_counter()
        try:
            return super().tasks_with_a_kill(pid)
        except BrokenProcessPool:
            self.start()
            self.results([self.run(pid_after, TASK_S) for _ in range(TASKS)])
            return time.perf_counter() - begun - TASK_S / 2

    def stop(self):
        self.pool.shutdown()


class Dask(Peer):
    calls = 2000

    def start(self):
        import distributed
        self.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1,
                                                dashboard_address=None)
        self.client = distributed.Client(self.cluster)

    def run(self, function, *args):
        return self.client.submit(function, *args, pure=False)

    def results(self, futures):
        return self.client.gather(futures)

    def stop(self):
        self.client.close()
        self.cluster.close()


class Ray(Peer):
    def start(self):
        import ray
        self.ray = ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 logging_level="error")
        self.remote = {}

    def run(self, function, *args):
        if function not in self.remote:
            self.remote[function] = self.ray.remote(function)
        return self.remote[function].remote(*args)

    def results(self, futures):
        return self.ray.get(futures)

    def stop(self):
        self.ray.shutdown()


TENSORFLOW_SERVER = """
import json, sys
import tensorflow as tf
cluster, kind, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
server = tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=kind,
                              task_index=index, protocol="grpc")
server.join()
"""


def free_ports(count):
    socks = [socket.socket() for _ in range(count)]
    try:
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in socks]
    finally:
        for sock in socks:
            sock.close()


class TensorFlow(Peer):
    """Its functions are graphs: no chunked map of Python functions."""

    calls = 2000

    def start(self):
        os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
        ports = free_ports(4)
        cluster = {"worker": [f"127.0.0.1:{port}" for port in ports[:2]],
                   "ps": [f"127.0.0.1:{ports[2]}"], "chief": [f"127.0.0.1:{ports[3]}"]}
        self.servers = [
            subprocess.Popen([sys.executable, "-c", TENSORFLOW_SERVER,
                              json.dumps(cluster), kind, str(index)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for kind, index in (("worker", 0), ("worker", 1), ("ps", 0))]
        import tensorflow as tf
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(cluster), task_type="chief", task_id=0,
            rpc_layer="grpc")
        self.coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(
            tf.distribute.ParameterServerStrategy(resolver))
        self.noop = tf.function(lambda: tf.constant(0))

        def wait():     # a graph: Python functions do not run on other tasks
            end = tf.timestamp() + TASK_S
            tf.while_loop(lambda _: tf.timestamp() < end, lambda turn: [turn + 1], [0])
            return tf.constant(0)

        self.wait = tf.function(wait)

    def run(self, function, *args):
        return self.coordinator.schedule(self.noop if function is noop else self.wait)

    def results(self, futures):
        return [int(value) for value in self.coordinator.fetch(futures)]

    def chunked(self, items):
        raise NotImplementedError

    def worker(self):
        return self.servers[0].pid

    def stop(self):
        for server in self.servers:
            server.kill()
            server.wait()


KINDS = {"muster": Muster, "pool": Pool, "dask": Dask, "ray": Ray,
         "tensorflow": TensorFlow}


# ---- one of them, in a process of its own ----


def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def measure(name, scale):
    begun = time.perf_counter()
    peer = KINDS[name]()
    found = {}
    peer.start()
    try:
        peer.result(peer.run(noop))
        found["start"] = time.perf_counter() - begun
        calls = max(int(peer.calls * scale), 20)
        for _ in range(2):      # workers are there, and know the function
            peer.results([peer.run(noop) for _ in range(calls // 10)])
        found["throughput"] = statistics.median(
            calls / timed(lambda: peer.results([peer.run(noop) for _ in range(calls)]))
            for _ in range(3))
        found["latency"] = statistics.median(
            timed(lambda: peer.result(peer.run(noop))) for _ in range(calls // 10))
        items = max(int(1000000 * scale), 10 * CHUNK)
        try:
            peer.chunked(10 * CHUNK)
            spent = timed(lambda: peer.chunked(items))
            found["map"] = items / spent
        except NotImplementedError:
            pass
        found["killed"] = peer.tasks_with_a_kill(peer.worker())
    finally:
        peer.stop()
    return found


def measure_apart(name, scale):
    """None, with words, when it is not there or fails."""
    command = [sys.executable, os.path.abspath(__file__), "--peer", name, "--scale",
               str(scale)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, start_new_session=True)
    try:
        out, errors = child.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        out, errors = "", f"not done after {SECONDS_MAX} s"
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if child.returncode == 0 and lines:
        return json.loads(lines[-1])
    words = (errors.strip().splitlines() or ["no words"])[-1]
    print(f"{name}: left out: {words}", file=sys.stderr, flush=True)
    return None


METRICS = (("throughput", "no-op closures, fetched", "1/s", 1),
           ("latency", "one closure, schedule to fetch", "us", 1e6),
           ("map", f"map, chunks of {CHUNK}", "items/s", 1),
           ("start", "import to first result", "s", 1),
           ("killed", f"{TASKS} tasks of {TASK_S} s, from the kill of a worker", "s", 1))


def put(ours, name, theirs):
    for key, words, unit, factor in METRICS:
        if key not in theirs:
            continue
        print(json.dumps({
            "bench": "python_peers", "metric": f"{words}: beside {name}",
            "value": round(ours[key] * factor, 3), "unit": unit,
            "limit": round(theirs[key] * factor, 3),
            "ratio": round(ours[key] / theirs[key], 4)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--peer", choices=sorted(KINDS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(measure(options.peer, options.scale)), flush=True)
        return 0
    ours = measure_apart("muster", options.scale)
    if ours is None:
        return 1
    for name in options.only.split(","):
        theirs = measure_apart(name, options.scale)
        if theirs is not None:
            put(ours, name, theirs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
