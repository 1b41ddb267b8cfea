"""Workers whose functions of Python run in processes of theirs."""

import concurrent.futures
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import jobs
import muster
from children import children_of, is_gone, spin
from conftest import wait_until


def meet(key, count, folder):
    """Returns when as many functions are here at the same time."""
    open(os.path.join(folder, f"{key}-{os.getpid()}"), "w").close()
    limit = time.monotonic() + 30
    while len(os.listdir(folder)) < count and time.monotonic() < limit:
        time.sleep(0.002)
    return os.getpid(), len(os.listdir(folder)) >= count


@pytest.fixture(scope="module")
def cluster():
    with muster.LocalCluster(workers=1, ps=1, processes=3, heartbeat=0.2) as made:
        yield made


@pytest.fixture
def lanes(cluster):
    with muster.ClusterCoordinator(cluster) as coordinator:
        yield coordinator


# ---- where functions run ----

def test_as_many_functions_run_at_a_time_each_in_a_process_of_its_own(cluster, lanes,
                                                                      tmp_path):
    met = lanes.fetch([lanes.schedule(meet, (i, 3, str(tmp_path))) for i in range(3)], 60)
    pids = {pid for pid, _ in met}
    assert len(pids) == 3 and all(together for _, together in met)
    assert cluster.pid("worker", 0) not in pids
    assert pids == {pid for pid, _ in children_of(cluster.pid("worker", 0))}
    task = [task for task in cluster.node.status(5)["tasks"]
            if task["type"] == "worker"][0]
    assert task["threads"] == 3


def test_processes_are_used_again(lanes):
    first = set(lanes.fetch([lanes.schedule(jobs.pid) for _ in range(200)], 60))
    second = set(lanes.fetch([lanes.schedule(jobs.pid) for _ in range(200)], 60))
    assert len(first | second) <= 3


def test_arguments_and_results_are_as_in_threads(lanes):
    for value in (None, True, 5, -2.5, "text", b"bytes", "\0", [1, "a"], {"k": (1, 2)},
                  {1, 2}, 1 << 80, complex(1, 2)):
        got = lanes.schedule(jobs.same, (value,)).fetch(30)
        assert got == value and type(got) is type(value)
    assert lanes.schedule(jobs.add, (1,), {"b": 2}).fetch(30) == 3
    assert lanes.schedule(lambda x: x + 1, (1,)).fetch(30) == 2
    kept = lanes.schedule(jobs.same, ([1, {"a": np.arange(3)}],), pin_result=True)
    assert lanes.schedule(jobs.same, (kept,)).fetch(30)[1]["a"].tolist() == [0, 1, 2]


def change(array):
    array[...] += 1
    return array


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193, 1 << 20])
def test_arrays_of_any_size_travel_both_ways(lanes, size):
    array = np.arange(size, dtype=np.float64)
    assert np.array_equal(lanes.schedule(change, (array,)).fetch(60), array + 1)
    pair = lanes.schedule(jobs.same, ({"a": array, "b": array[::2]},)).fetch(60)
    assert np.array_equal(pair["a"], array) and np.array_equal(pair["b"], array[::2])


def test_arrays_of_any_shape_and_dtype_travel(lanes):
    for array in (np.ones((300, 400), np.float32), np.zeros((64, 64, 64), np.uint8),
                  np.arange(1 << 17).reshape(2, -1).T, np.ones(1 << 16, bool)):
        got = lanes.schedule(jobs.same, (array,)).fetch(60)
        assert got.dtype == array.dtype and np.array_equal(got, array)


def keep_in_module(array):
    kept = jobs.__dict__.setdefault("kept_arrays", [])
    kept.append(array)
    return [float(each[0]) for each in kept], os.getpid()


def test_an_array_that_a_function_keeps_is_not_changed_by_later_ones(own_cluster):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        for i in range(3):
            heads, _ = coordinator.schedule(
                keep_in_module, (np.full(1 << 16, float(i)),)).fetch(30)
        assert heads == [0.0, 1.0, 2.0]


# ---- errors ----

