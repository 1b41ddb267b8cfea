"""Workers whose functions of Python run in processes of theirs."""

import concurrent.futures
import ctypes
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
from conftest import wait_until


def children_of(pid):
    """The processes that a worker has started and not reaped, dead ones too."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append((int(name), fields[0]))
    return found


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def files_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def spin(seconds):
    """Never gives the GIL away for long."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        pass
    return os.getpid()


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
    kept = lanes.schedule(jobs.same, ([1, {"a": np.arange(3)}],), keep=True)
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
    value = lanes.schedule(jobs.fail, ("why",), own_error=True)
    with pytest.raises(ValueError, match="why") as caught:
        value.fetch(30)
    assert "in fail" in str(caught.value.__cause__)
    value = lanes.schedule(jobs.fail_odd, own_error=True)
    with pytest.raises(jobs.Odd) as odd:
        value.fetch(30)
    assert odd.value.number == 7
    value = lanes.schedule(jobs.fail_unpicklable, own_error=True)
    with pytest.raises(Exception, match="of a function") as local:
        value.fetch(30)
    assert type(local.value).__name__ == "Local"


def test_the_first_error_is_raised_by_join(lanes):
    lanes.schedule(jobs.fail, ("first",))
    with pytest.raises(ValueError, match="first"):
        lanes.join(30)
    assert lanes.schedule(jobs.same, (1,)).fetch(30) == 1


def test_an_input_that_failed_is_an_input_error(lanes):
    bad = lanes.schedule(jobs.fail, ("input",), own_error=True)
    value = lanes.schedule(jobs.same, (bad,), own_error=True)
    with pytest.raises(muster.InputError):
        value.fetch(30)


def test_sys_exit_is_an_error_of_the_function_alone(lanes):
    before = set(lanes.fetch([lanes.schedule(jobs.pid) for _ in range(50)], 30))
    with pytest.raises(BaseException) as caught:
        lanes.schedule(sys.exit, (3,), own_error=True).fetch(30)
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
    run.report("loss", 0.5, step)
    return run.node.task_count("worker"), run.node.setting("none")


def test_progress_is_reported_and_the_node_answers(cluster, lanes):
    assert lanes.schedule(report, (7,)).fetch(30) == (1, None)

    def metric():
        try:
            return cluster.node.metric("loss")
        except muster.MusterError:
            return None

    assert wait_until(metric) == (0.5, 7)


def no_coordinator():
    muster.ClusterCoordinator(muster.current_run().node)


def test_what_a_process_has_not_is_refused_with_words(lanes):
    with pytest.raises((TypeError, AttributeError, muster.MusterError),
                       match="process"):
        lanes.schedule(no_coordinator, own_error=True).fetch(30)


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
        lanes.schedule(muster.Variable, (), {"unknown": 1}, own_error=True).fetch(30)


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
    for own_error in (True, False):
        with pytest.raises(jobs.Odd) as odd:
            lanes.schedule(write_and_fail, (variable,), own_error=own_error).fetch(30)
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
        lanes.schedule(jobs.same, (value,), own_error=True).fetch(30)
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


# ---- ends ----

def beside(folder):
    open(os.path.join(folder, f"begun-{muster.current_run().attempt}"), "w").close()
    limit = time.monotonic() + 30
    while not os.path.exists(os.path.join(folder, "go")) and time.monotonic() < limit:
        time.sleep(0.005)
    return len(os.listdir(folder))


