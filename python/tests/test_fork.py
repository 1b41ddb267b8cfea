"""What a forked child is told by the objects of its parent: that they are its parent's,
by each method, at once. Nothing that it does reaches the cluster."""

import collections
import os
import select
import signal
import time

import numpy as np
import pytest

import jobs
import jobs_executor
import muster

# What each method is called with. "own": it says nothing of a fork, since it tells of the
# object alone, or works in the child.
OWN = "own"

TABLE = {
    "node": {
        "status": (5.0,), "explain": (1, 5.0), "wait_job": (5.0,), "finish_job": (),
        "drain": (5.0,), "main": (), "serve": (), "register_function": ("forked", len),
        "register_program": ("chief", print), "load_plugin": ("/no/such.so",),
        "report_metric": ("a", 1.0), "get_metric": ("a",), "task_count": ("worker",),
        "set_setting": ("a", "b"), "get_setting": ("a",), "address": None, "task": None,
        "closed": OWN, "close": (1.0,),
    },
    "coordinator": {
        "schedule": (jobs.same, (1,)), "join": (5.0,), "done": (), "fetch": OWN,
        "errors": (), "counts": (), "explain": ("forked", 5.0), "drain": (0, 5.0),
        "forget": (5.0,), "wait_for_chief": (5.0,), "close": OWN, "node": OWN,
        "strategy": OWN, "create_per_worker_dataset": (jobs.numbers,),
        "create_per_worker_value": (jobs.numbers,), "per_worker_values": ([1, 2],),
        "executor": OWN, "map": OWN, "scatter": ([1],), "gather": OWN,
        "spawn": (collections.Counter,),
    },
    "remote": {
        "state": OWN, "function": OWN, "coordinator": OWN, "fetch": (5.0,),
        "get": (5.0,), "wait": (5.0,), "exception": OWN, "done": OWN, "cancel": (),
        "add_done_callback": (print,),
    },
    "per_worker": {"open": OWN, "from_values": OWN, "close": OWN},
    "variable": {
        "name": OWN, "shape": OWN, "dtype": OWN, "nbytes": OWN, "shards": OWN,
        "same": OWN,
        "node": OWN, "read": (5.0,), "numpy": (5.0,), "read_value": (5.0,),
        "assign": (np.ones(3), 5.0), "assign_add": (np.ones(3), 5.0),
        "assign_sub": (np.ones(3), 5.0), "apply_gradient": (np.ones(3), 0.1),
        "version": (5.0,), "close": OWN, "gather": ([0],), "sparse_read": ([0],),
        "scatter_add": ([0], 1.0), "scatter_sub": ([0], 1.0),
        "scatter_update": ([0], 1.0), "add_rows": (0, [1.0]), "assign_rows": (0, [1.0]),
        "scatter_min": ([0], 1.0), "scatter_max": ([0], 1.0), "scatter_mul": ([0], 1.0),
        "scatter_div": ([0], 1.0), "gather_nd": ([[0]],),
        "scatter_nd_add": ([[0]], [1.0]), "scatter_nd_sub": ([[0]], [1.0]),
        "scatter_nd_min": ([[0]], [1.0]), "scatter_nd_max": ([[0]], [1.0]),
        "scatter_nd_update": ([[0]], [1.0]), "read_async": (5.0,),
        "assign_async": (np.ones(3), 5.0), "assign_add_async": (np.ones(3), 5.0),
        "gather_async": ([0],), "scatter_add_async": ([0], 1.0),
        "apply_gradient_async": (np.ones(3), 0.1),
    },
    "table": {
        "close": OWN,
        "lookup": ([1], 5.0), "lookup_into": OWN, "lookup_bags_into": OWN,
        "lookup_several": OWN, "apply": OWN, "apply_gradients": ([1], [[1.0]]),
        "delete": ([1], 5.0), "expire": (1, 5.0), "insert": ([1], [[1.0]], 5.0),
        "set_rows": OWN, "stats": (5.0,), "get_stats": (5.0,), "export": OWN,
        "export_to": (print, 5.0), "lookup_async": ([1], 5.0),
        "apply_gradients_async": ([1], [[1.0]]),
    },
    "dataset": {"schedule": (jobs.same, (1,)), "join": (5.0,), "record": (),
                "save": ("/tmp/forked",), "close": OWN},
    "service": {
        "node": OWN, "state": None, "error": None, "host": None, "register": (),
        "report_error": ("a",), "set_error": ("a",), "reset": (5.0,), "leave": (5.0,),
        "progress": (), "on_error": (print,), "lock": OWN, "barrier": ("a", None, 1),
        "barrier_async": ("a",), "cancel_barrier": ("a", 5.0),
    },
    "key_values": {
        "put": ("a", "b"), "get": ("a", 5.0), "try_get": ("a", 5.0),
        "increment": ("a", 1, 5.0), "delete": ("a", 5.0), "list": ("", 5.0),
        "put_async": ("a", "b"), "get_async": ("a",), "try_get_async": ("a",),
        "increment_async": ("a",), "delete_async": ("a",), "transaction": OWN,
        "watch": ("a",), "hold": OWN,
    },
    "transaction": {
        "if_revision": OWN, "if_absent": OWN, "if_present": OWN, "if_value": OWN,
        "put": OWN, "increment": OWN, "delete": OWN, "commit": (5.0,),
        "commit_async": (5.0,),
    },
    "watch": {"next": (5.0,), "closed": OWN, "close": OWN},
    "lock": {"name": OWN, "acquire": OWN, "wait_lost": (5.0,), "lost": None,
             "release": (5.0,), "held": OWN, "number": OWN, "key": OWN},
    "tasks": {
        "states": (None, 5.0), "wait": (None, 5.0), "watch": (None, 0, 5.0),
        "alive": ("worker:0", 5.0), "devices": (5.0,),
        "report_error": ("/job:worker/task:0", "a"), "reset": ("/job:worker/task:0",),
    },
    "preemption": {"notice": ("a",), "reached": (1,), "wait": (0, False, 5.0)},
    "checkpoint": {"variables": OWN, "tables": OWN, "save_counter": OWN,
                   "save": ("/tmp/forked",), "restore": OWN, "write": ("/tmp/forked",),
                   "read": OWN},
    "cluster": {
        "node": OWN, "cluster_spec": OWN, "tasks": OWN, "pid": OWN,
        "kill": ("worker", 0), "wait": (5.0,), "close": OWN,
    },
    "server": {
        "create_local_server": OWN, "start": OWN, "join": (5.0,), "stop": OWN,
        "cluster_spec": OWN, "stop_remote": ("/job:worker/task:0",), "node": OWN,
        "target": OWN, "task": OWN, "started": OWN,
    },
    "future": {
        "set_running_or_notify_cancel": OWN, "set_result": OWN, "set_exception": OWN,
        "done": OWN, "running": OWN, "cancelled": OWN, "result": (), "exception": (),
        "cancel": (), "add_done_callback": OWN,
    },
    "executor": {"submit": (jobs.same, 1), "map": (jobs.same, [1]), "shutdown": OWN,
                 "coordinator": OWN},
}