def test_exceptions_keep_class_and_traceback(lanes):
    value = lanes.schedule(jobs.fail, ("why",), raise_on_fetch=True)
    with pytest.raises(ValueError, match="why") as caught:
        value.fetch(30)
    assert "in fail" in str(caught.value.__cause__)
    value = lanes.schedule(jobs.fail_odd, raise_on_fetch=True)
    with pytest.raises(jobs.Odd) as odd:
        value.fetch(30)
    assert odd.value.number == 7
    value = lanes.schedule(jobs.fail_unpicklable, raise_on_fetch=True)
    with pytest.raises(Exception, match="of a function") as local:
        value.fetch(30)
    assert type(local.value).__name__ == "Local"


def test_the_first_error_is_raised_by_join(lanes):
    lanes.schedule(jobs.fail, ("first",))
    with pytest.raises(ValueError, match="first"):
        lanes.join(30)
    assert lanes.schedule(jobs.same, (1,)).fetch(30) == 1


def test_an_input_that_failed_is_an_input_error(lanes):
    bad = lanes.schedule(jobs.fail, ("input",), raise_on_fetch=True)
    value = lanes.schedule(jobs.same, (bad,), raise_on_fetch=True)
    with pytest.raises(muster.InputError):
        value.fetch(30)


def test_sys_exit_is_an_error_of_the_function_alone(lanes):
    before = set(lanes.fetch([lanes.schedule(jobs.pid) for _ in range(50)], 30))
    with pytest.raises(BaseException) as caught:
        lanes.schedule(sys.exit, (3,), raise_on_fetch=True).fetch(30)
    assert "SystemExit" in str(caught.value) or isinstance(caught.value, SystemExit)
    after = set(lanes.fetch([lanes.schedule(jobs.pid) for _ in range(50)], 30))
    assert len(before | after) <= 3


# ---- the run ----

def test_a_function_knows_its_run(cluster, lanes):
    value = lanes.schedule(jobs.whoami, name="who")
    seen = value.fetch(30)
    assert seen.pop("pid") != cluster.pid("worker", 0)
    assert seen.pop("closure") > 0
    assert seen == {"worker": 0, "attempt": 1, "name": "who", "type": "worker",
                    "cancelled": False, "task": "/job:worker/task:0"}


def outlive():
    jobs.__dict__["old_run"] = muster.current_run()
    return os.getpid()


def use_old():
    old = jobs.__dict__.get("old_run")
    if old is None:
        return None
    try:
        old.attempt
        old.log("no")
    except muster.errors.FailedPreconditionError as error:
        return str(error)
    return "it was used"


def test_a_run_is_over_when_its_function_has_returned(own_cluster):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.schedule(outlive).fetch(30)
        assert "ended" in coordinator.schedule(use_old).fetch(30)


def in_a_thread():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(muster.current_run).result()
        except muster.errors.FailedPreconditionError as error:
            return str(error)


def test_a_run_is_for_the_thread_of_its_function(lanes):
    assert "current_run" in lanes.schedule(in_a_thread).fetch(30)


def report(step):
    run = muster.current_run()
    run.report_metric("loss", 0.5, step)
    return run.node.task_count("worker"), run.node.get_setting("none")


def test_progress_is_reported_and_the_node_answers(cluster, lanes):
    assert lanes.schedule(report, (7,)).fetch(30) == (1, None)

    def metric():
        try:
            return cluster.node.get_metric("loss")
        except muster.MusterError:
            return None

    assert wait_until(metric) == (0.5, 7)


def no_coordinator():
    muster.ClusterCoordinator(muster.current_run().node)


def test_what_a_process_has_not_is_refused_with_words(lanes):
    with pytest.raises((TypeError, AttributeError, muster.MusterError),
                       match="process"):
        lanes.schedule(no_coordinator, raise_on_fetch=True).fetch(30)


# ---- variables ----

def use_variable(variable, by):
    before = variable.read()
    variable.assign_add(by)
    assert isinstance(variable, muster.Variable) and variable.shape == before.shape
    assert np.asarray(variable).tolist() == (before + by).tolist()
    return before, variable.version()


def test_variables_are_read_and_written_at_once(cluster, lanes):
    variable = muster.Variable(np.zeros(4), name="lanes.at_once", node=cluster)
    before, version = lanes.schedule(use_variable, (variable, 2.0)).fetch(30)
    assert before.tolist() == [0] * 4 and version >= 1
    assert variable.read().tolist() == [2] * 4


