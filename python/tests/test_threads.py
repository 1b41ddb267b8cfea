"""Many threads at the same things: with the GIL one after the other, on a free-threaded
interpreter really."""

import os
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest

import muster
from muster import errors

import jobs

THREADS = 24


def in_threads(function, count=THREADS):
    """Run function(number) in threads that begin together; what it returned."""
    results = [None] * count
    failures = []
    barrier = threading.Barrier(count)

    def main(number):
        barrier.wait()
        try:
            results[number] = function(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=main, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]
    return results


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"),
                    reason="this interpreter is not free-threaded")
def test_the_extension_leaves_the_gil_off():
    program = ("import sys, numpy, cloudpickle; before = sys._is_gil_enabled();"
               "import muster, muster._muster; print(before, sys._is_gil_enabled())")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHON_GIL"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd="/",
                          env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_threads_send_the_same_and_other_functions_at_once(coordinator):
    shared = [eval(f"lambda x: x + {i}") for i in range(5)]

    def work(number):
        own = eval(f"lambda x: x * {number}")
        values = []
        for i in range(40):
            values.append((coordinator.schedule(shared[i % 5], (i,)), i + i % 5))
            values.append((coordinator.schedule(own, (i,)), i * number))
            values.append((coordinator.schedule(abs, (-i,)), i))
        return all(value.fetch(60) == wanted for value, wanted in values)

    assert in_threads(work) == [True] * THREADS


def test_all_threads_fetch_one_object(coordinator):
    for _ in range(20):
        value = coordinator.schedule(jobs.array_of, (1000,))
        fetched = in_threads(lambda number: value.fetch(60))
        assert all(array is fetched[0] for array in fetched)
        assert fetched[0].sum() == sum(range(1000))


def test_arguments_and_structures_may_change_meanwhile(coordinator):
    """Each call sees some state of them; which one is the user's affair. (Arguments that
    need a pickle are not tried: CPython 3.13's own dumps() crashes of this.)"""
    items = {str(i): i for i in range(50)}
    listed = list(range(50))
    values = [coordinator.schedule(jobs.array_of, (10,)) for _ in range(20)]
    structure = {"list": list(values), "dict": dict(enumerate(values))}
    for value in values:
        value.fetch(60)
    stop = threading.Event()

    def change():
        count = 0
        while not stop.is_set():
            count += 1
            items[str(count % 97)] = count
            items.pop(str((count + 48) % 97), None)
            listed.append(count)
            del listed[:1 + count % 3]
            listed.extend((1, 2))
            structure["list"].append(values[count % 20])
            del structure["list"][:1]
            structure["dict"][count % 61] = values[count % 20]
            structure["dict"].pop((count + 30) % 61, None)

    def work(number):
        for _ in range(30):
            try:
                fetched = coordinator.fetch(structure, 60)
                assert all(array.sum() == 45 for array in fetched["list"])
                coordinator.per_worker_values([items, listed]).close()
            except (RuntimeError, IndexError) as error:
                # What Python itself says of a dict or list that changes in a loop.
                assert "changed" in str(error) or "index" in str(error), error
        return True

    changer = threading.Thread(target=change)
    changer.start()
    try:
        assert in_threads(work, 8) == [True] * 8
    finally:
        stop.set()
        changer.join()


def test_a_coordinator_is_closed_while_threads_use_it(own_cluster):
    with own_cluster(workers=2, ps=1) as cluster:
        for _ in range(5):
            coordinator = muster.ClusterCoordinator(cluster, timeout=60)
            begun = threading.Barrier(THREADS + 1)
            values = [coordinator.schedule(jobs.add, (1, 2)) for _ in range(10)]

            def work(number):
                begun.wait()
                calls = 0
                try:
                    while True:
                        calls += 1
                        if number % 4 == 0:
                            coordinator.schedule(jobs.add, (number, 1))
                        elif number % 4 == 1:
                            coordinator.join(60)
                        elif number % 4 == 2:
                            coordinator.counts(), coordinator.done(), coordinator.errors()
                        else:
                            coordinator.schedule(eval("lambda: 1")).fetch(60)
                except (errors.ClosedError, errors.CancelledError):
                    return calls

            closer = threading.Thread(target=lambda: (begun.wait(), values[9].wait(60),
                                                      coordinator.close()))
            closer.start()
            assert all(calls > 0 for calls in in_threads(work))
            closer.join(60)
            assert not closer.is_alive()
            with pytest.raises(errors.ClosedError):
                coordinator.schedule(jobs.add, (1, 2))


def test_variables_are_closed_while_threads_read_them(shared_cluster):
    for round_number in range(10):
        variable = muster.Variable(np.arange(1000.0), node=shared_cluster,
                                   name=f"threads{round_number}")

        def work(number):
            try:
                for i in range(20):
                    if number == 0 and i == 10:
                        variable.close()
                    assert variable.read(60).sum() == 499500.0
            except errors.ClosedError:
                return True
            return False

        assert in_threads(work, 8)[0]


def test_per_worker_values_are_closed_while_threads_pass_them(coordinator):
    for _ in range(10):
        values = coordinator.create_per_worker_value(jobs.add, (1, 2))

        def work(number):
            sent = []
            try:
                for i in range(20):
                    if number == 0 and i == 10:
                        values.close()
                    sent.append(coordinator.schedule(jobs.add, (values, number)))
            except errors.ClosedError:
                pass
            for value in sent:
                try:
                    assert value.fetch(60) == 3 + number
                except errors.MusterError:  # its worker had not made it yet
                    pass
            return True

        assert all(in_threads(work, 8))
        coordinator.join(60)


def test_a_dataset_is_closed_while_threads_deal_it(coordinator):
    for _ in range(5):
        dataset = muster.ShardedDataset(coordinator, 1000, epochs=0)

        def work(number):
            try:
                for i in range(60):
                    if number == 0 and i == 40:
                        dataset.close()
                    assert dataset.schedule(jobs.shard_number)
            except errors.ClosedError:
                return True
            return False

        assert in_threads(work, 8)[0]
        coordinator.join(60)


def test_runs_of_a_worker_find_its_node_at_the_same_time(coordinator):
    def where():
        run = muster.current_run()
        return run.node.task, run.worker

    assert in_threads(lambda number: all(
        task == f"/job:worker/task:{worker}" for task, worker in
        coordinator.fetch([coordinator.schedule(where) for _ in range(50)], 60)))
