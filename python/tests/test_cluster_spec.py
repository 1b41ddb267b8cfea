"""Cluster specs behave as TensorFlow's do."""

import json
import pickle

import pytest

import muster
from muster import ClusterSpec

JOBS = {"worker": ["w0:2222", "w1:2222"], "ps": {1: "p1:2222", 3: "p3:2222"}}


def test_accessors_of_a_dense_and_a_sparse_job():
    spec = ClusterSpec(JOBS)
    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == {"ps": {1: "p1:2222", 3: "p3:2222"},
                              "worker": ["w0:2222", "w1:2222"]}
    assert (spec.num_tasks("worker"), spec.num_tasks("ps")) == (2, 2)
    assert spec.task_indices("ps") == [1, 3]
    assert spec.task_address("ps", 3) == "p3:2222"
    assert spec.job_tasks("ps") == [None, "p1:2222", None, "p3:2222"]


def test_it_is_made_from_json_another_spec_and_tensorflows():
    class Other:
        def as_dict(self):
            return JOBS

    spec = ClusterSpec(JOBS)
    text = json.dumps({"worker": ["w0:2222", "w1:2222"],
                       "ps": {"1": "p1:2222", "3": "p3:2222"}})
    assert spec == ClusterSpec(text) == ClusterSpec(spec) == ClusterSpec(Other())
    assert spec == JOBS and spec == text and spec != {"worker": ["w0:2222"]}
    assert ClusterSpec(spec.as_json()) == spec


def test_equality_is_of_tasks_and_addresses():
    assert ClusterSpec({"worker": ["a:1"]}) == ClusterSpec({"worker": {0: "tcp://a:1"}})
    assert hash(ClusterSpec({"worker": ["a:1"]})) == hash(
        ClusterSpec({"worker": {0: "tcp://a:1"}}))
    assert ClusterSpec({"worker": ["a:1"], "ps": []}) == {"worker": ["a:1"]}
    assert ClusterSpec({"worker": ["a:1"]}) != {"worker": ["a:2"]}
    assert ClusterSpec(JOBS) != 3 and ClusterSpec(JOBS) != {"worker": 3}


def test_truth_is_whether_there_is_a_job():
    assert not ClusterSpec({})
    assert ClusterSpec({"worker": []}) and ClusterSpec({"worker": []}).as_dict() == {
        "worker": {}}


def test_it_can_be_pickled():
    spec = ClusterSpec(JOBS)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(spec)).as_dict() == spec.as_dict()


@pytest.mark.parametrize("cluster, words", [
    (3, "dict, JSON"), (None, "dict, JSON"), ({"worker": 3}, "list of addresses"),
    ({"worker": [3]}, "address of task 0"), ({3: ["a:1"]}, "name of a job"),
    ({"worker": {1.5: "a:1"}}, "expected an int"), ({"worker": "a:1"}, "addresses"),
])
def test_what_has_the_wrong_type_is_a_type_error(cluster, words):
    with pytest.raises(TypeError, match=words):
        ClusterSpec(cluster)


@pytest.mark.parametrize("cluster, words", [
    ("{", "no JSON"), ({"workr": ["a:1"]}, "did you mean \"worker\""),
    ({"worker": ["a"]}, "port is missing"), ({"worker": ["a:1", "a:1"]}, "already"),
    ({"worker": {-1: "a:1"}}, "negative"), ({"worker": {"x": "a:1"}}, "a number"),
    ({"worker": {1: "a:1", "1": "a:2"}}, "twice"),
    ({"worker": {9999999: "a:1"}}, "9999999"),
])
def test_what_makes_no_sense_is_a_value_error_that_says_where(cluster, words):
    with pytest.raises(ValueError, match=words):
        ClusterSpec(cluster)


def test_unknown_jobs_and_tasks_are_value_errors():
    spec = ClusterSpec(JOBS)
    for call in (lambda: spec.num_tasks("chief"), lambda: spec.task_indices("chief"),
                 lambda: spec.job_tasks("chief"), lambda: spec.task_address("chief", 0)):
        with pytest.raises(ValueError, match="no job 'chief'"):
            call()
    with pytest.raises(ValueError, match=r"no task 0.*\[1, 3\]"):
        spec.task_address("ps", 0)


def test_rules_of_who_leads_and_who_counts():
    spec = ClusterSpec({"chief": ["c:1"], "worker": ["w:1", "w:2"], "ps": ["p:1"],
                        "evaluator": ["e:1"]})
    assert spec.is_chief("chief", 0) and spec.is_chief("evaluator", 0)
    assert not spec.is_chief("worker", 0) and not spec.is_chief("ps", 0)
    assert spec.collective_leader("worker") == "/job:chief/task:0"
    assert spec.coordination_leader() == "/job:ps/task:0"
    assert spec.service_host() == "/job:chief/task:0"
    assert spec.worker_count("worker") == 3 and spec.worker_count("evaluator") == 1
    assert spec.id_in_cluster("worker", 1) == 2 and spec.id_in_cluster("chief", 0) == 0
    assert spec.split("evaluator").as_dict() == {"evaluator": ["e:1"]}
    assert "evaluator" not in spec.split("worker").jobs
    spec.validate("worker", 1)
    for call in (lambda: spec.validate("worker", 5), lambda: spec.worker_count("ps"),
                 lambda: spec.id_in_cluster("ps", 0), lambda: spec.is_chief("worker", 9),
                 lambda: ClusterSpec({"chief": ["a:1", "a:2"]}).validate()):
        with pytest.raises(ValueError):
            call()


def test_a_node_is_made_from_a_spec():
    with muster.Node(ClusterSpec({"chief": ["127.0.0.1:0"]}), task_type="chief",
                     task_index=0) as node:
        assert node.task == "/job:chief/task:0"


# ---- nodes by TF_CONFIG ----

CHIEF = {"chief": ["127.0.0.1:0"], "worker": ["127.0.0.1:1"]}


@pytest.mark.parametrize("config, options, task", [
    ({"cluster": CHIEF, "task": {"type": "chief", "index": 0}}, {}, "/job:chief/task:0"),
    ({"cluster": CHIEF, "task": {"type": "worker", "index": 0}},
     {"task_type": "chief"}, "/job:chief/task:0"),
    ({"cluster": {"chief": ["127.0.0.1:9"]}}, {"task_type": "client", "task_index": 3},
     "/job:client/task:3"),
])
def test_a_node_without_a_cluster_is_the_one_of_tf_config(monkeypatch, config, options,
                                                          task):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    for given in ({}, {"cluster": None}):
        with muster.Node(**given, **options) as node:
            assert node.task == task and node.task_count("chief") == 1


@pytest.mark.parametrize("text, words", [
    (None, r"there is no cluster: expected Node\(cluster, task_type=...\), or TF_CONFIG"),
    ("", "there is no cluster"),
    ("nonsense", "TF_CONFIG: line 1"),
    ("{}", "TF_CONFIG has no cluster"),
    (json.dumps({"cluster": CHIEF}), "TF_CONFIG has no task"),
])
def test_a_node_of_nothing_is_told_what_is_expected(monkeypatch, text, words):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if text is not None:
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(muster.errors.InvalidArgumentError, match=words):
        muster.Node()
