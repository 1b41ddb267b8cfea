"""Checkpoints of variables, over servers that die."""

import json
import os
import shutil

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
    assert os.path.basename(path) == "model-1" and checkpoint.save_counter == 1
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
        "ckpt-2", "ckpt-30"]
    variables[1].assign(5.0)
    assert manager.restore_or_initialize() == manager.latest_checkpoint
    assert manager.checkpoint.save_counter == 30 and variables[1].read() == 7.0
    with pytest.raises(ValueError):
        CheckpointManager(Checkpoint(), tmp_path, 0)


def test_a_damaged_one_is_passed_over(variables, tmp_path):
    checkpoint = Checkpoint(v=variables)
    first = checkpoint.save(tmp_path / "model")
    second = checkpoint.save(tmp_path / "model")
    file = os.path.join(second, "00001-of-00001.safetensors")
    data = bytearray(open(file, "rb").read())
    data[len(data) // 2] ^= 1
    open(file, "wb").write(bytes(data))
    assert latest_checkpoint(tmp_path) == first
    with pytest.raises(errors.DataLossError):
        checkpoint.restore(second)
    shutil.rmtree(first)
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


def test_other_programs_read_what_was_saved(variables, tmp_path, shared_cluster):
    numpy = pytest.importorskip("safetensors.numpy")
    flags = muster.Variable([True, False], dtype="bool", name="read/flags",
                            node=shared_cluster)
    ids = muster.Variable(np.array([2**64 - 1, 1], np.uint64), name="read/ids",
                          node=shared_cluster)
    saved = variables + [flags, ids]
    path = Checkpoint(v=saved).save(tmp_path / "model",
                                    values={"epoch": 3, "rate": 0.5, "raw": b"\0x"})
    with open(os.path.join(path, "model.safetensors.index.json")) as index:
        files = json.load(index)["weight_map"]
    assert set(files) == {variable.name for variable in saved}
    for variable in saved:
        tensor = numpy.load_file(os.path.join(path, files[variable.name]))[variable.name]
        value = variable.read()
        assert tensor.dtype == value.dtype and np.array_equal(tensor, value)
    with open(os.path.join(path, "manifest.json")) as manifest:
        assert json.load(manifest)["values"] == {"epoch": 3, "rate": 0.5,
                                                 "raw": {"$bytes": "AHg="}}


def test_what_other_programs_saved_is_restored(variables, tmp_path, shared_cluster):
    numpy = pytest.importorskip("safetensors.numpy")
    a, b = variables
    matrix = np.arange(6, 12, dtype=np.float32).reshape(3, 2)
    large = np.arange(100000, dtype=np.int32)
    numpy.save_file({a.name: matrix, "foreign/large": large}, tmp_path / "a.safetensors",
                    {"by": "another program"})
    status = Checkpoint(a).restore(tmp_path / "a.safetensors")
    assert (status.step, status.values, status.names) == (0, None, [a.name])
    assert np.array_equal(a.read(), matrix)

    # All files of a directory, and variables that nobody has made.
    numpy.save_file({b.name: np.array(3.0)}, tmp_path / "b.safetensors")
    restore_all(tmp_path, shared_cluster)
    made = muster.Variable(np.zeros_like(large), name="foreign/large",
                           node=shared_cluster)
    assert np.array_equal(made.read(), large) and b.read() == 3.0
    names = [variable["name"] for variable in read_checkpoint(tmp_path)["variables"]]
    assert names == sorted([a.name, b.name, "foreign/large"])
    with open(tmp_path / "b.safetensors", "ab") as file:
        file.write(b"x")
    with pytest.raises(errors.DataLossError, match="b.safetensors: there are bytes"):
        restore_all(tmp_path, shared_cluster)
