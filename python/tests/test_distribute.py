"""run_distribute_coordinator: its modes, contexts and errors, with tasks that are
processes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import muster
from muster import (ClusterSpec, CoordinatorMode, errors, get_current_worker_context,
                    run_distribute_coordinator)
from muster.distribute import Strategy

SPEC = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"],
        "ps": ["127.0.0.1:4"]}


def facts(_):
    context = get_current_worker_context()
    return {"task": context.task, "task_type": context.task_type,
            "task_id": context.task_id, "num_workers": context.num_workers,
            "is_chief": context.is_chief, "distributed": context.distributed_mode,
            "barrier": context.has_barrier, "target": context.master_target,
            "init": context.experimental_should_init,
            "thread": threading.get_ident()}


# ---- local ----

def test_without_a_cluster_the_function_is_called_once_on_this_thread(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    told = run_distribute_coordinator(facts)
    assert told == {"task": "", "task_type": None, "task_id": None, "num_workers": 0,
                    "is_chief": True, "distributed": False, "barrier": False,
                    "target": "", "init": True, "thread": threading.get_ident()}
    assert get_current_worker_context() is None


def test_the_strategy_is_the_argument_and_the_result_is_any_object():
    own = Strategy()
    thing = object()
    seen = []
    assert run_distribute_coordinator(lambda s: seen.append(s) or thing, own,
                                      mode=CoordinatorMode.LOCAL) is thing
    assert seen == [own]


def test_the_exception_of_the_function_is_raised_itself():
    class Own(Exception):
        pass

    def fail(_):
        raise Own("so and so")

    with pytest.raises(Own, match="so and so"):
        run_distribute_coordinator(fail, mode=CoordinatorMode.LOCAL)


def test_an_eval_function_is_called_after_the_worker_function():
    called = []
    run_distribute_coordinator(
        lambda s: called.append(("work", get_current_worker_context().evaluates)),
        eval_fn=lambda s: called.append(("eval", get_current_worker_context().evaluates)),
        mode=CoordinatorMode.LOCAL)
    assert called == [("work", False), ("eval", True)]


@pytest.mark.parametrize("call, kind", [
    (lambda: run_distribute_coordinator(3), TypeError),
    (lambda: run_distribute_coordinator(facts, eval_fn=3), TypeError),
    (lambda: run_distribute_coordinator(facts, mode="nonsense"), ValueError),
    (lambda: run_distribute_coordinator(facts, cluster_spec={"worker": ["a"]}),
     ValueError),
    (lambda: run_distribute_coordinator(facts, cluster_spec=SPEC, task_type="worker",
                                        task_id=9,
                                        mode=CoordinatorMode.INDEPENDENT_WORKER),
     errors.MusterError),
    (lambda: run_distribute_coordinator(facts, mode=CoordinatorMode.LOCAL, nonsense=1),
     TypeError),
])
def test_wrong_use_has_the_right_class(call, kind):
    with pytest.raises(kind):
        call()


def test_a_program_does_not_run_another_one():
    def nested(_):
        run_distribute_coordinator(facts, mode=CoordinatorMode.LOCAL)

    with pytest.raises(ValueError, match="already in a context"):
        run_distribute_coordinator(nested, mode=CoordinatorMode.LOCAL)


def test_waiting_without_others_is_a_value_error_unless_it_is_said_to_be_fine():
    def wait(_):
        get_current_worker_context().wait_for_other_workers(1)
        return "waited"

    with pytest.raises(ValueError):
        run_distribute_coordinator(wait, mode=CoordinatorMode.LOCAL)
    assert run_distribute_coordinator(wait, mode=CoordinatorMode.LOCAL,
                                      optional_barrier=True) == "waited"


def test_a_context_is_over_when_its_call_is():
    kept = run_distribute_coordinator(lambda s: get_current_worker_context(),
                                      mode=CoordinatorMode.LOCAL)
    with pytest.raises(errors.FailedPreconditionError, match="ended"):
        kept.is_chief


# ---- standalone client ----

def test_between_graph_there_is_a_thread_for_each_task():
    results = run_distribute_coordinator(facts, Strategy(between_graph=True),
                                         cluster_spec=SPEC, ignore_environment=True)
    assert sorted(results) == ["/job:chief/task:0", "/job:worker/task:0",
                               "/job:worker/task:1"]
    worker = results["/job:worker/task:1"]
    assert (worker["task_type"], worker["task_id"], worker["num_workers"]) == (
        "worker", 1, 3)
    assert worker["distributed"] and worker["barrier"] and not worker["is_chief"]
    assert worker["target"] == "grpc://127.0.0.1:3" and not worker["init"]
    assert results["/job:chief/task:0"]["init"]
    assert len({result["thread"] for result in results.values()}) == 3


def test_in_graph_there_is_one_call_for_all():
    told = run_distribute_coordinator(facts, cluster_spec=SPEC, rpc_layer="",
                                      ignore_environment=True)
    assert (told["task_type"], told["num_workers"], told["target"]) == (
        None, 3, "127.0.0.1:1")


def test_threads_meet_and_the_first_error_ends_the_waiting():
    arrived = []

    def meet(_):
        context = get_current_worker_context()
        for _ in range(3):
            arrived.append(context.task)
            context.wait_for_other_workers(30)
            assert len(arrived) % 3 == 0
            context.wait_for_other_workers(30)

    strategy = Strategy(between_graph=True)
    run_distribute_coordinator(meet, strategy, cluster_spec=SPEC, ignore_environment=True)
    assert len(arrived) == 9

    def fail(_):
        context = get_current_worker_context()
        if context.task_type == "worker" and context.task_id == 1:
            raise KeyError("lost")
        context.wait_for_other_workers()

    begin = time.monotonic()
    with pytest.raises(KeyError, match="lost"):
        run_distribute_coordinator(fail, strategy, cluster_spec=SPEC,
                                   ignore_environment=True)
    assert time.monotonic() - begin < 20


def test_a_strategy_of_ones_own_says_what_each_task_has():
    class Own(Strategy):
        between_graph = True

        def configure(self, cluster_spec, task_type, task_id, is_chief):
            return (task_type, task_id, cluster_spec.num_tasks("worker"), is_chief)

        def session_config(self, config, task_type, task_id):
            return muster.ServerConfig(3, 2, [f"/job:{task_type}"])

        def should_checkpoint(self, is_chief):
            return not is_chief

    def tell(copy):
        context = get_current_worker_context()
        return copy, context.session_config, context.should_checkpoint

    results = run_distribute_coordinator(tell, Own(), cluster_spec=SPEC,
                                         ignore_environment=True)
    copy, config, checkpoints = results["/job:worker/task:1"]
    assert copy == ("worker", 1, 2, False) and checkpoints
    assert (config.inter_op_parallelism_threads, tuple(config.device_filters)) == (
        3, ("/job:worker",))
    assert not results["/job:chief/task:0"][2]

    class Bad(Strategy):
        def configure(self, *_):
            raise RuntimeError("cannot be")

    with pytest.raises(ValueError, match="cannot be"):
        run_distribute_coordinator(tell, Bad(), mode=CoordinatorMode.LOCAL)


# ---- independent tasks ----

PROGRAM = """
import os, signal, sys, time
import muster
from muster import get_current_worker_context

