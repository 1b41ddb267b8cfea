"""Checkpoints of variables, over servers that die."""

import os

import numpy as np
import pytest

import muster
from conftest import wait_until
from muster import Checkpoint, CheckpointManager, errors
from muster.checkpoint import latest_checkpoint, read_checkpoint, restore_all


@pytest.fixture
def variables(shared_cluster, request):
    name = request.node.name
    made = [muster.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), shards=2,
                            name=f"{name}/a", node=shared_cluster),
            muster.Variable(7.0, dtype="float64", name=f"{name}/b", node=shared_cluster)]
    yield made


def test_what_was_saved_is_restored(variables, tmp_path):
    a, b = variables
    checkpoint = Checkpoint(model={"a": a, "more": [b]})
    path = checkpoint.save(tmp_path / "run" / "model", values={"epoch": 3, "name": "x"})
    assert os.path.basename(path) == "model-1.ckpt" and checkpoint.save_counter == 1
    a.assign(np.zeros((3, 2), np.float32))
    b.assign(0.0)
    assert latest_checkpoint(tmp_path / "run") == path
    status = checkpoint.restore(path).assert_consumed()
    assert (status.step, status.values) == (1, {"epoch": 3, "name": "x"})
    assert np.array_equal(a.read(), np.arange(6).reshape(3, 2)) and b.read() == 7.0
    content = read_checkpoint(path)
    assert [variable["shards"] for variable in content["variables"]] == [2, 1]


def test_restoring_nothing_a_part_and_too_much(variables, tmp_path):
    a, b = variables
    assert Checkpoint(a=a).restore(None).path is None
    path = Checkpoint(a=a).save(tmp_path / "model", step=17)
    b.assign(1.0)
    both = Checkpoint(a=a, b=b)
    status = both.restore(path)
    assert both.save_counter == 17 and status.names == [a.name] and b.read() == 1.0
    with pytest.raises(AssertionError, match=b.name):
        status.assert_existing_objects_matched()
    path = both.save(tmp_path / "model")
    status = Checkpoint(a=a).restore(path).expect_partial()
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=b.name):
        status.assert_consumed()


def test_a_manager_keeps_the_newest(variables, tmp_path):
    manager = CheckpointManager(Checkpoint(v=variables), tmp_path / "kept", 2)
    assert manager.restore_or_initialize() is None and manager.checkpoints == []
    for step in (1, 2, 30):
        manager.save(step)
    assert [os.path.basename(path) for path in manager.checkpoints] == [
        "ckpt-2.ckpt", "ckpt-30.ckpt"]
    variables[1].assign(5.0)
    assert manager.restore_or_initialize() == manager.latest_checkpoint
    assert manager.checkpoint.save_counter == 30 and variables[1].read() == 7.0
    with pytest.raises(ValueError):
        CheckpointManager(Checkpoint(), tmp_path, 0)


def test_a_damaged_one_is_passed_over(variables, tmp_path):
    checkpoint = Checkpoint(v=variables)
    first = checkpoint.save(tmp_path / "model")
    second = checkpoint.save(tmp_path / "model")
    data = bytearray(open(second, "rb").read())
    data[len(data) // 2] ^= 1
    open(second, "wb").write(bytes(data))
    assert latest_checkpoint(tmp_path) == first
    with pytest.raises(errors.DataLossError):
        checkpoint.restore(second)
    os.unlink(first)
    with pytest.raises(errors.DataLossError):
        latest_checkpoint(tmp_path)
    assert latest_checkpoint(tmp_path / "nowhere") is None


def test_wrong_use_of_checkpoints(variables, tmp_path, shared_cluster):
    checkpoint = Checkpoint(variables)
    for call, kind in (
            (lambda: Checkpoint(a=3), TypeError),
            (lambda: Checkpoint(a=[{}, 3]), TypeError),
            (lambda: checkpoint.save(tmp_path / "bad/na me"), ValueError),
            (lambda: checkpoint.save(tmp_path / "model", values=object()), TypeError),
            (lambda: checkpoint.restore(tmp_path / "none"), errors.NotFoundError),
            (lambda: checkpoint.save("/proc/none/model"), errors.MusterError)):
        with pytest.raises(kind):
            call()
    path = Checkpoint(variables).save(tmp_path / "model")
    variables[1].assign(0.0)
    restore_all(path, shared_cluster)
    assert variables[1].read() == 7.0


def test_variables_come_back_after_their_servers_were_killed(own_cluster, tmp_path):
    cluster = own_cluster(workers=1, ps=2, server_lost=5)
    content = np.arange(1000, dtype=np.float32)
    variable = muster.Variable(content, name="kept", shards=2, node=cluster, timeout=60)
    checkpoint = Checkpoint(variable)
    path = checkpoint.save(tmp_path / "model")
    for index in (0, 1):
        cluster.kill("ps", index)

    def restored():
        try:
            checkpoint.restore(path, timeout=20)
            return np.array_equal(variable.read(timeout=20), content)
        except errors.MusterError:
            return False
    assert wait_until(restored, 60)


def test_the_latest_is_found_whatever_it_is_called(variables, tmp_path):
    checkpoint = muster.Checkpoint(v=variables[1])
    assert muster.latest_checkpoint(tmp_path) is None
    other = checkpoint.save(str(tmp_path / "an-other"))
    assert muster.latest_checkpoint(tmp_path) == other
    manager = muster.CheckpointManager(checkpoint, tmp_path)
    saved = manager.save()
    os.utime(other, (1, 1))
    assert muster.latest_checkpoint(tmp_path) == saved == manager.latest_checkpoint
    assert muster.latest_checkpoint(str(tmp_path), "an-other") == other
    assert muster.latest_checkpoint(tmp_path, "nobody") is None
