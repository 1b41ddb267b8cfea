#!/usr/bin/env python3
"""Look-ups and pushes of rows on muster and on what else keeps rows in a server: the
parameter servers of TensorFlow and Redis; and in one process TensorFlow Recommenders
Addons beside muster's table in C. Each where it is installed (scripts/install-deps
--bench; the Addons: pip install --no-deps tensorflow-recommenders-addons).

    bench_table_peers.py [--only NAME,NAME] [--kernel PROGRAM] [--ids N] [--dim N]
                         [--rows N]

One server, and requests of N ids drawn at random from rows that are there, one after the
other; a push is sparse Adagrad, or a plain write at Redis. PROGRAM is bench_tables of a
release build. Prints one JSON object a line: "value" is muster's, "limit" the peer's,
"ratio" the first by the second; medians of five rounds, muster's the mean of before and
after the peer. A peer that is missing or fails is a line on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from bench_peers import free_ports

SECONDS = 0.5       # of a round
ROUNDS = 5
PIECE = 8192        # rows that are made at once

TENSORFLOW_SERVER = """
import json, sys
import tensorflow as tf
tf.distribute.Server(tf.train.ClusterSpec(json.loads(sys.argv[1])), job_name="ps",
                     task_index=0, protocol="grpc").join()
"""


class Muster:
    def __init__(self, rows, dim):
        import muster
        self.cluster = muster.LocalCluster(workers=1, ps=1, transport="tcp",
                                           insecure=True)
        self.table = muster.Table("bench", dim=dim, node=self.cluster,
                                  optimizer=muster.optimizers.Adagrad(0.1))
        self.lookup = self.table.lookup
        self.push = self.table.apply_gradients
        for first in range(0, rows, PIECE):
            ids = np.arange(first, min(first + PIECE, rows))
            self.push(ids, np.zeros((len(ids), dim), np.float32))

    def close(self):
        self.table.close()
        self.cluster.close()


class TensorFlow:
    """A variable that is as large as the table, and rows by their index: no hash."""

    def __init__(self, rows, dim):
        os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
        ports = free_ports(2)
        cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "chief": [f"127.0.0.1:{ports[1]}"]}
        self.server = subprocess.Popen(
            [sys.executable, "-c", TENSORFLOW_SERVER, json.dumps(cluster)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        import tensorflow as tf
        tf.config.experimental_connect_to_cluster(
            tf.train.ClusterSpec(cluster), job_name="chief", task_index=0)
        server = "/job:ps/replica:0/task:0/device:CPU:0"
        with tf.device(server):
            table = tf.Variable(tf.zeros([rows, dim]))
            slots = tf.Variable(tf.fill([rows, dim], 0.1))
        ids_spec = tf.TensorSpec([None], tf.int64)

        @tf.function(input_signature=[ids_spec])
        def lookup(ids):
            with tf.device(server):
                return tf.gather(table, ids)

        @tf.function(input_signature=[ids_spec, tf.TensorSpec([None, dim])])
        def push(ids, gradients):
            with tf.device(server):
                tf.raw_ops.ResourceSparseApplyAdagradV2(
                    var=table.handle, accum=slots.handle, lr=0.1, epsilon=1e-7,
                    grad=gradients, indices=ids)
                return tf.constant(0)

        self.lookup = lambda ids: lookup(tf.constant(ids)).numpy()
        self.push = lambda ids, gradients: push(tf.constant(ids),
                                                tf.constant(gradients)).numpy()

    def close(self):
        self.server.kill()
        self.server.wait()


class Redis:
    def __init__(self, rows, dim):
        import redis
        self.dim = dim
        port, = free_ports(1)
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"],
            stdout=subprocess.DEVNULL)
        self.client = redis.Redis(port=port, retry=redis.retry.Retry(
            redis.backoff.ConstantBackoff(0.1), 50))
        for first in range(0, rows, PIECE):
            ids = np.arange(first, min(first + PIECE, rows))
            self.push(ids, np.zeros((len(ids), dim), np.float32))

    def lookup(self, ids):
        values = self.client.mget([int(i).to_bytes(8, "little") for i in ids])
        return np.frombuffer(b"".join(values), np.float32).reshape(-1, self.dim)

    def push(self, ids, gradients):
        self.client.mset({int(i).to_bytes(8, "little"): row.tobytes()
                          for i, row in zip(ids, gradients)})

    def close(self):
        self.server.kill()
        self.server.wait()


class Addons:
    """A cuckoo table in this process, without a server."""

    def __init__(self, rows, dim):
        os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
                          TF_USE_LEGACY_KERAS="1")
        import tensorflow as tf
        import tensorflow_recommenders_addons as addons
        table = addons.dynamic_embedding.get_variable(
            "bench", dim=dim, devices=["/CPU:0"], init_size=2 * rows)
        for first in range(0, rows, PIECE):
            ids = tf.range(first, min(first + PIECE, rows), dtype=tf.int64)
            table.upsert(ids, tf.zeros([len(ids), dim]))
        self.lookup = lambda ids: table.lookup(tf.constant(ids))

    def close(self):
        pass


PEERS = {"tensorflow": TensorFlow, "redis": Redis, "addons": Addons}
KINDS = {"muster": Muster, **PEERS}


def rate(call, ids):
    """Ids a second."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() < began + SECONDS:
        call(ids[count % len(ids)])
        count += 1
    return count * ids.shape[1] / (time.perf_counter() - began)