if os.environ.get("LATE", "none") in os.environ["TF_CONFIG"]:
    time.sleep(3)

def work(strategy):
    context = get_current_worker_context()
    service = muster.CoordinationService(context.node)
    total = service.key_values.increment("count")
    if os.environ.get("DIES") == context.task:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("FAILS") == context.task:
        raise ValueError("of " + context.task)
    context.wait_for_other_workers(60)
    return (context.task, service.key_values.get("count").number, {1, 2})

try:
    result = muster.run_distribute_coordinator(
        work, muster.distribute.Strategy(between_graph=True),
        mode=muster.CoordinatorMode.INDEPENDENT_WORKER, heartbeat=0.2, dead=2, suspect=1,
        recoverable="ps", end_timeout=20)
    print("RESULT", result, flush=True)
except Exception as error:
    print("ERROR", type(error).__name__, error, flush=True)
"""


def run_tasks(tmp_path, program=PROGRAM, **environment):
    import socket

    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    program = "import muster.distribute\n" + program
    cluster = {job: [f"127.0.0.1:{free_port()}" for _ in range(count)]
               for job, count in (("chief", 1), ("worker", 2), ("ps", 1))}
    processes = []
    for job, index in (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)):
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        processes.append(subprocess.Popen(
            [sys.executable, "-c", program], text=True, stdout=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                     TF_CONFIG=json.dumps(config), **environment)))
    try:
        return [process.communicate(timeout=90)[0].strip() for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def test_independent_tasks_meet_and_the_leading_one_has_all_results(tmp_path):
    chief, first, second, server = run_tasks(tmp_path)
    assert chief.startswith("RESULT {")
    for task in ("chief/task:0", "worker/task:0", "worker/task:1"):
        assert f"('/job:{task}', 3, {{1, 2}})" in chief
    assert first == "RESULT ('/job:worker/task:0', 3, {1, 2})"
    assert second == "RESULT ('/job:worker/task:1', 3, {1, 2})"
    assert server == "RESULT None"


def test_the_error_of_an_independent_task_reaches_the_others(tmp_path):
    chief, first, second, _ = run_tasks(tmp_path, FAILS="/job:worker/task:1")
    assert second == "ERROR ValueError of /job:worker/task:1"
    for other in (chief, first):
        assert other.startswith("ERROR") and "of /job:worker/task:1" in other


def test_a_server_that_comes_after_the_error_of_a_task_hears_of_the_end(tmp_path):
    chief, _, _, server = run_tasks(tmp_path, FAILS="/job:worker/task:1",
                                    LATE='"task": {"type": "ps"')
    assert chief.startswith("ERROR") and "ERROR" in server


def test_a_task_that_is_killed_ends_the_waiting_of_the_others(tmp_path):
    chief, first, second, _ = run_tasks(tmp_path, DIES="/job:worker/task:1")
    assert second == ""
    for other in (chief, first):
        assert other.startswith("ERROR") and "worker/task:1" in other


CLOSURES = """
import os
import muster, muster.distribute

