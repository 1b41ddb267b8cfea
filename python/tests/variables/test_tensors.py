"""Tensors of others in place of arrays, and arrays that are written in place."""

import numpy as np
import pytest

import muster

from_dlpack = pytest.mark.skipif(not hasattr(np, "from_dlpack"),
                                 reason="NumPy has no from_dlpack")


class Tensor:
    """What has __dlpack__ alone; a leaf of a graph as torch's are, without `detach`."""

    def __init__(self, array):
        self.array = np.array(array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Leaf(Tensor):
    """One that has a gradient, and gives its memory only without it."""

    def __array__(self, *_, **__):
        raise RuntimeError("call detach() first")

    def detach(self):
        return Tensor(self.array)


@pytest.fixture
def name(request):
    return request.node.name


@from_dlpack
@pytest.mark.parametrize("tensor", [Tensor, Leaf])
def test_tensors_are_given(shared_cluster, name, tensor):
    variable = muster.Variable(tensor(np.zeros((4, 2), np.float32)), name=name,
                               node=shared_cluster)
    assert variable.shape == (4, 2) and variable.dtype == np.float32
    variable.assign(tensor(np.ones((4, 2), np.float32)))
    variable.assign_add(tensor(np.ones((4, 2), np.float32)))
    variable.scatter_add(tensor([1]), tensor(np.ones((1, 2), np.float32)))
    variable.apply_gradient(tensor(np.ones((4, 2), np.float32)), 1.0)
    muster.optimizers.SGD(1.0).apply_gradients(
        [(tensor(np.ones((4, 2), np.float32)), variable)])
    assert variable.gather(tensor([1, 0])).tolist() == [[1, 1], [0, 0]]
    with pytest.raises(TypeError, match="is float32"):
        variable.assign(tensor(np.ones((4, 2), complex)))


@from_dlpack
def test_tensors_of_tables(shared_cluster, name):
    table = muster.Table(name, dim=2, optimizer=1.0, node=shared_cluster)
    table.apply_gradients(Leaf(np.array([1, 2])), Leaf(np.ones((2, 2), np.float32)))
    assert table.lookup(Leaf(np.array([2, 3]))).tolist() == [[-1, -1], [0, 0]]


@from_dlpack
def test_variables_are_taken(shared_cluster, name):
    variable = muster.Variable(np.arange(3.0), name=name, node=shared_cluster)
    assert variable.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(variable).tolist() == [0, 1, 2]


def test_torch(shared_cluster, name):
    torch = pytest.importorskip("torch")
    variable = muster.Variable(torch.zeros(3, requires_grad=True), name=name,
                               node=shared_cluster)
    variable.assign_add(torch.ones(3))
    assert torch.from_dlpack(variable).tolist() == [1, 1, 1]
    memory = torch.zeros(3)
    assert variable.read(out=memory) is memory and memory.tolist() == [1, 1, 1]


# ---- in place ----

class Memory:
    """What shares an array's memory."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.keep = array


def test_reads_in_place(shared_cluster, name):
    variable = muster.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name=name,
                               node=shared_cluster)
    table = muster.Table(name, dim=2, initializer="ones", node=shared_cluster)
    whole, rows = np.zeros((3, 2), np.float32), np.zeros((1, 2, 2), np.float32)
    assert variable.read(out=whole) is whole and whole.tolist()[2] == [4, 5]
    assert variable.read(max_age=60, out=whole) is whole
    assert variable.gather([[2, 0]], out=rows) is rows
    assert rows.tolist() == [[[4, 5], [0, 1]]]
    assert table.lookup([[7, 8]], out=rows) is rows and (rows == 1).all()
    memory = Memory(whole)
    assert table.lookup([1, 2, 3], out=memory) is memory and (whole == 1).all()
    assert variable.read(out=memory) is memory and whole[2, 1] == 5


@pytest.mark.parametrize("out, error, words", [
    (np.zeros((2, 2), np.float32), ValueError, "expected .3, 2. and float32"),
    (np.zeros((3, 2)), ValueError, "the dtype float64: expected"),
    (np.zeros((2, 3), np.float32).T, ValueError, "without gaps"),
    (np.broadcast_to(np.float32(0), (3, 2)), ValueError, "a writeable array"),
    ([[0, 0], [0, 0], [0, 0]], TypeError, "does not share its memory")])
def test_what_is_not_written(shared_cluster, name, out, error, words):
    variable = muster.Variable(np.zeros((3, 2), np.float32), name=name,
                               node=shared_cluster)
    for read in (lambda: variable.read(out=out),
                 lambda: variable.gather([0, 1, 2], out=out)):
        with pytest.raises(error, match=words):
            read()


def in_place(variable, table):
    whole, rows = np.zeros((3, 2), np.float32), np.zeros((2, 2), np.float32)
    assert variable.read(out=whole) is whole and whole[2, 1] == 5
    assert variable.gather([2, 1], out=rows) is rows and rows[0, 1] == 5
    assert table.lookup([1, 2], out=rows) is rows and (rows == 1).all()


def test_reads_in_place_in_processes(name):
    with muster.LocalCluster(workers=1, ps=1, processes=1) as cluster:
        variable = muster.Variable(np.arange(6, dtype=np.float32).reshape(3, 2),
                                   name=name)
        table = muster.Table(name, dim=2, initializer="ones")
        with muster.ClusterCoordinator(cluster) as coordinator:
            coordinator.fetch(coordinator.schedule(in_place, (variable, table)), 60)
