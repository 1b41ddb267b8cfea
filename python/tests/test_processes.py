"""Workers as processes: they crash, are killed, print, and end with their parent."""

import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest

import jobs
import muster
from muster import _notices, _supervisor
from conftest import wait_until


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("how", ["exit", "segfault", "kill"])
def test_a_crash_takes_only_its_process_and_the_closure_runs_elsewhere(own_cluster, how):
    cluster = own_cluster(workers=2)
    with muster.ClusterCoordinator(cluster) as coordinator:
        others = [coordinator.schedule(jobs.add, (i, 1)) for i in range(200)]
        assert coordinator.schedule(jobs.die_first, (how,)).fetch(30) == 2
        assert coordinator.fetch(others, 30) == list(range(1, 201))
        assert wait_until(lambda: sum(task["restarts"] for task in cluster.tasks) == 1)
        cluster.wait(30)


@pytest.mark.parametrize("how, words", [
    ("exit", "ended with exit code 3"), ("kill", "was killed by signal 9 (Killed)"),
    ("segfault", "was killed by signal 11 (Segmentation fault)")])
def test_the_error_of_a_crash_says_how_its_process_ended(own_cluster, how, words):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        value = coordinator.schedule(jobs.die_always, (how,), attempts=2,
                                     raise_on_fetch=True)
        with pytest.raises(muster.errors.AbortedError) as lost:
            value.fetch(60)
    assert str(lost.value) == (
        'function "die_always" lost its worker 2 times, last /job:worker/task:0 (given '
        f"up after 2 runs); its process last {words}")
    assert lost.value.task == "/job:worker/task:0"


@pytest.mark.parametrize("stream", ["out", "err"])
@pytest.mark.parametrize("processes", [0, 1])
def test_a_last_line_without_an_end_is_told(own_cluster, stream, processes):
    lines = []
    cluster = own_cluster(workers=1, on_line=lambda *line: lines.append(line),
                          **({"processes": 1} if processes else {}))
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.schedule(jobs.write, (stream, "no end")).fetch(30)
    cluster.close()
    assert ("worker/0", stream, "no end") in lines


def test_a_clean_close_loses_nothing(own_cluster, caplog, tmp_path):
    cluster = own_cluster(workers=1, log_level="info")
    path = tmp_path / "begun"
    with caplog.at_level(logging.INFO, "muster"):
        value = muster.ClusterCoordinator(cluster.wait()).schedule(
            jobs.touch_and_sleep, (str(path), 60))
        assert wait_until(path.exists)
        cluster.close()
        assert wait_until(lambda: "has left as the job is done; 1 closure" in caplog.text)
    assert "again elsewhere" not in caplog.text
    with pytest.raises(muster.errors.CancelledError):
        value.fetch(10)


def test_log_lines_have_the_own_names_of_functions(caplog):
    line = 'function "python.try:f" and "python.call:g" wait'
    with caplog.at_level(logging.INFO, "muster"):
        _notices.log(2, "/job:chief/task:0", "supervisor", line, 0)
    assert 'function "f" and "g" wait' in caplog.text
    log = {"time": 0, "level": "warn", "task": "t", "who": "w", "message": line}
    assert _supervisor._log_of(json.dumps(log))[-1] == 'function "f" and "g" wait'