@pytest.mark.parametrize("how", ["exit", "segfault", "kill"])
def test_a_crash_takes_only_its_closure(own_cluster, tmp_path, how):
    lines = []
    cluster = own_cluster(workers=1, processes=2,
                          on_line=lambda *line: lines.append(line))
    with muster.ClusterCoordinator(cluster) as coordinator:
        worker = cluster.wait(30).pid("worker", 0)
        other = coordinator.schedule(beside, (str(tmp_path),))
        assert wait_until(lambda: os.listdir(tmp_path))
        assert coordinator.schedule(jobs.die_first, (how,)).fetch(30) == 2
        (tmp_path / "go").touch()
        assert other.fetch(30) == 2     # the two files: it has begun once
        assert cluster.pid("worker", 0) == worker
        assert cluster.tasks[0]["restarts"] == 0
        pids = set(coordinator.fetch(
            [coordinator.schedule(spin, (0.05,)) for _ in range(8)], 30))
        assert len(pids) == 2
        assert {pid for pid, _ in children_of(worker)} == pids
    words = {"exit": "exit code 3", "segfault": "signal 11", "kill": "signal 9"}
    assert wait_until(lambda: any(words[how] in line for _, _, line in lines)), lines


def test_a_closure_whose_processes_die_is_given_up(own_cluster):
    cluster = own_cluster(workers=1, processes=2, attempts_max=3)
    with muster.ClusterCoordinator(cluster) as coordinator:
        worker = cluster.wait(30).pid("worker", 0)
        value = coordinator.schedule(os._exit, (4,), own_error=True)
        with pytest.raises(muster.errors.AbortedError, match="lost its process 3 times"):
            value.fetch(60)
        assert coordinator.schedule(jobs.same, (1,)).fetch(30) == 1
        assert cluster.pid("worker", 0) == worker


def fork_and_die():
    if muster.current_run().attempt > 1:
        return True
    if os.fork() == 0:
        time.sleep(20)
    os.kill(os.getpid(), signal.SIGKILL)


def in_a_fork():
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            muster.current_run().log("never")
            os.write(write, b"logged")
        except muster.MusterError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        words = file.read().decode()
    os.wait()
    return words, muster.current_run().attempt


def test_what_a_function_forks_has_no_run(lanes):
    words, attempt = lanes.schedule(in_a_fork).fetch(30)
    assert "there is no run" in words and attempt == 1


def test_a_process_that_leaves_a_child_behind_is_missed_all_the_same(lanes):
    assert lanes.schedule(fork_and_die).fetch(15) is True


