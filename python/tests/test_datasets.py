"""Datasets that are dealt out in shards."""

import numpy as np
import pytest

import jobs
import muster


def visit(shard, variable, by=1):
    add = np.zeros(variable.shape, "i8")
    add[shard.number] = by
    muster.current_run().add(variable, add)
    assert shard.shards == variable.shape[0] and shard.epoch > 0


def fail_some(shard, seen):
    if muster.current_run().closure % 5 == 0:
        raise ValueError("some fail")


def test_each_shard_is_visited_once_per_epoch_although_workers_die(own_cluster, request):
    cluster = own_cluster(workers=2, ps=1)
    variable = muster.Variable(np.zeros(20, "i8"), name=request.node.name, node=cluster)
    with muster.ClusterCoordinator(cluster) as coordinator:
        dataset = muster.ShardedDataset(coordinator, 20, epochs=5, seed=3, records=5)
        dealt = 0
        while dataset.schedule(visit, (variable,), {"by": 2}, effect_once=True):
            dealt += 1
            if dealt in (30, 60):
                cluster.kill("worker", dealt // 30 - 1)
        dataset.join(30)
        assert dealt == 100 and (variable.read() == 10).all()
        record = dataset.record()
        assert record["consumed"] == 100 and len(record["record"]) == 5
        orders = {tuple(epoch["shard"]) for epoch in record["record"]}
        assert all(sorted(order) == list(range(20)) for order in orders)


def test_a_shard_whose_closure_failed_is_dealt_again(coordinator):
    dataset = muster.ShardedDataset(coordinator, 10, epochs=2)
    more = True
    failures = 0
    while more:
        try:
            more = dataset.schedule(fail_some, (1,))
        except ValueError:
            failures += 1
    dataset.join(30)
    assert dataset.record()["consumed"] == 20


def test_a_dataset_goes_on_from_its_file(coordinator, tmp_path):
    path = tmp_path / "dataset"
    dataset = muster.ShardedDataset(coordinator, 6, epochs=2)
    for _ in range(4):
        assert dataset.schedule(jobs.same)
    dataset.join(30)
    dataset.save(path)
    dataset.close()
    again = muster.ShardedDataset(coordinator, path=str(path))
    count = 0
    while again.schedule(jobs.same):
        count += 1
    assert count == 8
    with pytest.raises(muster.errors.ClosedError):
        dataset.schedule(jobs.same)
    (tmp_path / "bad").write_bytes(b"no dataset")
    with pytest.raises(muster.errors.DataLossError):
        muster.ShardedDataset(coordinator, path=str(tmp_path / "bad"))
    with pytest.raises(ValueError, match="shards"):
        muster.ShardedDataset(coordinator, 0)