def open_new(name):
    made = muster.Variable(lambda: np.arange(3.0), name=name)
    made.assign_add(1)
    again = muster.Variable(shape=(3,), dtype="float64", name=name, existing=True,
                            node=muster.current_run().node)
    return again.read(), made.name, made.trainable


def test_variables_are_opened_in_a_function(cluster, lanes):
    read, name, trainable = lanes.schedule(open_new, ("lanes.new",)).fetch(30)
    assert read.tolist() == [1, 2, 3] and name == "lanes.new" and trainable
    with pytest.raises(TypeError, match="unknown"):
        lanes.schedule(muster.Variable, (), {"unknown": 1}, raise_on_fetch=True).fetch(30)


def write_all(variable, value):
    run = muster.current_run()
    run.assign(variable, value)
    run.add(variable, 1)
    run.apply_gradient(variable, np.ones(variable.shape), 0.5)
    assert variable.read().sum() == 0   # nothing before it has returned


def write_and_fail(variable):
    muster.current_run().add(variable, 100)
    raise jobs.Odd(8, "no")


def test_writes_of_a_run_are_applied_when_it_has_returned(cluster, lanes):
    variable = muster.Variable(np.zeros(1 << 15), name="lanes.writes", node=cluster)
    lanes.schedule(write_all, (variable, np.full(1 << 15, 3.0))).fetch(30)
    assert (variable.read() == 3.5).all()
    for raise_on_fetch in (True, False):
        with pytest.raises(jobs.Odd) as odd:
            lanes.schedule(write_and_fail, (variable,),
                           raise_on_fetch=raise_on_fetch).fetch(30)
        assert odd.value.number == 8
    with pytest.raises(jobs.Odd):
        lanes.join(30)
    assert (variable.read() == 3.5).all()


def test_an_effect_counts_once_although_its_process_dies(cluster, lanes):
    variable = muster.Variable(0, name="lanes.once", dtype="int64", node=cluster)
    lanes.fetch([lanes.schedule(jobs.add_once, (variable, i % 5 == 0), effect_once=True)
                 for i in range(20)], 60)
    assert int(variable.read()) == 20


# ---- what stays on a worker ----

class Counter:
    """Cannot be pickled: it is made where it is used."""

    def __init__(self, start):
        self.count = start
        self.file = open(os.devnull)

    def up(self):
        self.count += 1
        return self.count, os.getpid()


def counter_up(counter):
    return counter.up()


def test_a_per_worker_value_is_built_once_in_each_process(lanes):
    value = lanes.create_per_worker_value(Counter, (10,))
    seen = lanes.fetch([lanes.schedule(counter_up, (value,)) for _ in range(60)], 60)
    for pid in {pid for _, pid in seen}:
        counts = sorted(count for count, of in seen if of == pid)
        assert counts == list(range(11, 11 + len(counts)))


def fail_to_build():
    raise KeyError("never")


def test_a_value_that_cannot_be_built_is_an_input_error(lanes):
    value = lanes.create_per_worker_value(fail_to_build)
    with pytest.raises(muster.InputError) as caught:
        lanes.schedule(jobs.same, (value,), raise_on_fetch=True).fetch(30)
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_elements_of_a_workers_dataset_are_dealt_once_to_its_processes(lanes):
    values = lanes.create_per_worker_dataset(jobs.numbers)
    iterator = iter(values)
    got = lanes.fetch([lanes.schedule(jobs.next_of, (iterator,)) for _ in range(300)], 60)
    assert sorted(got) == list(range(300))


def loaded():
    return len(sys.modules["muster._process"]._objects)


def test_functions_that_the_worker_drops_are_dropped_in_its_processes(own_cluster):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        for i in range(1500):
            coordinator.schedule(lambda i=i: i)
        coordinator.join(60)
        assert coordinator.schedule(loaded).fetch(30) <= 1100


def shard_of(shard, base):
    return base + shard.number


def test_shards_are_dealt_to_processes(lanes):
    with_shards = muster.ShardedDataset(lanes, shards=5)
    while with_shards.schedule(shard_of, (10,)):
        pass
    with_shards.join(30)
    assert with_shards.record()


# ---- how it is asked for ----

FORGED = """
import muster

@muster.register("forged.same")
def same(value, array):
    return [value, int(array.size)]
"""


