"""Resolvers: TensorFlow's names and behaviour, the library's sources, and one's own."""

import gc
import json
import os
import sys
import threading
import time

import pytest

import muster
from muster import (ClusterSpec, NamedClusterResolver, SimpleClusterResolver,
                    SlurmClusterResolver, TFConfigClusterResolver, TPUClusterResolver,
                    UnionClusterResolver, errors)
from muster.resolvers import ClusterResolver, resolver_names

SPEC = ClusterSpec({"worker": ["w0:2222", "w1:2222"], "ps": ["p0:2222"]})


@pytest.fixture
def tf_config(monkeypatch):
    def set_to(value):
        monkeypatch.setenv("TF_CONFIG", value if isinstance(value, str)
                           else json.dumps(value))
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return set_to


# ---- Simple ----

def test_simple_has_what_it_was_given():
    resolver = SimpleClusterResolver(SPEC, task_type="worker", task_id=1,
                                     environment="google", num_accelerators={"GPU": 8},
                                     rpc_layer="grpc")
    assert resolver.cluster_spec() == SPEC
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert (resolver.environment, resolver.rpc_layer) == ("google", "grpc")
    assert resolver.num_accelerators() == {"GPU": 8}
    assert resolver.master() == "grpc://w1:2222"
    assert resolver.master("ps", 0) == "grpc://p0:2222"
    assert resolver.master("ps", 0, rpc_layer="") == "p0:2222"


def test_simple_overrides_by_setters_also_with_index_0():
    resolver = SimpleClusterResolver(SPEC, task_type="worker", task_id=1)
    resolver.task_id = 0
    resolver.task_type = "ps"
    resolver.rpc_layer = "grpc"
    assert resolver.master() == "grpc://p0:2222"
    with pytest.raises(ValueError):
        resolver.task_type = "workr"
    assert resolver.task_type == "ps"


def test_simple_master_wins_over_the_own_task_not_over_a_given_one():
    resolver = SimpleClusterResolver(SPEC, master="m:1", task_type="worker", task_id=0)
    assert resolver.master() == "m:1"
    assert resolver.master("worker", 1) == "w1:2222"


def test_simple_refuses_other_types():
    with pytest.raises(TypeError, match="ClusterSpec"):
        SimpleClusterResolver({"worker": ["a:1"]})
    with pytest.raises(TypeError, match="master"):
        SimpleClusterResolver(SPEC, master=3)


def test_a_task_that_is_not_in_the_cluster_is_a_value_error():
    with pytest.raises(ValueError, match="worker:7"):
        SimpleClusterResolver(SPEC).master("worker", 7)


# ---- TF_CONFIG ----

def test_tf_config_is_read_at_every_call(tf_config):
    tf_config({"cluster": {"worker": ["a:1", "b:2"]},
               "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc"})
    resolver = TFConfigClusterResolver()
    assert resolver.cluster_spec() == {"worker": ["a:1", "b:2"]}
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.master() == "grpc://b:2"
    tf_config({"cluster": {"worker": ["a:1", "b:2", "c:3"]},
               "task": {"type": "worker", "index": 2}})
    assert resolver.cluster_spec().num_tasks("worker") == 3
    assert resolver.task_id == 2


def test_without_tf_config_the_cluster_is_empty(tf_config):
    resolver = TFConfigClusterResolver()
    assert not resolver.cluster_spec()
    assert (resolver.task_type, resolver.task_id, resolver.master()) == (None, None, "")


def test_tf_config_that_makes_no_sense_says_where(tf_config):
    tf_config({"cluster": {"worker": ["a"]}})
    with pytest.raises(ValueError, match=r"worker\[0\].*port"):
        TFConfigClusterResolver().cluster_spec()
    tf_config("{")
    with pytest.raises(ValueError, match="TF_CONFIG"):
        TFConfigClusterResolver().cluster_spec()


def test_arguments_win_over_tf_config(tf_config):
    tf_config({"cluster": {"worker": ["a:1", "b:2"]},
               "task": {"type": "worker", "index": 1}})
    resolver = TFConfigClusterResolver(task_id=0, rpc_layer="grpc")
    assert resolver.master() == "grpc://a:1"


# ---- Union ----

