"""How workers with processes end: crashes, cancels, kills, and what they leave."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import jobs
import muster
from children import children_of, hang, hang_first, is_gone, spin
from conftest import wait_until


def files_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.fixture(scope="module")
def cluster():
    with muster.LocalCluster(workers=1, ps=1, processes=3, heartbeat=0.2) as made:
        yield made


@pytest.fixture
def lanes(cluster):
    with muster.ClusterCoordinator(cluster) as coordinator:
        yield coordinator


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
        value = coordinator.schedule(os._exit, (4,), raise_on_fetch=True)
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
    value = lanes.schedule(jobs.sleep, (60,), raise_on_fetch=True)
    assert wait_until(lambda: lanes.schedule(jobs.same, (1,)).fetch(30))
    time.sleep(0.3)
    value.cancel()
    start = time.monotonic()
    lanes.join(30)
    assert time.monotonic() - start < 10


def test_one_that_is_cancelled_and_hangs_is_killed_with_its_process(own_cluster,
                                                                    tmp_path):
    cluster = own_cluster(workers=1, processes=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        value = coordinator.schedule(hang, (str(tmp_path),), raise_on_fetch=True)
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
        value = coordinator.schedule(len, (b"x" * 20_000_000,), raise_on_fetch=True)
        time.sleep(1)
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
