"""ParameterServerStrategy, its partitioners, and variables in its scope."""

import os
import sys

import numpy as np
import pytest

import jobs
import muster
from muster import ClusterSpec, ParameterServerStrategy, SimpleClusterResolver
from muster.partitioners import (FixedShardsPartitioner, MaxSizePartitioner,
                                 MinSizePartitioner)


def resolver(jobs, task_type="chief", task_id=0):
    return SimpleClusterResolver(ClusterSpec(jobs), task_type=task_type, task_id=task_id)


# ---- partitioners ----

@pytest.mark.parametrize("partitioner, shape, parts", [
    (FixedShardsPartitioner(2), [10, 3], [2, 1]),
    (FixedShardsPartitioner(20), [10, 3], [10, 1]),
    (FixedShardsPartitioner(2), [], []),
    (MinSizePartitioner(4, max_shards=100), [6, 1], [6, 1]),
    (MinSizePartitioner(8, max_shards=100), [6, 1], [3, 1]),
    (MinSizePartitioner(4, max_shards=2), [6, 1], [2, 1]),
    (MinSizePartitioner(1000, max_shards=10), [6, 1], [1, 1]),
    (MinSizePartitioner(), [6, 1], [1, 1]),
    (MaxSizePartitioner(4), [6, 1], [6, 1]),
    (MaxSizePartitioner(8), [6, 1], [3, 1]),
    (MaxSizePartitioner(8, max_shards=2), [6, 1], [2, 1]),
    (MaxSizePartitioner(1024), [6, 1], [1, 1]),
    (MaxSizePartitioner(1), [6, 100], [6, 1]),      # a row at least
    (MaxSizePartitioner(20), [6, 1], [2, 1]),       # 5 rows fit, two shards are needed
])
def test_how_many_parts(partitioner, shape, parts):
    assert partitioner(shape, np.float32) == parts


def test_strings_count_what_was_said():
    assert MaxSizePartitioner(32, bytes_per_string=16)([4], "U5") == [2]


@pytest.mark.parametrize("make", [
    lambda: FixedShardsPartitioner(0), lambda: MinSizePartitioner(0),
    lambda: MinSizePartitioner(1, 0), lambda: MinSizePartitioner(1, 1, 0),
    lambda: MaxSizePartitioner(0), lambda: MaxSizePartitioner(1, 0),
    lambda: MaxSizePartitioner(1, 1, 0)])
def test_numbers_below_one_are_value_errors(make):
    with pytest.raises(ValueError, match="at least 1"):
        make()
    with pytest.raises(TypeError):
        FixedShardsPartitioner("2")


# ---- clusters ----

@pytest.mark.parametrize("spec, words", [
    ({}, "empty"), ({"worker": ["a:1"]}, "no task of job 'ps'"),
    ({"chief": ["c:1"], "ps": ["a:1"]}, "no task of job 'worker'"),
    ({"chief": ["c:1", "d:1"], "worker": ["a:1"], "ps": ["b:1"]}, "chief"),
    ({"chief": ["c:1"], "worker": ["a:1"], "ps": ["b:1"], "gpu": ["e:1"]}, "gpu"),
    ({"worker": ["a:1"], "ps": ["b:1"]}, "no chief"),
    ({"chief": ["c:1"], "worker": [], "ps": ["b:1"]}, "no task of job 'worker'"),
])
def test_a_cluster_that_is_not_fit_is_a_value_error(spec, words):
    with pytest.raises(ValueError, match=words):
        ParameterServerStrategy(resolver(spec))


def test_a_worker_is_no_coordinator():
    spec = {"chief": ["c:1"], "worker": ["a:1"], "ps": ["b:1"]}
    for task_type in ("worker", "ps"):
        with pytest.raises(ValueError, match=f"is a {task_type}"):
            ParameterServerStrategy(resolver(spec, task_type))
    with pytest.raises(TypeError, match="ClusterResolver"):
        ParameterServerStrategy(3)
    with pytest.raises(TypeError, match="partitioner"):
        ParameterServerStrategy(resolver(spec), variable_partitioner=3)


# ---- scope ----

def test_variables_in_scope_are_cut_by_the_partitioner(shared_cluster):
    strategy = ParameterServerStrategy(shared_cluster, FixedShardsPartitioner(2))
    assert (strategy.num_workers, strategy.num_ps) == (2, 2)
    with strategy.scope():
        content = np.arange(10, dtype=np.float32).reshape(5, 2)
        cut = muster.Variable(content, name="strategy/cut")
        scalar = muster.Variable(1.5, name="strategy/scalar")
        said = muster.Variable(content, name="strategy/said", shards=1)
        by_shape = muster.Variable(name="strategy/zeros", shape=(3, 2), dtype="float64")
    assert (cut.shards, scalar.shards, said.shards, by_shape.shards) == (2, 0, 1, 2)
    assert np.array_equal(cut.read(), content) and scalar.read() == 1.5
    cut.assign_add(np.ones((5, 2), np.float32))
    assert np.array_equal(cut.read(), content + 1)
    outside = muster.Variable(content, name="strategy/outside", node=shared_cluster)
    assert outside.shards == 0


@pytest.mark.parametrize("parts", [None, [], [0, 1], [1, 2], [2], "ab"])
def test_a_partitioner_that_says_nonsense_is_a_value_error(shared_cluster, parts):
    strategy = ParameterServerStrategy(shared_cluster, lambda shape, dtype: parts)
    with strategy.scope(), pytest.raises((ValueError, TypeError)):
        muster.Variable(np.zeros((4, 4), np.float32), name="strategy/bad")


