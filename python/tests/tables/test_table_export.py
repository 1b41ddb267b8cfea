"""What `muster vars export` writes, for other programs."""

import subprocess
import sys

import numpy as np
import pytest

import muster


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_safetensors_reads_what_was_exported(shared_cluster, tmp_path, dtype):
    safetensors = pytest.importorskip("safetensors.numpy")
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    name = f"exported-{dtype}"
    table = muster.Table(name, dim=3, initializer="uniform", dtype=dtype,
                         optimizer=muster.optimizers.Adagrad(0.1, 0.5, 1e-7),
                         node=shared_cluster)
    ids = np.array([5, 2**63 + 1, 70, 0], np.uint64)
    gradients = np.arange(12, dtype=np.float32).reshape(4, 3)
    table.apply_gradients(ids, gradients)
    table.apply_gradients(ids[:2], gradients[:2])

    file = tmp_path / "table.safetensors"
    subprocess.run([sys.executable, "-m", "muster", "vars", "export", str(file), name,
                    "--address", shared_cluster.node.address], check=True)
    tensors = safetensors.load_file(file)
    assert set(tensors) == {name, f"{name}#ids", f"{name}#pushes",
                            f"{name}#adagrad.accumulator"}
    found = tensors[f"{name}#ids"].view(np.uint64)
    order = [int(np.flatnonzero(found == id)[0]) for id in ids]
    assert len(found) == 4
    assert np.array_equal(tensors[name][order].astype(np.float32), table.lookup(ids))
    assert tensors[f"{name}#pushes"][order].tolist() == [2, 2, 1, 1]
    squares = gradients ** 2 * np.array([[2], [2], [1], [1]], np.float32)
    assert np.allclose(tensors[f"{name}#adagrad.accumulator"][order], 0.5 + squares)
