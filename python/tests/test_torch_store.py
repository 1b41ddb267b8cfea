"""MusterStore: a Store of torch.distributed, where torch is installed."""

import datetime
import threading

import pytest

import muster
import torch_group

distributed = pytest.importorskip(
    "torch.distributed", reason="torch is not installed: its rendezvous is not tried")
if not distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from muster.torch_store import MusterStore  # noqa: E402


@pytest.fixture
def store(shared_cluster, request):
    return MusterStore(shared_cluster, prefix=f"store/{request.node.name}", timeout=20)


def test_set_get_add_delete(store):
    store.set("a/b//c", "1")
    store.set("raw", b"\0\xff")
    assert (store.get("a/b//c"), store.get("raw")) == (b"1", b"\0\xff")
    assert [store.add("n", 2), store.add("n", -5)] == [2, -3]
    assert store.get("n") == b"-3" and store.num_keys() == 3
    assert store.delete_key("raw") and not store.delete_key("raw")
    assert store.num_keys() == 2 and store.check(["n"]) and not store.check(["n", "raw"])


def test_keys_of_any_characters(store):
    keys = ["", ".", "..", "a//b", "100%", "%2F", "two\nlines\0", "\u00e9"]
    for number, key in enumerate(keys):
        store.set(key, str(number))
    assert [store.get(key) for key in keys] == [b"%d" % i for i in range(len(keys))]
    assert store.num_keys() == len(keys)


def test_stores_of_torch_around_it_have_all_calls(store):
    inner = distributed.PrefixStore("inner", store)
    inner.set("a", "1")
    assert inner.get("a") == b"1" and store.get("inner/a") == b"1"
    assert inner.add("n", 3) == 3 and inner.num_keys() == 2
    assert inner.delete_key("a") and not inner.delete_key("a")
    assert inner.compare_set("k", "", "v") == b"v"
    with pytest.raises(RuntimeError, match="not there"):
        inner.wait(["never"], datetime.timedelta(milliseconds=50))


def test_get_and_wait_wait_until_the_timeout(store):
    timer = threading.Timer(0.1, store.set, ("late", "x"))
    timer.start()
    store.wait(["late"], datetime.timedelta(seconds=20))
    assert store.get("late") == b"x"
    with pytest.raises(RuntimeError, match='"never"'):
        store.wait(["late", "never"], datetime.timedelta(milliseconds=50))
    store.set_timeout(datetime.timedelta(milliseconds=50))
    assert store.timeout == datetime.timedelta(milliseconds=50)
    with pytest.raises(LookupError, match='"never"'):
        store.get("never")


def test_compare_set_is_won_by_one(store):
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"
    assert store.compare_set("absent", "some", "x") == b"some"
    won = []
    threads = [threading.Thread(target=lambda i=i: won.append(
        store.compare_set("race", "", str(i)) == str(i).encode())) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(won) == 1


def test_wrong_use(shared_cluster):
    with pytest.raises(ValueError):
        MusterStore(shared_cluster, prefix="/")
    with pytest.raises(TypeError):
        MusterStore(3)
    with pytest.raises(TypeError, match="prefix"):
        MusterStore(shared_cluster, prefix=3)
    with pytest.raises(TypeError, match="timeout"):
        MusterStore(shared_cluster, timeout="soon")
    with pytest.raises(ValueError, match="timeout"):
        MusterStore(shared_cluster, timeout=-1)
    store = MusterStore(shared_cluster, prefix="wrong", timeout=5)
    with pytest.raises(TypeError, match="list"):
        store.wait("abc")
    with pytest.raises(ValueError, match="2 keys and 1 values"):
        store.multi_set(["a", "b"], ["1"])


needs_gloo = pytest.mark.skipif(
    hasattr(distributed, "is_gloo_available") and not distributed.is_gloo_available(),
    reason="this torch has no gloo")


@needs_gloo
def test_a_process_group_meets_over_it(own_cluster):
    cluster = own_cluster(workers=2)
    with muster.Executor(cluster) as executor:
        futures = [executor.submit(torch_group.run, rank, 2, "group")
                   for rank in range(2)]
        assert [future.result(120) for future in futures] == [(3.0, [0, 1])] * 2


@needs_gloo
def test_a_member_that_dies_is_seen_by_the_others(own_cluster):
    cluster = own_cluster(workers=3)
    with muster.Executor(cluster, attempts=1) as executor:
        futures = [executor.submit(torch_group.run, rank, 3, "dies", rank == 2)
                   for rank in range(3)]
        with pytest.raises(muster.errors.AbortedError):
            futures[2].result(120)
        for future in futures[:2]:
            with pytest.raises(RuntimeError):
                future.result(120)