def test_without_a_scope_there_is_no_place_for_variables(shared_cluster):
    strategy = ParameterServerStrategy(shared_cluster)
    with strategy.scope():
        with strategy.scope():
            pass
        assert muster.Variable(0.0, name="strategy/nested").node is strategy.node
    with pytest.raises(TypeError, match="options"):
        ParameterServerStrategy(shared_cluster, threads=2)


def test_run_here_warns_and_reduce_is_of_one_replica(shared_cluster, caplog):
    strategy = ParameterServerStrategy(shared_cluster)
    assert strategy.run(jobs.add, (1,), {"b": 2}) == 3
    assert "runs in this process" in caplog.text
    assert strategy.num_replicas_in_sync == 1
    assert strategy.reduce("SUM", np.array([1, 2]), axis=0) == 3
    assert strategy.reduce("mean", np.array([1, 3]), axis=0) == 2
    with pytest.raises(ValueError):
        strategy.reduce("MAX", 1)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_step_function_uses_the_strategy(own_cluster, processes, caplog):
    with own_cluster(workers=1, ps=2, processes=processes) as cluster:
        strategy = ParameterServerStrategy(cluster, FixedShardsPartitioner(2))
        coordinator = muster.ClusterCoordinator(strategy, timeout=60)
        with strategy.scope():
            weights = muster.Variable(np.zeros((4, 2), np.float32), name="weights")

        def step():
            def replica(amount):
                weights.assign_add(np.full((4, 2), amount, np.float32))
                return np.array([amount, amount])

            value = strategy.run(replica, (2.0,))
            assert (strategy.num_workers, strategy.num_replicas_in_sync) == (1, 1)
            with strategy.scope():
                made = muster.Variable(np.zeros((4, 2)), name="made", node=strategy)
            return strategy.reduce("SUM", value, axis=0), made.name

        class Named(ParameterServerStrategy):
            words = ""

        named = Named(cluster)
        named.words = "kept"
        assert coordinator.schedule(step).fetch(60) == (4.0, "made")
        assert coordinator.schedule(lambda s: s.words, (named,)).fetch(60) == "kept"
        assert np.array_equal(weights.read(), np.full((4, 2), 2, np.float32))


# ---- a program that is written as for tf.distribute ----

def train_step(weights, iterator):
    step = next(iterator)
    muster.current_run().add(weights, np.full((4, 2), step, np.float32))
    return step


def dataset_fn():
    return iter(range(1, 1000))


def test_a_program_with_servers_in_processes_of_their_own(tmp_path):
    import json
    import socket
    import subprocess

    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    cluster = {job: [f"127.0.0.1:{free_port()}" for _ in range(count)]
               for job, count in (("chief", 1), ("worker", 2), ("ps", 2))}
    program = ("import muster; s = muster.Server(); print(s.task, flush=True); s.join(); "
               "print('ended', flush=True)")
    servers = []
    for job, index in (("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1)):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(
            [os.path.dirname(__file__), *sys.path]), TF_CONFIG=json.dumps(
                {"cluster": cluster, "task": {"type": job, "index": index}}))
        servers.append(subprocess.Popen([sys.executable, "-c", program], text=True,
                                        stdout=subprocess.PIPE, env=environment))
    try:
        with ParameterServerStrategy(resolver(cluster), FixedShardsPartitioner(2),
                                     heartbeat=0.2) as strategy:
            coordinator = muster.ClusterCoordinator(strategy, timeout=60)
            with strategy.scope():
                weights = muster.Variable(np.zeros((4, 2), np.float32), name="weights")
            iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
            values = [coordinator.schedule(train_step, (weights, iterator))
                      for _ in range(50)]
            coordinator.join(60)
            total = sum(coordinator.fetch(values))
            assert np.array_equal(weights.read(), np.full((4, 2), total, np.float32))
            coordinator.close()
            strategy.node.finish_job(timeout=20)
        for server in servers:
            out, _ = server.communicate(timeout=20)
            assert out.splitlines()[-1] == "ended" and server.returncode == 0
    finally:
        for server in servers:
            if server.poll() is None:
                server.kill()
                server.communicate()


@pytest.mark.parametrize("shards, expected", [
    (FixedShardsPartitioner(4), 4),
    (MinSizePartitioner(min_shard_bytes=16, max_shards=3), 3),
    (MaxSizePartitioner(max_shard_bytes=16), 5),
    (lambda shape, dtype: [shape[0] // 2, 1], 5),
    (lambda shape, dtype: [100, 1], 10),
])
def test_a_variable_has_a_partitioner_of_its_own(shared_cluster, request, shards,
                                                 expected):
    variable = muster.Variable(np.ones((10, 2), "f4"), name=request.node.name,
                               shards=shards, node=shared_cluster)
    assert variable.shards == expected and (variable[3:] == 1).all()


def test_a_function_that_cuts_nothing_is_a_value_error(shared_cluster):
    for parts in (None, [1], [1, 2], [0, 1]):
        with pytest.raises(ValueError, match="the partitioner returned"):
            muster.Variable(np.ones((4, 2)), name="cut", node=shared_cluster,
                            shards=lambda shape, dtype, parts=parts: parts)