def test_union_concatenates_lists_and_takes_the_task_of_the_first():
    union = UnionClusterResolver(
        SimpleClusterResolver(ClusterSpec({"worker": ["a:1"]}), task_type="worker",
                              task_id=0, rpc_layer="grpc"),
        SimpleClusterResolver(ClusterSpec({"worker": ["b:1"], "ps": ["p:1"]}),
                              task_type="ps", task_id=0))
    assert union.cluster_spec() == {"worker": ["a:1", "b:1"], "ps": ["p:1"]}
    assert (union.task_type, union.task_id, union.rpc_layer) == ("worker", 0, "grpc")
    assert union.master() == "grpc://a:1" and union.master("worker", 1) == "grpc://b:1"


def test_union_merges_sparse_jobs_by_index():
    def union(*specs):
        return UnionClusterResolver(*[SimpleClusterResolver(ClusterSpec(spec))
                                      for spec in specs]).cluster_spec()

    assert union({"worker": {1: "a:1"}}, {"worker": {3: "b:1"}}).as_dict() == {
        "worker": {1: "a:1", 3: "b:1"}}
    with pytest.raises(KeyError, match="worker"):
        union({"worker": {1: "a:1"}}, {"worker": {1: "b:1"}})


def test_union_keywords_override_also_with_index_0():
    one = SimpleClusterResolver(SPEC, task_type="worker", task_id=1)
    union = UnionClusterResolver(one, task_id=0)
    assert (union.task_type, union.task_id) == ("worker", 0)
    assert union.master() == "w1:2222"      # of the first that has one


def test_union_refuses_what_is_no_resolver():
    with pytest.raises(ValueError, match="at least one"):
        UnionClusterResolver()
    with pytest.raises(TypeError, match="ClusterResolver"):
        UnionClusterResolver(SPEC)
    with pytest.raises(ValueError, match="nonsense"):
        UnionClusterResolver(SimpleClusterResolver(SPEC), nonsense=1)


# ---- the others ----

def test_slurm(monkeypatch):
    for name, value in (("PROCID", "1"), ("STEP_NUM_TASKS", "3"),
                        ("STEP_NODELIST", "n[1-2]"), ("STEP_TASKS_PER_NODE", "2,1")):
        monkeypatch.setenv("SLURM_" + name, value)
    resolver = SlurmClusterResolver(jobs={"chief": 1, "worker": 2}, port_base=9000)
    assert resolver.cluster_spec() == {"chief": ["n1:9000"],
                                       "worker": ["n1:9001", "n2:9000"]}
    assert resolver.get_task_info() == ("worker", 0)
    assert resolver.master() == "grpc://n1:9001"


def test_slurm_elsewhere_names_the_variable(monkeypatch):
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    with pytest.raises(errors.NotFoundError, match="SLURM_STEP_NUM_TASKS"):
        SlurmClusterResolver(timeout=5).cluster_spec()


def test_sagemaker(monkeypatch):
    monkeypatch.setenv("SM_HOSTS", '["algo-2", "algo-1"]')
    monkeypatch.setenv("SM_CURRENT_HOST", "algo-2")
    resolver = muster.SageMakerClusterResolver()
    assert resolver.cluster_spec() == {"worker": ["algo-1:2223", "algo-2:2223"]}
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)


def test_tpu_by_address():
    resolver = TPUClusterResolver("grpc://10.0.0.2:8470,10.0.0.3")
    assert resolver.cluster_spec() == {"worker": ["10.0.0.2:8470", "10.0.0.3:8470"]}
    assert resolver.get_master() == "grpc://10.0.0.2:8470"
    assert resolver.get_job_name() == "worker"
    assert resolver.describe()[0]["endpoints"] == 2 and resolver.recoverable()
    assert resolver.get_coordination_service_leader() == "/job:worker/task:0"
    with pytest.raises(errors.FailedPreconditionError, match="health"):
        resolver.wait_for_healthy(1, 0.1)
    with pytest.raises(ValueError, match="empty list"):
        TPUClusterResolver([])


def test_a_gce_task_type_cannot_be_set():
    resolver = muster.GCEClusterResolver("p", "z", "g", 8470)
    with pytest.raises(RuntimeError, match="GCEClusterResolver"):
        resolver.task_type = "ps"
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == (
        "worker", 0, "grpc")