def test_maps_of_any_keys_arrive_as_they_are(own_cluster, tmp_path, monkeypatch):
    (tmp_path / "forged.py").write_text(FORGED)
    monkeypatch.syspath_prepend(str(tmp_path))
    cluster = own_cluster(workers=1, processes=1, python="forged")
    array = np.zeros(1 << 17, np.uint8)
    with muster.ClusterCoordinator(cluster) as coordinator:
        for value in ({"python.object": 1}, {"python.object": 0},
                      {"python.shared": [1, 0, 4]},
                      {"python.shared": [1, 1 << 40, 1 << 20]}):
            given = coordinator.schedule("forged.same", [value, array])
            assert given.fetch(30) == [value, array.size]


MODULE = """
import os
import muster

@muster.register("lanes.where")
def where(a=0):
    return {"pid": os.getpid(), "a": a}

def muster_open(node):
    node.register_function("lanes.bound", lambda: [node.task, os.getpid()])
"""


def test_registered_functions_run_in_processes(own_cluster, tmp_path, monkeypatch):
    (tmp_path / "lane_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    cluster = own_cluster(workers=1, processes=2, python="lane_module")
    with muster.ClusterCoordinator(cluster) as coordinator:
        seen = coordinator.schedule("lanes.where", kwargs={"a": 3}).fetch(30)
        worker = cluster.pid("worker", 0)
        assert seen["a"] == 3 and seen["pid"] != worker
        # It has captured the node: it stays with it.
        assert coordinator.schedule("lanes.bound").fetch(30) == ["/job:worker/task:0",
                                                                 worker]


def environment(**variables):
    """In which a process can import the functions of these tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}


def serve_cluster(command, **variables):
    chief = muster.Node({"chief": ["127.0.0.1:0"]}, task_type="chief", task_index=0)
    spec = '{"chief": ["%s"], "worker": []}' % chief.address.replace("tcp://", "")
    process = subprocess.Popen(
        [*command, "--cluster", spec, "--task", "worker:0", "--bind",
         "tcp://127.0.0.1:0", "--grace-ms", "2000"], env=environment(**variables))
    return chief, process


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_a_node_takes_the_number_from_its_flag_or_variable(how):
    command = [sys.executable, "-m", "muster", "node"]
    variables = {}
    if how == "flag":
        command += ["--processes", "2"]
    else:
        variables["MUSTER_PROCESSES"] = "2"
    chief, process = serve_cluster(command, **variables)
    try:
        with muster.ClusterCoordinator(chief) as coordinator:
            pids = set(coordinator.fetch(
                [coordinator.schedule(spin, (0.1,)) for _ in range(8)], 60))
            assert len(pids) == 2 and process.pid not in pids
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 128 + signal.SIGINT)
        assert wait_until(lambda: all(is_gone(pid) for pid in pids), 10)
    finally:
        process.kill()
        process.wait()
        chief.close()


RUN = """
import os, sys, time
import muster

def where():
    time.sleep(0.05)
    return os.getpid(), __debug__

@muster.program("chief")
def main(node):
    with muster.ClusterCoordinator(node) as coordinator:
        seen = coordinator.fetch([coordinator.schedule(where) for _ in range(10)])
    print(len({pid for pid, _ in seen}), seen[0][1], flush=True)
"""


def test_muster_run_has_processes_with_the_flags_of_its_interpreter(tmp_path):
    (tmp_path / "lane_job.py").write_text(RUN)
    done = subprocess.run(
        [sys.executable, "-O", "-m", "muster", "run", "--workers", "1", "--ps", "0",
         "--python", "lane_job", "--processes", "2"], cwd=tmp_path, text=True,
        capture_output=True, timeout=60, env={**environment(), "PYTHONOPTIMIZE": "1"})
    assert done.returncode == 0, done.stderr
    assert "2 False" in done.stdout


def signal_all(process):
    """As a terminal's Ctrl-C and most managers do."""
    for pid in [process.pid, *(pid for pid, _ in children_of(process.pid))]:
        os.kill(pid, signal.SIGTERM)


def test_a_signal_to_all_lets_functions_of_a_node_finish():
    chief, process = serve_cluster([sys.executable, "-m", "muster", "node",
                                    "--processes", "1"])
    try:
        with muster.ClusterCoordinator(chief) as coordinator:
            coordinator.schedule(spin, (0,)).fetch(30)
            value = coordinator.schedule(spin, (0.5,))
            time.sleep(0.2)
            signal_all(process)
            assert value.fetch(20) > 0
        assert process.wait(20) in (0, 128 + signal.SIGTERM)
    finally:
        process.kill()
        process.wait(20)
        chief.close()


WORKER = """
import sys
import muster
server = muster.Server({"chief": [sys.argv[1]], "worker": [sys.argv[2]]}, "worker", 0,
                       protocol="", processes=2)
server.join()
"""


def test_a_server_has_processes(tmp_path):
    addresses = [f"ipc://{tmp_path}/chief", f"ipc://{tmp_path}/worker"]
    chief = muster.Node({"chief": addresses[:1], "worker": addresses[1:]},
                        task_type="chief", task_index=0)
    process = subprocess.Popen([sys.executable, "-c", WORKER, *addresses],
                               env=environment())
    try:
        with muster.ClusterCoordinator(chief) as coordinator:
            pids = set(coordinator.fetch(
                [coordinator.schedule(spin, (0.1,)) for _ in range(8)], 60))
            assert len(pids) == 2 and process.pid not in pids
        chief.finish_job(timeout=5)
        assert process.wait(20) == 0
        assert wait_until(lambda: all(is_gone(pid) for pid in pids), 10)
    finally:
        process.kill()
        process.wait()
        chief.close()


def test_threads_and_processes_are_not_both_possible():
    with pytest.raises(ValueError, match="processes"):
        muster.LocalCluster(workers=1, threads=2, processes=2)
    with pytest.raises(ValueError, match="processes"):
        muster.LocalCluster(workers=1, processes=-1)
    with pytest.raises(ValueError, match="processes"):
        muster.Node({"chief": ["127.0.0.1:0"]}, task_type="chief", threads=2, processes=2)


# ---- over such a cluster ----

def initialize(number):
    jobs.__dict__["initialized"] = number


def initialized():
    time.sleep(0.02)
    return jobs.__dict__.get("initialized"), os.getpid()


def test_an_executor_initializes_each_process(own_cluster):
    with muster.Executor(1, processes=2, initializer=initialize, initargs=(5,)) as pool:
        seen = [future.result(60) for future in [pool.submit(initialized)
                                                 for _ in range(20)]]
        assert {number for number, _ in seen} == {5}
        assert len({pid for _, pid in seen}) == 2
        assert list(pool.map(jobs.same, range(100), chunksize=7)) == list(range(100))
        with pytest.raises(ValueError, match="no"):
            pool.submit(jobs.fail).result(30)


def test_joblib_runs_on_it(cluster):
    joblib = pytest.importorskip("joblib")
    import muster.joblib  # noqa: F401

    with joblib.parallel_config("muster", cluster=cluster):
        got = joblib.Parallel(n_jobs=3)(joblib.delayed(pow)(i, 2) for i in range(50))
    assert got == [i * i for i in range(50)]


def test_a_module_is_imported_by_a_process_before_it_is_used(own_cluster, tmp_path,
                                                             monkeypatch):
    (tmp_path / "lane_import.py").write_text(textwrap.dedent("""
        import builtins
        builtins.lane_imported = True
    """))
    monkeypatch.syspath_prepend(str(tmp_path))
    cluster = own_cluster(workers=1, processes=1, python="lane_import")
    with muster.ClusterCoordinator(cluster) as coordinator:
        value = coordinator.schedule(lambda: (hasattr(__import__("builtins"),
                                                      "lane_imported"), os.getpid()))
        assert value.fetch(30)[0]


def test_processes_are_replaced_after_a_number_of_functions(caplog):
    with muster.Executor(1, processes=2, max_tasks_per_child=3,
                         initializer=jobs.same, initargs=(1,)) as executor:
        pids = list(executor.map(jobs.pid_of, range(20)))
        counts = [pids.count(pid) for pid in set(pids)]
        assert max(counts) <= 3 and len(counts) >= 7
        error = executor.submit(jobs.fail, "no").exception(30)
        assert isinstance(error, ValueError)
    assert "lost" not in caplog.text and "ended with" not in caplog.text


@pytest.mark.parametrize("options", [
    {"max_tasks_per_child": 0, "processes": 1}, {"max_tasks_per_child": 1}])
def test_wrong_numbers_of_functions_for_a_process(options):
    with pytest.raises(ValueError, match="max_tasks_per_child is"):
        muster.Executor(1, **options)
