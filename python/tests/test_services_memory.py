"""What services leave behind: nothing, after many calls; and many threads at once."""

import gc
import sys
import threading

import pytest

import muster
from conftest import wait_until
from muster import CoordinationService, CoordinatorMode, errors


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.fixture(scope="module")
def service():
    with muster.Node({"chief": ["127.0.0.1:0"]}, task_type="chief", task_index=0,
                     log_level=0) as node:
        service = CoordinationService(node)
        service.register(timeout=30)
        yield service


def calls_of(service):
    keys = service.key_values
    resolver = muster.SimpleClusterResolver(
        muster.ClusterSpec({"worker": ["a:1", "b:1"]}), task_type="worker", task_id=1)

    def fail(call, kind):
        with pytest.raises(kind):
            call()

    def watch():
        with keys.watch("memory", below=True) as opened:
            opened.next(10)

    def lock():
        with service.lock("memory"):
            pass

    def context(_):
        found = muster.get_current_worker_context()
        return found.cluster_spec, found.strategy, found.session_config

    return [
        lambda: keys.put("memory/k", b"x" * 1000), lambda: keys.get("memory/k"),
        lambda: keys.list("memory"), lambda: keys.increment("memory/n"),
        lambda: fail(lambda: keys.put("memory/k", "x", overwrite=False),
                     errors.AlreadyExistsError),
        lambda: keys.get_async("memory/k").result(10),
        lambda: fail(lambda: keys.try_get_async("no").result(10), errors.NotFoundError),
        lambda: keys.get_async("never").cancel(),
        lambda: keys.transaction().if_present("memory/k").put("memory/t", "x").commit(),
        lambda: fail(lambda: keys.transaction().if_absent("memory/k").commit(),
                     errors.FailedPreconditionError),
        watch, lock, lambda: service.barrier("memory"),
        lambda: service.barrier_async("memory").result(10),
        lambda: service.tasks.states(),
        lambda: service.preemption.reached(1), lambda: service.state,
        lambda: fail(lambda: service.tasks.states("worker:9", 1), errors.NotFoundError),
        lambda: muster.ClusterSpec({"worker": ["a:1"], "ps": {3: "b:1"}}).as_dict(),
        lambda: fail(lambda: muster.ClusterSpec({"worker": ["a"]}), ValueError),
        lambda: muster.UnionClusterResolver(resolver).cluster_spec(),
        lambda: resolver.master(), lambda: resolver.num_accelerators(),
        lambda: muster.run_distribute_coordinator(context, mode=CoordinatorMode.LOCAL,
                                                  log_level=0),
    ]


@pytest.mark.parametrize("number", range(24))
def test_calls_leave_nothing_behind(service, number):
    call = calls_of(service)[number]

    def many(count):
        for _ in range(count):
            call()
        gc.collect()
        return resident_bytes(), sys.getrefcount(service.node), sys.getrefcount(None)

    many(150)
    before = first = many(20)
    # What leaks grows each time; the allocator takes a megabyte now and then.
    for _ in range(4):
        after = many(600)
        if after[0] - before[0] < 1 << 20:
            break
        before = after
    # Answers under way have the node for a moment.
    assert wait_until(lambda: sys.getrefcount(service.node) <= first[1], 5)
    assert abs(after[2] - first[2]) < 400
    assert after[0] - before[0] < 1 << 20


def test_24_threads_use_everything_at_once(service):
    keys = service.key_values
    problems = []

    def work(number):
        try:
            for turn in range(10):
                keys.put(f"threads/{number}", str(turn))
                keys.increment_async("threads/sum").result(60)
                with service.lock("threads", timeout=60):
                    value = keys.try_get("threads/held")
                    held = 0 if value is None else value.number
                    keys.put("threads/held", str(held + 1))
                keys.transaction().increment("threads/all").commit(60)
                muster.ClusterSpec({"worker": [f"w{number}:{turn + 1}"]})
                service.tasks.states()
            service.barrier("threads", threads=24, timeout=60)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not problems
    assert [keys.get(f"threads/{name}").number for name in ("sum", "held", "all")] == [
        240] * 3