def test_crashes_leave_no_files_and_no_zombies(own_cluster):
    cluster = own_cluster(workers=1, processes=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        worker = cluster.wait(30).pid("worker", 0)
        coordinator.fetch([coordinator.schedule(spin, (0.05,)) for _ in range(8)], 30)
        before = files_of(worker)
        for _ in range(5):
            assert coordinator.schedule(jobs.die_first, ("kill",)).fetch(30) == 2
            coordinator.schedule(jobs.same, (np.ones(1 << 17),)).fetch(30)
        coordinator.fetch([coordinator.schedule(spin, (0.05,)) for _ in range(8)], 30)
        assert wait_until(lambda: files_of(worker) <= before + 1), files_of(worker)
        assert all(state != "Z" for _, state in children_of(worker))


def count_files():
    return len(os.listdir("/proc/self/fd"))


def test_arrays_leave_no_files_in_a_process(own_cluster):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.schedule(jobs.same, (np.ones(1 << 17),)).fetch(30)
        before = coordinator.schedule(count_files).fetch(30)
        for _ in range(20):
            coordinator.schedule(jobs.same, (np.ones(1 << 17),)).fetch(30)
        assert coordinator.schedule(count_files).fetch(30) == before
        assert before <= 6  # the standard ones, the socket, and the folder that is read


def test_a_function_sees_that_it_is_cancelled(lanes):
    value = lanes.schedule(jobs.sleep, (60,), own_error=True)
    assert wait_until(lambda: lanes.schedule(jobs.same, (1,)).fetch(30))
    time.sleep(0.3)
    value.cancel()
    start = time.monotonic()
    lanes.join(30)
    assert time.monotonic() - start < 10


def hang(folder):
    """Does not look whether it is cancelled, and holds the GIL."""
    open(os.path.join(folder, str(os.getpid())), "w").close()
    ctypes.PyDLL(None).sleep(60)


def test_one_that_is_cancelled_and_hangs_is_killed_with_its_process(own_cluster,
                                                                    tmp_path):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        value = coordinator.schedule(hang, (str(tmp_path),), own_error=True)
        assert wait_until(lambda: os.listdir(tmp_path))
        value.cancel()
        pid = coordinator.schedule(jobs.pid).fetch(30)
        assert str(pid) not in os.listdir(tmp_path)


def test_arguments_for_a_process_that_stands_still_do_not_hold_their_thread(own_cluster):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        pid = coordinator.schedule(jobs.pid).fetch(30)
        assert coordinator.schedule(len, (b"xy",)).fetch(30) == 2
        os.kill(pid, signal.SIGSTOP)
        value = coordinator.schedule(len, (b"x" * 20_000_000,), own_error=True)
        time.sleep(0.2)
        value.cancel()
        assert coordinator.schedule(jobs.pid).fetch(30) != pid
        assert wait_until(lambda: is_gone(pid))


def test_a_run_that_takes_too_long_is_ended_and_runs_again(own_cluster, tmp_path):
    cluster = own_cluster(workers=1, processes=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.fetch([coordinator.schedule(spin, (0.1,)) for _ in range(6)], 30)
        value = coordinator.schedule(hang_first, (str(tmp_path),), run_timeout=0.5)
        assert value.fetch(30) > 1
        first = int(os.listdir(tmp_path)[0])
        assert wait_until(lambda: is_gone(first), 20)


def hang_first(folder):
    if muster.current_run().attempt > 1:
        return muster.current_run().attempt
    return hang(folder)


def test_a_worker_that_is_killed_leaves_no_processes(own_cluster):
    cluster = own_cluster(workers=1, processes=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        values = [coordinator.schedule(spin, (0.3,)) for _ in range(8)]
        worker = cluster.wait(30).pid("worker", 0)
        assert wait_until(lambda: len(children_of(worker)) == 2)
        pids = [pid for pid, _ in children_of(worker)]
        time.sleep(0.3)
        cluster.kill("worker", 0)
        assert wait_until(lambda: all(is_gone(pid) for pid in pids), 10)
        assert len(coordinator.fetch(values, 60)) == 8


def test_closing_the_cluster_ends_all_processes_and_another_one_follows(own_cluster):
    for _ in range(2):
        cluster = own_cluster(workers=2, processes=2)
        with muster.ClusterCoordinator(cluster) as coordinator:
            pids = set(coordinator.fetch(
                [coordinator.schedule(spin, (0.05,)) for _ in range(12)], 60))
        cluster.close()
        assert wait_until(lambda left=pids: all(is_gone(pid) for pid in left), 10)


PROGRAM = """
import os, sys, time
import muster
def pid():
    time.sleep(0.1)
    return os.getpid()
cluster = muster.LocalCluster(workers=1, processes=2)
coordinator = muster.ClusterCoordinator(cluster)
print(cluster.pid("worker", 0),
      *set(coordinator.fetch([coordinator.schedule(pid) for _ in range(8)])), flush=True)
try:
    coordinator.schedule(time.sleep, (60,)).fetch()
except KeyboardInterrupt:
    print("interrupted", len({coordinator.schedule(pid).fetch(30)}), flush=True)
    %s
"""


@pytest.mark.parametrize("end", ["cluster.close()", "os.kill(os.getpid(), 9)"])
def test_ctrl_c_ends_the_wait_and_the_program_leaves_nothing(end):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM % end],
                               stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 3
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted 1\n"
    assert process.wait(30) == (0 if "close" in end else -9)
    assert wait_until(lambda: all(is_gone(pid) for pid in pids), 15)
    process.stdout.close()


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
    node.register("lanes.bound", lambda: [node.task, os.getpid()])
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
        chief.job_done(timeout=5)
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
