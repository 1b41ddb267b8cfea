"""Servers: TensorFlow's constructor, joining, stopping, clusters that are offered."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

import muster
from conftest import wait_until
from muster import Server, ServerConfig, errors
from muster.server import offer_cluster


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(program, **environment):
    return subprocess.Popen([sys.executable, "-u", "-c", program], text=True,
                            stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                                     **environment))


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_a_local_server_is_a_cluster_of_its_own():
    with Server.create_local_server() as server:
        assert server.target == "grpc://" + server.node.address.split("//")[1]
        assert server.task == "/job:chief/task:0"
        assert server.cluster_spec.jobs == ["chief"]
        coordinator = muster.ClusterCoordinator(server, timeout=30)
        assert coordinator.done()
        coordinator.close()
    server.join(1)
    with pytest.raises(errors.ClosedError):
        muster.CoordinationService(server).key_values.put("k", "v")


def test_a_server_that_is_not_started_yet():
    server = Server.create_local_server(start=False)
    for call in (lambda: server.target, server.join, server.stop, lambda: server.node):
        with pytest.raises(errors.FailedPreconditionError, match="not started"):
            call()
    assert not server.started and "not started" in repr(server)
    server.start()
    assert server.started and "chief" in repr(server)
    with pytest.raises(errors.AlreadyExistsError):
        server.start()
    server.stop()
    server.stop()


def test_the_protocol_stands_before_the_target():
    with Server({"chief": ["127.0.0.1:0"]}, protocol="") as server:
        assert server.target.startswith("127.0.0.1:")


def test_a_config_reaches_the_node():
    config = ServerConfig(2, 3, ["/job:ps", "/job:worker/task:1"])
    with Server({"chief": ["127.0.0.1:0"]}, config=config) as server:
        assert server.node.get_setting("device_filters") == "/job:ps,/job:worker/task:1"
        assert server.node.get_setting("intra_op_threads") == "3"


@pytest.mark.parametrize("call, kind", [
    (lambda: Server({"worker": ["a:1", "b:1"]}), ValueError),
    (lambda: Server({"worker": ["a:1"], "ps": ["b:1"]}), ValueError),
    (lambda: Server({"worker": ["127.0.0.1:0"]}, "worker", 3), ValueError),
    (lambda: Server({"worker": ["127.0.0.1:0"]}, "ps", 0), ValueError),
    (lambda: Server(3), TypeError),
    (lambda: Server({"chief": ["127.0.0.1:0"]}, config=3), TypeError),
    (lambda: Server({"chief": ["127.0.0.1:0"]}, nonsense=3), TypeError),
])
def test_wrong_arguments(call, kind):
    with pytest.raises(kind):
        call()


def test_without_a_cluster_tf_config_counts(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="TF_CONFIG"):
        Server()
    monkeypatch.setenv("TF_CONFIG", json.dumps(
        {"cluster": {"chief": ["127.0.0.1:0"]}, "task": {"type": "chief", "index": 0}}))
    with Server() as server:
        assert server.task == "/job:chief/task:0"


def test_an_address_that_is_in_use():
    with Server.create_local_server() as server:
        address = server.target.split("//")[1]
        with pytest.raises(errors.AlreadyExistsError, match=address):
            Server({"chief": [address]})


def test_join_ends_with_stop_on_another_thread():
    server = Server.create_local_server()
    thread = threading.Thread(target=server.join)
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    with pytest.raises(errors.DeadlineExceededError):
        server.join(0.1)
    server.stop()
    thread.join(10)
    assert not thread.is_alive()


PROGRAM = """
import muster
server = muster.Server()
print(server.task)
try:
    server.join()
    print("ended")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_servers_in_processes_are_stopped_and_end_with_the_job():
    cluster = {"chief": ["127.0.0.1:0"], "worker": [f"127.0.0.1:{free_port()}"
                                                    for _ in range(2)]}
    cluster["chief"] = [f"127.0.0.1:{free_port()}"]
    workers = [start(PROGRAM, TF_CONFIG=json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": index}}))
        for index in (0, 1)]
    try:
        with Server(cluster, "chief", 0, heartbeat=0.2) as chief:
            coordinator = muster.ClusterCoordinator(chief, timeout=60)
            assert coordinator.schedule(max, (3, 4)).fetch(60) == 4
            chief.stop_remote("worker:1", "not needed", 30)
            assert workers[1].communicate(timeout=30)[0].endswith("ended\n")
            assert coordinator.schedule(max, (5, 4)).fetch(60) == 5
            with pytest.raises(ValueError, match="itself"):
                chief.stop_remote("chief:0", timeout=10)
            coordinator.close()
            chief.node.finish_job(3, "no good", timeout=20)
            out = workers[0].communicate(timeout=30)[0]
            assert "InvalidArgumentError no good" in out
    finally:
        for worker in workers:
            end(worker)


OFFERED = """
import sys
import muster
server = muster.Server(bind_address=sys.argv[1] if len(sys.argv) > 1 else ADDRESS,
                       timeout=60)
print(server.task, server.cluster_spec.as_json(), flush=True)
server.join()
print("ended")
"""


def test_a_server_that_waits_is_offered_a_cluster():
    address = f"127.0.0.1:{free_port()}"
    cluster = {"chief": [f"127.0.0.1:{free_port()}"], "worker": [address]}
    worker = start(OFFERED.replace("ADDRESS", repr("tcp://" + address)))
    try:
        offer_cluster(cluster, "worker", 0, 60)
        task, spec = worker.stdout.readline().split(" ", 1)
        assert task == "/job:worker/task:0" and json.loads(spec) == cluster
        offer_cluster(cluster, "worker", 0, 60)
        with pytest.raises(errors.MusterError):
            offer_cluster({"chief": cluster["chief"], "worker": ["127.0.0.1:9", address]},
                          "worker", 1, 5)
        with Server(cluster, "chief", 0, heartbeat=0.2) as chief:
            coordinator = muster.ClusterCoordinator(chief, timeout=60)
            assert coordinator.schedule(max, (3, 4)).fetch(60) == 4
            coordinator.close()
            chief.node.finish_job(timeout=20)
        assert worker.communicate(timeout=30)[0].endswith("ended\n")
    finally:
        end(worker)


def test_nobody_waits_there():
    port = free_port()
    with pytest.raises(errors.DeadlineExceededError, match=str(port)):
        offer_cluster({"worker": [f"127.0.0.1:{port}"]}, "worker", 0, 0.5)
    with pytest.raises(ValueError):
        offer_cluster({"worker": ["127.0.0.1:1"]}, "worker", 7, 0.5)
    with pytest.raises(errors.DeadlineExceededError):
        Server(bind_address=f"tcp://127.0.0.1:{free_port()}", timeout=0.3)


def test_a_server_of_a_resolver_of_ones_own():
    spec = muster.ClusterSpec({"chief": ["127.0.0.1:0"]})
    resolver = muster.SimpleClusterResolver(spec, task_type="chief", task_id=0)
    with Server(resolver=resolver) as server:
        assert server.task == "/job:chief/task:0"


def test_a_server_is_freed():
    def count():
        with open("/proc/self/status") as status:
            return int([line.split()[1] for line in status
                        if line.startswith("Threads:")][0])

    Server.create_local_server().stop()
    before = count()
    for _ in range(5):
        server = Server.create_local_server()
    del server
    assert wait_until(lambda: count() <= before)