def test_kubernetes_asks_the_api_server(tmp_path):
    from http.server import BaseHTTPRequestHandler, HTTPServer

    asked = []

    class Api(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {},
                               "items": [{"metadata": {"name": f"w-{i}",
                                                       "namespace": "default"},
                                          "status": {"phase": "Running",
                                                     "podIP": f"10.1.0.{i}"}}
                                         for i in (2, 1)]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    resolver = muster.KubernetesClusterResolver(
        {"worker": ["app=a,tier=b"]}, 9999, timeout=20,
        settings={"api_server": f"http://127.0.0.1:{server.server_port}",
                  "namespace": "default", "executable_location": "off_cluster"})
    try:
        assert resolver.cluster_spec() == {"worker": ["10.1.0.1:9999", "10.1.0.2:9999"]}
    finally:
        server.shutdown()
        server.server_close()
    assert "app%3Da" in asked[0] and "/namespaces/default/pods" in asked[0]


def test_any_resolver_by_name_with_its_settings(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", '
                    '"index": 0}}')
    resolver = NamedClusterResolver("file", {"path": str(path)})
    assert resolver.resolve()["source"] == "file" and resolver.task_id == 0
    assert resolver.explain()[0]["state"] == "taken"
    assert {"tf_config", "slurm", "etcd", "dns"} <= set(resolver_names())
    with pytest.raises(errors.NotFoundError, match="slurm"):
        NamedClusterResolver("slrum")
    with pytest.raises(ValueError, match="nonsense"):
        NamedClusterResolver("file", {"nonsense": 1})


def test_what_waits_ends_at_its_timeout():
    begin = time.monotonic()
    with pytest.raises(errors.MusterError, match="nobody.invalid|names"):
        NamedClusterResolver("dns", {"names": "worker=nobody.invalid:1"},
                             timeout=0.5).cluster_spec()
    assert time.monotonic() - begin < 15


# ---- one's own ----

class Own(ClusterResolver):
    """Fails `failures` times, and says then what it was given."""

    def __init__(self, spec, failures=0, error=None):
        self.spec = spec
        self.failures = failures
        self.error = error or errors.UnavailableError("not yet")
        self.threads = set()

    def cluster_spec(self):
        self.threads.add(threading.get_ident())
        if self.failures:
            self.failures -= 1
            raise self.error
        return self.spec


def test_ones_own_has_the_rest_from_its_base():
    own = Own(SPEC)
    assert (own.master(), own.task_type, own.environment) == ("", None, "")
    own.task_type, own.task_id, own.rpc_layer = "worker", 0, "grpc"
    assert own.master() == "grpc://w0:2222" and own.num_accelerators() == {}
    other = SimpleClusterResolver(ClusterSpec({"worker": ["x:1"]}))
    assert UnionClusterResolver(own, other).cluster_spec().num_tasks("worker") == 3


def test_a_node_asks_ones_own_on_another_thread_until_it_knows():
    own = Own(ClusterSpec({"chief": ["127.0.0.1:0"]}), failures=2)
    own.task_type, own.task_id = "chief", 0
    with muster.Node(resolver=own, resolve=30) as node:
        assert node.task == "/job:chief/task:0"
        assert own.failures == 0 and threading.get_ident() not in own.threads


def test_what_ones_own_raises_ends_the_node_with_its_words():
    for error, kind in ((ValueError("so and so"), ValueError),
                        (errors.PermissionDeniedError("so and so"),
                         errors.PermissionDeniedError),
                        (RuntimeError("so and so"), errors.UnknownError)):
        own = Own(SPEC, failures=1000, error=error)
        with pytest.raises(kind, match="so and so"):
            muster.Node(resolver=own, task_type="worker", task_index=0, resolve=5)


def test_ones_own_that_says_nonsense_is_refused():
    own = Own("nonsense")
    with pytest.raises(ValueError, match="JSON"):
        muster.Node(resolver=own, task_type="worker", task_index=0, resolve=5)
    with pytest.raises(TypeError, match="ClusterResolver"):
        muster.Node(resolver=3)
    with pytest.raises(TypeError):
        Own.__bases__[0]()


def test_resolvers_are_freed_with_their_nodes():
    own = Own(ClusterSpec({"chief": ["127.0.0.1:0"]}))
    own.task_type, own.task_id = "chief", 0
    before = sys.getrefcount(own)
    for _ in range(40):     # more than names that the library has room for
        muster.Node(resolver=own).close()
    gc.collect()
    assert sys.getrefcount(own) == before