@muster.register("named")
def named(a, b):
    return a * b

def work(strategy):
    node = muster.get_current_worker_context().node
    with muster.ClusterCoordinator(node, timeout=60) as coordinator:
        tasks = [coordinator.schedule(lambda: (muster.current_run().node.task,
                                               os.getpid()), worker=i) for i in (0, 1)]
        return (coordinator.fetch(tasks, 60), os.getpid(),
                coordinator.schedule("named", (6, 7)).fetch(60))

result = muster.run_distribute_coordinator(work, mode=os.environ["MODE"], end_timeout=20)
print("RESULT", result, flush=True)
"""


@pytest.mark.parametrize("mode", ["independent_worker", "client_and_worker"])
def test_functions_of_python_run_on_the_workers_of_a_run(tmp_path, mode):
    chief, first, second, _ = run_tasks(tmp_path, CLOSURES, MODE=mode)
    assert first == second == "RESULT None"
    tasks, pid, product = eval(chief[len("RESULT "):])
    assert [task for task, _ in tasks] == ["/job:worker/task:0", "/job:worker/task:1"]
    assert len({pid, *(pid for _, pid in tasks)}) == 3 and product == 42


# ---- Ctrl-C ----

INTERRUPTED = """
import os, signal, sys, threading, time
import muster

def work(_):
    if sys.argv[1] == "threads":        # the worker's does not come
        if muster.get_current_worker_context().task_type == "worker":
            while not muster.get_current_worker_context().cancelled():
                time.sleep(0.01)
            return
    print("working", flush=True)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    if sys.argv[1] == "python":
        while True:
            time.sleep(0.01)
    muster.get_current_worker_context().wait_for_other_workers()

def threads():
    return [t.name for t in threading.enumerate()
            if t.name in ("muster-distribute", "muster-wait")]

try:
    if sys.argv[1] == "python":
        muster.run_distribute_coordinator(work, mode=muster.CoordinatorMode.LOCAL)
    else:
        muster.run_distribute_coordinator(
            work, muster.distribute.Strategy(between_graph=True), heartbeat=0.2,
            cluster_spec={"chief": ["127.0.0.1:0"], "worker": ["127.0.0.1:1"]},
            **({} if sys.argv[1] == "threads" else dict(
                task_type="chief", task_id=0,
                mode=muster.CoordinatorMode.INDEPENDENT_WORKER)), end_timeout=1)
except KeyboardInterrupt:
    print("interrupted", *threads(), flush=True)
    # Nothing is left: the same thread runs the next one.
    print(muster.run_distribute_coordinator(lambda s: "again", mode="local"), flush=True)
"""


@pytest.mark.parametrize("where", ["python", "wait", "threads"])
def test_ctrl_c_reaches_the_function_and_its_waits(where):
    done = subprocess.run(
        [sys.executable, "-c", "import muster.distribute\n" + INTERRUPTED, where],
        text=True, timeout=60, capture_output=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.stdout.split() == ["working", "interrupted", "again"], \
        done.stdout + done.stderr
    assert done.returncode == 0
