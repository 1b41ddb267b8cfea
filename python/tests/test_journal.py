"""Chiefs with a journal that are killed and started again."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap

import pytest

import muster
from conftest import wait_until

CLOSURES = 200

# Its functions live in __main__: they are sent by content.
CHIEF = """
import json, sys, time
import muster

class Sum:
    def __init__(self, number):
        self.number = number

def count(total, by, trace):
    muster.current_run().add(total, by)
    time.sleep(0.005)
    with open(trace, "a") as file:
        file.write(f"{by}\\n")
    return Sum(by * by)

class Wrong(Exception):
    def __init__(self, number, words):
        super().__init__(words)
        self.number = number

def fail(trace):
    with open(trace, "a") as file:
        file.write("failed\\n")
    raise Wrong(7, "long " * 1000)

cluster, journal, trace, closures = json.loads(sys.argv[1])
with muster.Node(cluster, task_type="chief", journal=journal) as node:
    coordinator = muster.ClusterCoordinator(node, timeout=60)
    total = muster.Variable(0, name="total", dtype="int64", node=node)
    failed = coordinator.schedule(fail, (trace,), name="fail", raise_on_fetch=True)
    values = [coordinator.schedule(count, (total, i, trace), name=f"count-{i}",
                                   effect_once=True) for i in range(closures)]
    numbers = [value.number for value in coordinator.fetch(values, timeout=60)]
    try:
        failed.fetch(60)
    except Wrong as error:
        print(json.dumps([sum(numbers), int(total.read()), error.number, str(error)]))
"""


@contextlib.contextmanager
def nodes(folder, tasks, **options):
    """Processes of `muster node`, and the cluster that they are of: it has a chief."""
    cluster = {"chief": [f"ipc://{folder}/chief"]}
    for task in tasks:
        kind, index = task.split(":")
        cluster.setdefault(kind, []).append(f"ipc://{folder}/{kind}-{index}")
    started = []
    try:
        for task in tasks:
            started.append(node_process(cluster, task, **options))
        yield cluster
    finally:
        for process in started:
            process.kill()
            process.wait(10)


def node_process(cluster, task, **options):
    flags = [word for name, value in options.items()
             for word in ("--" + name.replace("_", "-"), str(value))]
    return subprocess.Popen(
        [sys.executable, "-m", "muster", "node", "--cluster", json.dumps(cluster),
         "--task", task, "--heartbeat-ms", "200", *flags],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def folder(tmp_path_factory):
    """Short enough for the names of sockets."""
    return tmp_path_factory.mktemp("j")


def test_a_killed_chief_goes_on_and_counts_each_closure_once(folder):
    program, trace = folder / "chief.py", folder / "trace"
    program.write_text(CHIEF)
    with nodes(folder, ["worker:0", "worker:1", "ps:0"]) as cluster:
        words = json.dumps([cluster, str(folder / "journal"), str(trace), CLOSURES])

        def start():
            return subprocess.Popen(
                [sys.executable, str(program), words], stdout=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

        first = start()
        wait_until(lambda: len(lines_of(trace)) > CLOSURES // 4, 60)
        first.kill()
        assert first.communicate(timeout=30)[0] == ""
        assert len(lines_of(trace)) < CLOSURES

        wanted = [sum(i * i for i in range(CLOSURES)), sum(range(CLOSURES)), 7,
                  "long " * 1000]
        assert json.loads(start().communicate(timeout=90)[0]) == wanted
        ran = lines_of(trace)
        assert ran.count("failed") == 1
        assert set(ran) == {"failed", *map(str, range(CLOSURES))}

        # Once more: everything is in the journal, nothing runs.
        assert json.loads(start().communicate(timeout=90)[0]) == wanted
        assert lines_of(trace) == ran


def test_a_program_that_outlives_its_chief_sends_its_functions_again(folder):
    trace = folder / "trace"

    def mark(number):
        with open(trace, "a") as file:
            file.write(f"{number}\n")
        return number

    with nodes(folder, ["worker:0"]) as cluster:
        cluster["client"] = [f"ipc://{folder}/client"]
        chief = node_process(cluster, "chief:0", journal=folder / "journal")
        try:
            with muster.Node(cluster, task_type="client", task_index=0,
                             heartbeat=0.2) as node:
                coordinator = muster.ClusterCoordinator(node, timeout=60)

                def all_of(prefix):
                    return coordinator.fetch(
                        [coordinator.schedule(mark, (i,), name=f"{prefix}-{i}")
                         for i in range(10)], timeout=60)

                assert all_of("a") == list(range(10))
                chief.kill()
                chief.wait(10)
                chief = node_process(cluster, "chief:0", journal=folder / "journal")
                coordinator.wait_for_chief(60)
                assert all_of("a") == list(range(10))
                assert len(lines_of(trace)) == 10
                assert all_of("b") == list(range(10))
                assert len(lines_of(trace)) == 20
        finally:
            chief.kill()
            chief.wait(10)


NAMED = """
import muster

@muster.register("take.all")
def take(counter, parts, box, *, by):
    muster.current_run().add(counter, by)
    return [sorted(parts), box.next(), int(counter.read()) % 10]

@muster.register("take.one")
def one(variable):
    return int(variable.read())
"""


class Box:
    """Made on each worker."""

    def __init__(self):
        self.number = 0

    def next(self):
        self.number += 1
        return self.number > 0


@pytest.mark.parametrize("options", [{"threads": 2}, {"processes": 1}],
                         ids=["threads", "processes"])
def test_functions_by_name_take_what_others_take(own_cluster, tmp_path, monkeypatch,
                                                 options):
    (tmp_path / "takes.py").write_text(textwrap.dedent(NAMED))
    monkeypatch.syspath_prepend(str(tmp_path))
    cluster = own_cluster(workers=1, ps=1, python="takes", **options)
    with muster.ClusterCoordinator(cluster) as coordinator:
        counter = muster.Variable(0, name="counter", dtype="int64", node=cluster)
        box = coordinator.create_per_worker_value(Box)
        kept = coordinator.schedule(lambda: {3, 1, 2}, pin_result=True)
        ready = coordinator.schedule(lambda: {5, 4})
        for parts, wanted in ((kept, [1, 2, 3]), (ready, [4, 5]), ([8, 7], [7, 8])):
            given = coordinator.schedule(
                "take.all", kwargs={"counter": counter, "parts": parts, "box": box,
                                    "by": 10}, effect_once=True)
            assert given.fetch(60) == [wanted, True, 0]
        assert coordinator.schedule("take.one", (counter,)).fetch(60) == 30
        assert coordinator.schedule("take.one", counter).fetch(60) == 30