def test_a_function_may_fork_and_end_its_children(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        values = [coordinator.schedule(jobs.end_forked_children) for _ in range(5)]
        pid = cluster.wait().pid("worker", 0)
        assert coordinator.fetch(values, 60) == [([1, 2], pid)] * 5


def test_programs_that_a_function_starts_get_signals(own_cluster):
    cluster = own_cluster(workers=1, threads=2)
    with muster.Executor(cluster) as executor:
        futures = [executor.submit(jobs.end_a_program) for _ in range(4)]
        assert [future.result(60) for future in futures] == [-signal.SIGTERM] * 4


def test_what_a_dead_worker_has_forked_ends_with_it(own_cluster, tmp_path):
    cluster = own_cluster(workers=1)
    path = tmp_path / "child"
    with muster.ClusterCoordinator(cluster) as coordinator:
        assert coordinator.schedule(jobs.die_with_a_forked_child_left,
                                    (str(path),)).fetch(30)
        assert not is_alive(int(path.read_text()))
    assert [task["restarts"] for task in cluster.tasks] == [1]


def test_printed_lines_of_all_kinds_are_told(own_cluster):
    told = []
    cluster = own_cluster(workers=1, on_line=lambda *line: told.append(line[1:]))
    printed = ['{"time":1,"level":[],"task":1,"who":2,"message":3}',
               '{"time":1,"level":"x","task":1,"who":2,"message":3}', '{"time":1',
               '{"time":' + "[" * 100000, "x" * 300000, "\u00e4 \u2028 \U0001f389"]
    with muster.ClusterCoordinator(cluster) as coordinator:
        for line in printed:
            coordinator.schedule(jobs.complain, (line,))
        coordinator.join(30)
        assert wait_until(lambda: len(told) == len(printed))
        assert told == [("err", line) for line in printed]
        assert coordinator.schedule(jobs.add, (1, 2)).fetch(30) == 3


def test_a_worker_that_was_killed_is_started_again_and_used(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        first = coordinator.schedule(jobs.pid).fetch(30)
        assert cluster.kill("worker", 0) == first == cluster.pid("worker", 0) or True
        assert coordinator.schedule(jobs.pid).fetch(30) != first


def test_closures_survive_workers_that_are_killed_again_and_again(own_cluster):
    cluster = own_cluster(workers=2, ps=0)
    with muster.ClusterCoordinator(cluster) as coordinator:
        values = [coordinator.schedule(jobs.sleep, (0.01,)) for _ in range(300)]
        for i in range(4):
            wait_until(lambda index=i % 2: cluster.pid("worker", index))
            time.sleep(0.2)
            cluster.kill("worker", i % 2)
        assert coordinator.fetch(values, 60) == [False] * 300


def test_a_worker_that_keeps_dying_is_given_up(own_cluster, caplog):
    cluster = own_cluster(workers=1, restarts_max=2, env={"PYTHONSTARTUP": ""})
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.schedule(jobs.same, (1,)).fetch(30)
        for restarts in (1, 2):
            cluster.kill("worker", 0)
            assert wait_until(lambda n=restarts: cluster.tasks[0]["restarts"] == n
                              and cluster.pid("worker", 0))
        cluster.kill("worker", 0)
        assert wait_until(lambda: cluster.tasks[0]["state"] == "ended")
        with pytest.raises(muster.errors.FailedPreconditionError, match="not started"):
            wait_until(lambda: cluster.wait(0.3) and False, 10)
    assert "is not started again" in caplog.text


@pytest.mark.parametrize("where", [{}, {"processes": 2}], ids=["threads", "processes"])
def test_output_and_log_lines_come_back_tagged(own_cluster, caplog, where):
    lines = []
    cluster = own_cluster(workers=1, log_level="info", **where,
                          on_line=lambda *line: lines.append(line))
    with caplog.at_level(logging.INFO, "muster"):
        with muster.ClusterCoordinator(cluster) as coordinator:
            coordinator.schedule(jobs.say, ("spoken",)).fetch(30)
            coordinator.schedule(os.system, ("echo from a shell >&2",)).fetch(30)
            coordinator.schedule(jobs.log, ("logged",)).fetch(30)
        assert wait_until(lambda: ("worker/0", "out", "spoken") in lines)
        assert wait_until(lambda: ("worker/0", "err", "from a shell") in lines)
        assert wait_until(lambda: "/job:worker/task:0" in caplog.text
                          and "logged" in caplog.text)


def test_lines_go_to_the_standard_files_behind_the_tasks_name(own_cluster, capfd):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.schedule(jobs.say, ("spoken",)).fetch(30)
        wait_until(lambda: False, 0.2)
    assert "[worker/0] spoken" in capfd.readouterr().out


def test_modules_are_imported_before_a_worker_serves(own_cluster, tmp_path, monkeypatch):
    (tmp_path / "prepared.py").write_text(textwrap.dedent("""
        import muster

        @muster.register("prepared.add")
        def add(a, b=10):
            return a + b

        def muster_open(node):
            node.register_function("prepared.task", lambda: node.task)
    """))
    monkeypatch.syspath_prepend(str(tmp_path))
    cluster = own_cluster(workers=1, python="prepared")
    with muster.ClusterCoordinator(cluster) as coordinator:
        assert coordinator.schedule("prepared.add", (1, 2)).fetch(30) == 3
        assert coordinator.schedule("prepared.add", 5).fetch(30) == 15
        named = coordinator.schedule("prepared.add", kwargs={"a": 1, "b": 1})
        assert named.fetch(30) == 2
        assert coordinator.schedule("prepared.task").fetch(30) == "/job:worker/task:0"


def test_a_module_that_cannot_be_imported_ends_the_task_with_words(own_cluster):
    lines = []
    cluster = own_cluster(workers=1, python="no_such_module",
                          on_line=lambda *line: lines.append(line[2]))
    with pytest.raises(muster.errors.FailedPreconditionError, match="exit code 2"):
        cluster.wait(30)
    assert any("no_such_module" in line for line in lines)


PARENT = """
import sys, time
import muster
from muster import _notices, _supervisor
cluster = muster.LocalCluster(workers=2)
coordinator = muster.ClusterCoordinator(cluster)
def pid():
    import os
    return os.getpid()
pids = {coordinator.schedule(pid, worker=i).fetch(30) for i in (0, 1)}
print(*pids, flush=True)
%s
"""


def start_parent(end):
    process = subprocess.Popen([sys.executable, "-c", PARENT % end],
                               stdout=subprocess.PIPE, text=True)
    return process, [int(word) for word in process.stdout.readline().split()]


def test_workers_end_when_their_parent_is_killed():
    process, pids = start_parent("time.sleep(60)")
    assert len(pids) == 2 and all(map(is_alive, pids))
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_until(lambda: not any(map(is_alive, pids)), 5)


def test_workers_end_with_a_killed_parent_that_has_forked():
    process, pids = start_parent("import os, signal\nchild = os.fork()\n"
                                 "if child: print(child, flush=True)\nsignal.pause()")
    child = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    try:
        assert wait_until(lambda: not any(map(is_alive, pids)), 5)
        assert is_alive(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_program_that_was_killed_leaves_no_folder():
    program = ("import muster, os; cluster = muster.LocalCluster(workers=1).wait()\n"
               "print(cluster.cluster_spec['worker'][0], flush=True)\n"
               "os.kill(os.getpid(), 9)")
    with tempfile.TemporaryDirectory() as folder:
        killed = subprocess.run([sys.executable, "-c", program], text=True,
                                stdout=subprocess.PIPE,
                                env=dict(os.environ, TMPDIR=folder))
        assert killed.stdout.startswith(f"ipc://{folder}/")
        assert wait_until(lambda: not os.listdir(folder))


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise SystemExit"])
def test_workers_end_when_their_parent_ends_without_closing(end):
    process, pids = start_parent(end)
    assert len(pids) == 2
    assert process.wait(20) == (3 if "3" in end else 0)
    process.stdout.close()
    assert wait_until(lambda: not any(map(is_alive, pids)), 5)


def test_workers_outlive_the_thread_that_made_the_cluster(own_cluster):
    import threading

    made = []
    thread = threading.Thread(target=lambda: made.append(own_cluster(workers=1)))
    thread.start()
    thread.join()
    with muster.ClusterCoordinator(made[0]) as coordinator:
        first = coordinator.schedule(jobs.pid).fetch(30)
        time.sleep(0.3)
        assert coordinator.schedule(jobs.pid).fetch(30) == first


def test_no_process_and_no_file_is_left_behind(own_cluster):
    cluster = own_cluster(workers=2, ps=1)
    cluster.wait(30)
    pids = [task["pid"] for task in cluster.tasks]
    folder = os.path.dirname(cluster.cluster_spec["ps"][0][len("ipc://"):])
    begun = time.monotonic()
    cluster.close()
    assert time.monotonic() - begun < 5
    assert not any(map(is_alive, pids)) and not os.path.exists(folder)


@pytest.mark.parametrize("timeout", [-1.0, 1e9])
def test_any_timeout_closes_a_cluster(own_cluster, timeout):
    cluster = own_cluster(workers=1).wait()
    pid = cluster.pid("worker", 0)
    begun = time.monotonic()
    cluster.close(timeout)
    assert time.monotonic() - begun < 10 and not is_alive(pid)


def test_a_notebook_shows_the_cluster(own_cluster):
    cluster = own_cluster(workers=2, ps=1)
    page = cluster._repr_html_()
    assert "worker/1" in page and "ps/0" in page and "running" in page
    assert repr(cluster) == "<muster.LocalCluster: 2 worker, 1 ps>"


def test_a_cluster_on_ports(own_cluster):
    cluster = own_cluster(workers=2, transport="tcp")
    assert cluster.cluster_spec["worker"][0].startswith("127.0.0.1:")
    with muster.ClusterCoordinator(cluster) as coordinator:
        assert coordinator.schedule(jobs.same, (1,)).fetch(30) == 1


def test_windows_of_a_cluster_are_options_of_its_nodes(own_cluster, tmp_path):
    cluster = own_cluster(workers=1, journal=str(tmp_path / "journal"),
                          journal_keep=1000, journal_keep_window=60, server_failures=2,
                          server_failures_window=60)
    with muster.ClusterCoordinator(cluster) as coordinator:
        assert coordinator.schedule(jobs.same, (1,), name="one").fetch(30) == 1


def test_a_signal_stops_a_worker_for_good_only_when_it_is_killed(own_cluster):
    cluster = own_cluster(workers=2, silence=1.0)
    with muster.ClusterCoordinator(cluster) as coordinator:
        coordinator.fetch([coordinator.schedule(jobs.same, (1,), worker=i)
                           for i in (0, 1)], 30)
        pid = cluster.kill("worker", 0, signal.SIGSTOP)
        try:
            values = [coordinator.schedule(jobs.same, (i,)) for i in range(50)]
            assert coordinator.fetch(values, 30) == list(range(50))
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_cluster_that_nobody_holds_ends_its_processes():
    cluster = muster.LocalCluster(workers=2)
    coordinator = muster.ClusterCoordinator(cluster)
    muster.gather(muster.scatter([1, 2], cluster))
    pids = set(coordinator.fetch([coordinator.schedule(jobs.pid) for _ in range(20)], 30))
    del cluster
    time.sleep(0.5)
    assert coordinator.schedule(jobs.add, (1, 2)).fetch(30) == 3    # it is held by this
    del coordinator
    assert wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_an_executor_keeps_the_cluster_that_it_was_given():
    executor = muster.Executor(muster.LocalCluster(workers=1))
    pid = executor.submit(jobs.pid).result(30)
    time.sleep(0.5)
    assert executor.submit(jobs.pid).result(30) == pid
    executor.shutdown()
    del executor
    gc.collect()
    assert wait_until(lambda: not is_alive(pid))


def test_a_cluster_whose_supervisor_was_killed_ends(own_cluster, caplog):
    cluster = own_cluster(workers=1).wait()
    pid = cluster.pid("worker", 0)
    cluster._supervisor._process.kill()
    assert wait_until(lambda: cluster.tasks[0]["state"] == "ended" and not is_alive(pid))
    assert "their supervisor was lost" in caplog.text
    with pytest.raises(muster.errors.UnavailableError, match="has no process now"):
        cluster.kill("worker", 0)
    cluster.close()
    shutil.rmtree(os.path.dirname(cluster.cluster_spec["worker"][0][len("ipc://"):]))


def test_tasks_that_cannot_be_started_are_an_error(capfd):
    with pytest.raises(muster.errors.FailedPreconditionError, match="--counts: expected"):
        muster.LocalCluster(counts={"No": 1}, worker_types="worker")


def test_tasks_have_the_environment_of_the_program(own_cluster, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("MUSTER_COUNTS", "gpu=1")
    cluster = own_cluster(workers=1, env={"RANK": "2"})
    with muster.Executor(cluster) as executor:
        assert list(executor.map(os.getenv, ["RANK", "WORLD_SIZE"])) == ["2", "3"]
    assert repr(cluster) == "<muster.LocalCluster: 1 worker>"