def run_in_child(objects, name, rows):
    """Lines about each row: what it has raised, and whether that tells of the fork."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for method, args in rows:
            begun = time.monotonic()
            try:
                found = getattr(objects[name], method)
                if args is not None:
                    result = found(*args)
                    result = result.result(5) if hasattr(result, "result") else result
                words = "returned"
            except BaseException as error:
                words = f"{type(error).__name__}"
                if "forked" not in str(error):
                    words += f": {error}"
            if time.monotonic() - begun > 2:
                words += " (late)"
            os.write(write, f"{method} {words}\n".encode())
        os._exit(0)
    os.close(write)
    lines = b""
    while select.select([read], [], [], 20)[0]:
        more = os.read(read, 65536)
        if not more:
            break
        lines += more
    else:
        os.kill(pid, signal.SIGKILL)
        lines += b"then nothing"
    os.close(read)
    os.waitpid(pid, 0)
    return lines.decode().splitlines()


@pytest.fixture(scope="module")
def objects(shared_cluster, shared_coordinator):
    service = muster.CoordinationService(shared_cluster)
    service.register()
    variable = muster.Variable(np.zeros(3), name="forking", node=shared_cluster)
    table = muster.Table("forking", dim=1, node=shared_cluster)
    remote = shared_coordinator.schedule(jobs.sleep, (600,), raise_on_fetch=True)
    held = service.lock("forking").acquire(30)
    server = muster.Server.create_local_server()
    made = {
        "node": shared_cluster.node, "coordinator": shared_coordinator, "remote": remote,
        "per_worker": shared_coordinator.create_per_worker_value(jobs.numbers),
        "variable": variable, "table": table, "service": service,
        "key_values": service.key_values,
        "dataset": muster.ShardedDataset(shared_coordinator, shards=4),
        "transaction": service.key_values.transaction().put("forking/a", "b"),
        "watch": service.key_values.watch("forking/watch"), "lock": held,
        "tasks": service.tasks, "preemption": service.preemption,
        "checkpoint": muster.Checkpoint(variable=variable), "cluster": shared_cluster,
        "executor": muster.Executor(shared_coordinator), "server": server,
        "future": muster.future_of(remote),
    }
    yield made
    remote.cancel()
    server.stop()
    held.release()
    made["watch"].close()
    made["per_worker"].close()


def test_the_table_has_each_public_method(objects):
    missing = collections.defaultdict(set)
    for name, rows in TABLE.items():
        public = {method for method in dir(type(objects[name]))
                  if not method.startswith("_")}
        missing[name] = public.symmetric_difference(rows)
    assert not any(missing.values()), dict(missing)


@pytest.mark.parametrize("name", TABLE)
def test_each_method_tells_a_forked_child_that_it_is_one(objects, name):
    rows = [(method, args) for method, args in TABLE[name].items() if args != OWN]
    lines = run_in_child(objects, name, rows)
    wrong = [line for line in lines
             if line.split()[1:] not in (["ClosedError"], ["BrokenClusterExecutor"])]
    assert wrong == [] and len(lines) == len(rows)


def test_a_future_of_an_executor_tells_a_forked_child_that_it_is_one(objects):
    future = objects["executor"].submit(jobs_executor.wait_and_give, 2, 1)
    lines = run_in_child({"future": future}, "future", [("result", ())])
    future.cancel()
    assert lines == ["result ClosedError"]


def test_a_call_that_began_before_the_fork_tells_a_child_that_it_is_one(own_cluster):
    with own_cluster(workers=1, ps=1) as cluster:
        table = muster.Table("forking", dim=1, node=cluster)
        os.kill(cluster.pid("ps", 0), signal.SIGSTOP)
        future = table.lookup_async([1])
        lines = run_in_child({"future": future}, "future",
                             [("result", ()), ("exception", ())])
        os.kill(cluster.pid("ps", 0), signal.SIGCONT)
        assert future.result(30).tolist() == [[0.0]]
    assert lines == ["result ClosedError", "exception ClosedError"]


def test_a_cluster_outlives_a_child_that_leaves_its_block(own_cluster):
    with own_cluster(workers=1) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        pid = coordinator.schedule(jobs.pid).fetch(30)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                coordinator.__exit__()
                cluster.node.__exit__()
                cluster.__exit__()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert coordinator.schedule(jobs.pid).fetch(30) == pid


def test_the_parent_goes_on_after_its_children(objects):
    assert objects["coordinator"].schedule(jobs.same, (1,)).fetch(30) == 1
    objects["variable"].assign_add(np.ones(3), 30)
    assert objects["variable"].read(30).tolist() == [1, 1, 1]
