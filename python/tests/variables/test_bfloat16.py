"""Variables and arguments of bfloat16, which the package ml_dtypes gives to NumPy."""

import sys

import numpy as np
import pytest

import muster


@pytest.fixture
def bfloat16():
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def test_a_variable_of_bfloat16(shared_cluster, request, bfloat16):
    variable = muster.Variable([[1, 2], [3, 4]], dtype="bfloat16", shards=2,
                               name=request.node.name, node=shared_cluster)
    assert variable.dtype == bfloat16 and variable.read().dtype == bfloat16
    assert variable.nbytes == 8
    variable.assign_add(np.array(0.5, bfloat16))
    variable.assign_sub(1.0)
    variable.scatter_add([1], [[1, 1]])
    assert variable[1].astype("f4").tolist() == [3.5, 4.5]
    variable.assign(np.array([[256, 1], [1, 1]], bfloat16))
    variable.assign_add(1)      # 257 is between two of them, of which 256 is even
    assert variable.read().astype("f4").tolist() == [[256, 2], [2, 2]]
    with pytest.raises(OverflowError, match="bfloat16.*out of range"):
        variable.assign(3.4e38 * 1.5)
    with pytest.raises(OverflowError, match="out of range"):
        variable.assign([[1, 1], [1, 3.4e38]])
    variable.apply_gradient(1.0, 0.5)   # 255.5, likewise
    assert variable.read().astype("f4").tolist() == [[256, 1.5], [1.5, 1.5]]


def test_numbers_of_bfloat16_for_others(shared_cluster, request, bfloat16):
    variable = muster.Variable(np.zeros(2), name=request.node.name, node=shared_cluster)
    variable.assign(np.array([1.5, -2], bfloat16))
    assert variable.read().tolist() == [1.5, -2]
    whole = muster.Variable(np.zeros(2, "i4"), name=request.node.name + "/i",
                            node=shared_cluster)
    with pytest.raises(TypeError, match="is int32, got bfloat16"):
        whole.assign(np.array([1, 2], bfloat16))


def test_initial_values_of_bfloat16(shared_cluster, request, bfloat16):
    initializer = muster.initializers.RandomNormal(seed=1)
    variable = muster.Variable(initializer, name=request.node.name, shape=(30, 3),
                               dtype=bfloat16, node=shared_cluster)
    expected = initializer((30, 3), name=request.node.name).astype(bfloat16)
    assert (variable.read() == expected).all()


def test_bfloat16_among_arguments(coordinator, bfloat16):
    value = np.arange(6).reshape(2, 3).astype(bfloat16)
    result = coordinator.schedule(lambda array: array + array, (value,)).fetch(30)
    assert result.dtype == bfloat16 and (result == value + value).all()


def test_without_the_package(monkeypatch, shared_cluster):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="needs the package ml_dtypes"):
        muster.Variable(shape=3, dtype="bfloat16", name="b", node=shared_cluster)
