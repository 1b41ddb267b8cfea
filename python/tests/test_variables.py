"""Variables, from the program and from functions."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import jobs
import muster
from conftest import wait_until


@pytest.fixture
def name(request):
    return request.node.name


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "int32",
                                   "int64", "uint8", "float16", "uint16", "uint32",
                                   "uint64", "bool"])
def test_a_variable_is_read_and_written(shared_cluster, name, dtype):
    initial = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    variable = muster.Variable(initial, name=name, node=shared_cluster)
    assert variable.shape == (3, 4) and variable.dtype == initial.dtype
    assert variable.nbytes == initial.nbytes and variable.name == name
    assert (variable.read() == initial).all()
    variable.assign(1 - initial.astype("i1"))
    assert (np.asarray(variable) == (1 - initial.astype("i1")).astype(dtype)).all()
    if dtype != "bool":
        variable.assign_add(np.ones((3, 4), dtype))
        variable.assign_sub(1)
        assert (variable.numpy() == 1 - initial.astype("i1")).all()
        assert variable.version() == 4


def test_several_variables_are_read_at_once(shared_cluster, name):
    first = muster.Variable(np.arange(3.0), name=name + "/a", node=shared_cluster)
    second = muster.Variable(np.ones((2, 2), "int32"), name=name + "/b",
                             node=shared_cluster)
    one, other = muster.read_variables((first, second), timeout=30)
    assert (one == np.arange(3.0)).all()
    assert other.dtype == "int32" and (other == np.ones((2, 2))).all()
    assert muster.read_variables([]) == []
    with pytest.raises(TypeError):
        muster.read_variables([first, 7])
    with pytest.raises(TypeError):
        muster.read_variables(7)


def test_a_read_may_be_some_seconds_old(shared_cluster, name):
    mine = muster.Variable(np.zeros(3), name=name, node=shared_cluster)
    other = muster.Variable(shape=3, dtype="float64", name=name, node=shared_cluster)
    assert (mine.read(max_age=3600) == 0).all()
    other.assign_add(1)
    assert (mine.read(max_age=3600) == 0).all()
    assert (mine.read() == 1).all() and (mine.read(max_age=0) == 1).all()
    mine.assign_add(1)
    assert (mine.read(max_age=3600) == 2).all()


@pytest.mark.parametrize("dtype, value, shown", [
    ("int32", 2**40 + 7, "1099511627783"), ("int8", [1000, -1000], "-1000"),
    ("int8", np.array([5, 128]), "128"), ("uint8", -1, "-1"), ("uint8", [0, 256], "256"),
    ("int64", 2**63, "9223372036854775808"), ("int64", [2**70, 1], str(2**70)),
    ("uint16", 1 << 16, "65536"), ("uint32", -1, "-1"), ("uint64", -5, "-5"),
    ("uint64", 1 << 64, str(1 << 64)), ("float16", 65520.0, "65520"), ("bool", 2, "2"),
    ("float32", 1e300, "1e\\+300"),
    ("float32", [0.0, -1e39], "-1e\\+39"),
])
def test_numbers_out_of_range_are_errors(shared_cluster, name, dtype, value, shown):
    shape = np.shape(value)
    variable = muster.Variable(shape=shape, dtype=dtype, name=name, node=shared_cluster)
    for call in (variable.assign, variable.assign_add, variable.assign_sub):
        if dtype != "bool" or call == variable.assign:
            with pytest.raises(OverflowError, match=f"{dtype}.*{shown}.*out of range"):
                call(value)
    with pytest.raises(OverflowError, match="out of"):
        muster.Variable(value, dtype=dtype, name=name + "2", node=shared_cluster)
    assert not variable.read().any()


def test_initial_values_of_another_kind_are_converted_exactly(shared_cluster, name):
    variable = muster.Variable(np.zeros(3), dtype="int32", name=name, node=shared_cluster)
    assert variable.read().tolist() == [0, 0, 0]
    for number in (0.5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"{number} is no int32"):
            muster.Variable([1.0, number], dtype="int32", name=name + "2",
                            node=shared_cluster)


def test_numbers_at_the_end_of_the_range_are_kept(shared_cluster, name):
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                  "uint64"):
        info = np.iinfo(dtype)
        variable = muster.Variable([0, 0], dtype=dtype, name=name + dtype,
                                   node=shared_cluster)
        variable.assign([info.min, info.max])
        assert variable.read().tolist() == [info.min, info.max]
    variable = muster.Variable(np.zeros(3), dtype="float32", name=name,
                               node=shared_cluster)
    variable.assign([float("inf"), float("nan"), np.finfo("f4").max])
    assert np.isinf(variable.read()[0]) and np.isnan(variable.read()[1])


def test_a_scalar_and_a_large_variable(shared_cluster, name):
    scalar = muster.Variable(2.5, name=name + "-scalar", node=shared_cluster)
    assert scalar.read() == 2.5 and scalar.shape == ()
    large = muster.Variable(np.zeros(1 << 20), name=name + "-large", shards=2,
                            node=shared_cluster)
    large.assign_add(1)
    assert large.read().sum() == 1 << 20


def test_gradients_are_applied_with_momentum(shared_cluster, name):
    variable = muster.Variable(np.zeros(3, "f4"), name=name, node=shared_cluster)
    variable.apply_gradient(np.ones(3), 0.5, momentum=0.5)
    variable.apply_gradient(np.ones(3, "f4"), rate=0.5, momentum=0.5)
    assert np.allclose(variable.read(), -0.5 - 0.75)


def test_functions_read_and_write_variables_passed_or_captured(coordinator,
                                                               shared_cluster, name):
    variable = muster.Variable(np.zeros(4, "f4"), name=name, node=shared_cluster)

    def captured():
        variable.assign_add(1)
        return variable.read().shape

    def passed(given):
        given.assign_add(np.arange(4))

    assert coordinator.schedule(captured).fetch(30) == (4,)
    coordinator.schedule(passed, (variable,)).fetch(30)
    assert (variable.read() == 1 + np.arange(4)).all()


def test_writes_of_a_run_are_forgotten_when_it_fails(coordinator, shared_cluster, name):
    variable = muster.Variable(np.zeros(2, "f8"), name=name, node=shared_cluster)

    def write_and_fail():
        muster.current_run().add(variable, 1)
        raise ValueError("after writing")

    def write_all():
        run = muster.current_run()
        run.assign(variable, [1, 2])
        run.add(variable, [1, 1])
        run.apply_gradient(variable, [1, 1], 0.5)

    with pytest.raises(ValueError):
        coordinator.schedule(write_and_fail).fetch(30)
    with pytest.raises(ValueError):
        coordinator.join(30)
    assert (variable.read() == 0).all()
    coordinator.schedule(write_all).fetch(30)
    assert (variable.read() == [1.5, 2.5]).all()


def test_effects_count_once_although_workers_are_killed(own_cluster, name):
    cluster = own_cluster(workers=2, ps=1)
    variable = muster.Variable(np.zeros(2, "i8"), name=name, node=cluster, timeout=60)
    with muster.ClusterCoordinator(cluster) as coordinator:
        for i in range(200):
            coordinator.schedule(jobs.add_once, (variable, i % 50 == 7),
                                 effect_once=True)
            if i == 100:
                cluster.kill("worker", 0)
        coordinator.join(60)
        assert coordinator.counts()["retried"] > 0
    assert (variable.read() == 200).all()


def test_wrong_use_of_variables(shared_cluster, coordinator, name):
    def make(**options):
        options = {"name": name, "node": shared_cluster, "timeout": 20, **options}
        return muster.Variable(**options)

    variable = make(initial_value=np.zeros(3, "f4"))
    with pytest.raises(muster.errors.FailedPreconditionError):
        make(shape=(4,), dtype="f4")
    with pytest.raises(TypeError, match="None"):
        variable.assign(None)
    assert (variable.read() == 0).all()
    for write in (variable.assign, variable.assign_add, variable.assign_sub,
                  lambda value: variable.apply_gradient(value, 0.1)):
        with pytest.raises(ValueError,
                           match=rf"'{name}' has the shape \(3,\), got .* \(4, 2\)"):
            write(np.zeros((4, 2)))
        with pytest.raises(TypeError, match=f"'{name}' is float32, got complex128"):
            write(np.zeros(3, complex))
        with pytest.raises(TypeError, match=f"'{name}' is float32, got a str"):
            write("words")
        with pytest.raises(ValueError, match=f"'{name}' is float32, got a list: "):
            write([[1], [2, 3]])
        write([1, 2, 3])
        write(np.float64(1))
        write(np.zeros(3, ">i8"))
    whole = make(name=name + "/whole", initial_value=np.zeros(3, "i8"))
    with pytest.raises(TypeError, match="is int64, got float64: it is not converted"):
        whole.assign_add(1.5)
    whole.assign_add(np.ones(3, "u1"))
    whole.assign_add(True)
    assert whole.read().tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="initial value or a shape"):
        make(name="none")
    with pytest.raises(TypeError, match="dtype"):
        make(name="none", shape=3, dtype="complex64")
    with pytest.raises(ValueError, match="negative"):
        make(name="none", shape=(-1,))
    with pytest.raises(ValueError, match="dimensions"):
        make(name="none", shape=(1,) * 9)
    with pytest.raises(muster.errors.DeadlineExceededError):
        make(name="never-created", shape=3, existing=True, timeout=0.1)
    with pytest.raises(TypeError):
        coordinator.schedule(lambda: muster.current_run().add(3, 1)).fetch(30)
    with pytest.raises(TypeError):
        coordinator.join(30)
    variable.close()
    with pytest.raises(muster.errors.ClosedError):
        variable.read()


IN_ONE_PROCESS = """
import sys
import numpy as np
import muster
from muster import _worker

