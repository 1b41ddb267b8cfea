"""Memory stays flat, and no reference is left behind."""

import gc
import os
import sys

import numpy as np

import jobs
import muster


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rounds(coordinator, count, size=1000):
    for _ in range(count):
        coordinator.fetch([coordinator.schedule(jobs.same, (i,))
                           for i in range(size)], 60)


COUNT = int(os.environ.get("MUSTER_LEAK_ROUNDS", "150"))


def test_many_closures_leave_memory_flat(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        worker = coordinator.schedule(jobs.pid).fetch(30)
        rounds(coordinator, 40)
        before = resident(os.getpid()), resident(worker)
        rounds(coordinator, COUNT)
        after = resident(os.getpid()), resident(worker)
    for old, new in zip(before, after):
        assert new - old < 3 << 20


def test_arrays_pickles_exceptions_and_functions_leave_memory_flat(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        worker = coordinator.schedule(jobs.pid).fetch(30)

        def everything(count):
            for i in range(count):
                array = np.zeros(1 << 16)
                one = coordinator.schedule(jobs.same, (array,))
                two = coordinator.schedule(jobs.same, ({"a": array, "v": one},))
                assert two.fetch(30)["v"].nbytes == array.nbytes
                assert coordinator.schedule(lambda n=i % 7: n).fetch(30) == i % 7
                try:
                    coordinator.schedule(jobs.fail, (str(i),)).fetch(30)
                except ValueError:
                    pass
                try:
                    coordinator.join(30)
                except ValueError:
                    pass

        everything(100)
        before = resident(os.getpid()), resident(worker)
        everything(300)
        after = resident(os.getpid()), resident(worker)
    for old, new in zip(before, after):
        assert new - old < 12 << 20


def test_no_reference_to_what_was_passed_is_left(coordinator):
    class Passed:
        pass

    array, value = np.zeros(5), Passed()
    text = "a text of its own " + str(os.getpid())
    gc.collect()
    before = [sys.getrefcount(item) for item in (array, value, text, jobs.same)]
    for _ in range(100):
        coordinator.schedule(jobs.same, (array, )).fetch(30)
        coordinator.schedule(jobs.same, (text,), {}, name="a").fetch(30)
        coordinator.schedule(jobs.same, ([value, array],)).fetch(30)
    gc.collect()
    after = [sys.getrefcount(item) for item in (array, value, text, jobs.same)]
    assert after == before