def measure(name, options):
    peer = KINDS[name](options.rows, options.dim)
    generator = np.random.default_rng(1)
    ids = generator.integers(0, options.rows, (100, options.ids))
    gradients = np.full((options.ids, options.dim), 1e-3, np.float32)
    calls = {"lookup": peer.lookup}
    if hasattr(peer, "push"):
        calls["push"] = lambda some: peer.push(some, gradients)
    try:
        return {metric: statistics.median(rate(call, ids) for _ in range(ROUNDS))
                for metric, call in calls.items()}
    finally:
        peer.close()


def measure_apart(name, options):
    """None, with words, when it is not there or fails."""
    command = [sys.executable, os.path.abspath(__file__), "--peer", name, "--ids",
               str(options.ids), "--dim", str(options.dim), "--rows", str(options.rows)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        print(f"{name}: left out: not done after 300 s", file=sys.stderr)
        return None
    lines = [line for line in child.stdout.splitlines() if line.startswith("{")]
    if child.returncode == 0 and lines:
        return json.loads(lines[-1])
    words = (child.stderr.strip().splitlines() or ["no words"])[-1]
    print(f"{name}: left out: {words}", file=sys.stderr)
    return None


def in_kernel(program):
    """What a server does with a look-up, by bench_tables, in rows a second."""
    printed = subprocess.run([program], env={**os.environ, "MUSTER_BENCH": "1"},
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    return {"lookup": max(line["value"] for line in lines
                          if line["metric"].startswith("look-up"))}


def compare(name, options, measure_ours):
    before = measure_ours()
    theirs = measure_apart(name, options)
    after = measure_ours()
    if not (before and theirs and after):
        return
    for metric, value in theirs.items():
        ours = (before[metric] + after[metric]) / 2
        print(json.dumps({"bench": "table_peers", "metric": f"{metric}, {name}",
                          "value": round(ours), "unit": "ids/s", "limit": round(value),
                          "ratio": round(ours / value, 2)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--kernel", help="bench_tables")
    parser.add_argument("--ids", type=int, default=1024)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.peer:
        print(json.dumps(measure(options.peer, options)), flush=True)
        os._exit(0)     # TensorFlow waits for its servers at the end
    for name in options.only.split(","):
        if name != "addons":
            compare(name, options, lambda: measure_apart("muster", options))
        elif options.kernel:
            compare(name, options, lambda: in_kernel(options.kernel))


if __name__ == "__main__":
    main()