def read(variable):
    return float(variable.read(20)[0]), len(_worker._variables)

for number in (1, 2):
    at = f"ipc://{sys.argv[1]}/{number}-"
    cluster = {"chief": [at + "chief"], "worker": [at + "worker"], "ps": [at + "ps"]}
    nodes = [muster.Node(cluster, task_type=task) for task in ("ps", "worker", "chief")]
    nodes[0].serve(), nodes[1].serve()
    with muster.ClusterCoordinator(nodes[2], timeout=30) as coordinator:
        variables = [muster.Variable(np.full(3, number * 10.0 + i), name=f"v{i}",
                                     node=nodes[2]) for i in range(5)]
        _worker._VARIABLES_MAX = 3
        print(coordinator.fetch([coordinator.schedule(read, (variable,))
                                 for variable in variables], 30))
    for node in reversed(nodes):
        node.close()
"""


def test_a_worker_keeps_no_more_variables_than_it_may_and_each_node_its_own(tmp_path):
    done = subprocess.run([sys.executable, "-c", IN_ONE_PROCESS, str(tmp_path)],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "[(10.0, 1), (11.0, 2), (12.0, 3), (13.0, 3), (14.0, 3)]",
        "[(20.0, 1), (21.0, 2), (22.0, 3), (23.0, 3), (24.0, 3)]"], done.stderr


def write_and_fail(variable):
    muster.current_run().add(variable, 100)
    raise jobs.Odd(8, "no")


def test_what_a_run_wrote_is_forgotten_when_it_fails_with_an_error_of_its_own(
        shared_cluster, coordinator):
    variable = muster.Variable(np.zeros(3), name="forgotten.own", node=shared_cluster)
    with pytest.raises(jobs.Odd) as odd:
        coordinator.schedule(write_and_fail, (variable,), raise_on_fetch=True).fetch(30)
    assert odd.value.number == 8
    assert variable.read().tolist() == [0, 0, 0]


def test_a_lost_server_takes_no_variable_along(own_cluster, name):
    with own_cluster(workers=1, ps=2, backups=1) as cluster:
        ones = np.ones(8)
        variable = muster.Variable(np.zeros(8), name=name, shards=4, node=cluster,
                                   timeout=60)

        def is_whole():
            partitions = cluster.node.status()["partitions"]
            assert partitions["lost"] == 0
            return partitions["degraded"] == 0 and all(
                server["up"] and server["primary"] for server in partitions["servers"])

        for index in (0, 1):
            variable.assign_add(ones, timeout=60)
            cluster.kill("ps", index)
            variable.assign_add(ones, timeout=60)
            assert np.array_equal(variable.read(timeout=60), 2.0 * (index + 1) * ones)
            assert wait_until(is_whole, 60)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_handle_for_one_content_ends_with_it(own_cluster, name, tmp_path, processes):
    with own_cluster(workers=1, ps=1, processes=processes,
                     server_lost=5) as cluster, \
            muster.ClusterCoordinator(cluster, timeout=60) as coordinator:
        follows = muster.Variable(1.0, dtype="float64", name=name, node=cluster)
        same = muster.Variable(shape=(), dtype="float64", name=name, node=cluster,
                               same=True)
        assert same.same and not follows.same and same.read() == 1.0
        path = muster.Checkpoint(v=follows).save(tmp_path / "model")
        coordinator.schedule(jobs.add_once, (same,))
        coordinator.join(60)
        assert same.read() == 2.0
        cluster.kill("ps", 0)

        def restored():
            try:
                muster.checkpoint.restore_all(path, cluster, timeout=20)
                return follows.read(timeout=20) == 1.0
            except muster.errors.MusterError:
                return False

        assert wait_until(restored, 60)
        for call in (same.read, lambda: same.assign(2.0), lambda: same.assign_add(1.0)):
            with pytest.raises(muster.errors.NotFoundError):
                call()
        # Each closure has a handle of its own, for the content that it finds.
        coordinator.schedule(jobs.add_once, (same,))
        coordinator.join(60)
        assert follows.read() == 2.0


def test_a_second_initial_value_has_no_effect_and_says_so(shared_cluster):
    first = muster.Variable([1.0, 2.0], name="twice", node=shared_cluster)
    with warnings.catch_warnings():
        warnings.simplefilter("error")      # a notebook's cell that is run again
        muster.Variable(lambda: np.array([1.0, 2.0]), name="twice", node=shared_cluster)
        muster.Variable(name="twice", shape=2, dtype="float64", node=shared_cluster)
        muster.Variable(name="twice", shape=2, dtype="float64", existing=True,
                        node=shared_cluster)
    first.assign([5.0, 6.0])
    with pytest.warns(UserWarning, match="'twice' is there already and keeps") as told:
        again = muster.Variable([1.0, 3.0], name="twice", node=shared_cluster)
    assert told[0].filename == __file__
    assert again.read().tolist() == [5.0, 6.0] == first.read().tolist()


def test_variables_of_truth_values_are_not_added_to(shared_cluster):
    truth = muster.Variable([True, False], name="truth", dtype="bool",
                            node=shared_cluster)
    for add in (truth.assign_add, truth.assign_sub):
        with pytest.raises(muster.errors.InvalidArgumentError, match="does not add"):
            add([True, True])
    assert truth.read().tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["float16", "uint8", "uint16", "uint32", "uint64"])
def test_arithmetic_of_small_floats_and_unsigned_numbers(shared_cluster, dtype):
    variable = muster.Variable(np.full(3, 200, dtype), name="of" + dtype, dtype=dtype,
                               node=shared_cluster)
    variable.assign_add(np.array([1, 2, 3], dtype))
    variable.assign_sub(np.array([0, 100, 203], dtype))
    assert variable.read().tolist() == [201, 102, 0] and variable.dtype == dtype
