"""Waits: Ctrl-C, threads, forks, asyncio."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import jobs
import muster

WAITS = {
    "fetch": "value.fetch()",
    "fetch_structure": "coordinator.fetch([value, {'k': value}])",
    "join": "coordinator.join()",
    "wait": "value.wait()",
    "schedule": "[coordinator.schedule(jobs.sleep, (20,)) for _ in range(20)]",
    "variable": "muster.Variable(shape=3, name='x', existing=True, node=cluster)",
    "wait_job": "cluster.node.wait_job()",
    "cluster_wait": "muster.LocalCluster(workers=1, restart=False, python='signal,no')"
                    ".wait(20)",
}

PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
import jobs, muster
cluster = muster.LocalCluster(workers=1, ps=1, queue_max=4)
coordinator = muster.ClusterCoordinator(cluster)
coordinator.schedule(jobs.same, (1,)).fetch(30)
value = coordinator.schedule(jobs.sleep, (20,))
print("ready", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
value.cancel()
print(coordinator.schedule(jobs.same, (2,), timeout=20).fetch(20) if {usable} else 2)
"""


@pytest.mark.parametrize("wait", ["fetch", "fetch_structure", "join", "wait", "schedule",
                                  "variable", "wait_job"])
def test_an_interrupt_ends_a_wait(wait):
    program = PROGRAM.format(tests=os.path.dirname(jobs.__file__), wait=WAITS[wait],
                             usable=wait != "schedule")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - begun < 2
    assert process.stdout.readline() == "2\n"
    assert process.wait(20) == 0
    process.stdout.close()


TABLE_PROGRAM = """
import glob, os, signal, sys
import numpy as np, muster

def is_stopped(path):
    with open(path) as stat:
        return stat.read().rsplit(") ")[1][0] == "T"

cluster = muster.LocalCluster(workers=1, ps=1)
table = muster.Table("t", dim=2, optimizer=1.0, node=cluster)
table.apply_gradients([1], np.ones((1, 2)))
server = cluster.pid("ps", 0)
os.kill(server, signal.SIGSTOP)
while not all(map(is_stopped, glob.glob("/proc/%d/task/*/stat" % server))):
    pass
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
os.kill(server, signal.SIGCONT)
print(table.lookup([2]).tolist(), table.lookup([1])[0, 0] <= -1, flush=True)
"""


@pytest.mark.parametrize("call", ["table.lookup([1])",
                                  "table.apply_gradients([1], np.ones((1, 2)))"])
def test_an_interrupt_ends_a_call_about_a_table(call):
    process = subprocess.Popen([sys.executable, "-c", TABLE_PROGRAM.format(call=call)],
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.stdout.readline() == "[[0.0, 0.0]] True\n"
    assert process.wait(20) == 0
    process.stdout.close()


def test_many_threads_use_one_coordinator(coordinator):
    failures = []

    def use(number):
        try:
            for i in range(40):
                values = [coordinator.schedule(jobs.add, (number, i)) for _ in range(5)]
                assert coordinator.fetch(values, 60) == [number + i] * 5
                array = coordinator.schedule(jobs.same, (np.full(700, number),))
                assert (array.fetch(60) == number).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_other_threads_run_while_one_waits(coordinator):
    value = coordinator.schedule(jobs.sleep, (0.5,))
    counted = []

    def count():
        while not value.done():
            counted.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    value.fetch(30)
    thread.join()
    assert len(counted) > 50


def test_several_threads_of_a_worker_run_at_a_time(coordinator):
    begun = time.monotonic()
    coordinator.fetch([coordinator.schedule(time.sleep, (0.4,), worker=0)
                       for _ in range(2)], 30)
    assert time.monotonic() - begun < 0.75


def test_a_forked_child_is_told_that_the_cluster_is_its_parents(shared_cluster,
                                                                coordinator):
    value = coordinator.schedule(jobs.sleep, (0.2,))
    calls = [lambda: coordinator.schedule(jobs.same, (1,)), lambda: coordinator.join(),
             lambda: value.fetch(), lambda: shared_cluster.node.status(5.0),
             lambda: muster.Variable(shape=3, name="forked", node=shared_cluster)]
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        words = []
        for call in calls:
            try:
                call()
                words.append("nothing")
            except BaseException as error:
                words.append(f"{type(error).__name__} {'forked' in str(error)}")
        os.write(write, "\n".join(words).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        assert file.read().splitlines() == ["ClosedError True"] * len(calls)
    os.waitpid(pid, 0)
    assert value.fetch(30) is False
    assert coordinator.schedule(jobs.same, (1,)).fetch(30) == 1


def test_a_forked_child_may_have_a_cluster_of_its_own(coordinator):
    coordinator.schedule(jobs.same, (1,)).fetch(30)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with muster.LocalCluster(workers=1) as cluster:
                with muster.ClusterCoordinator(cluster) as own:
                    code = own.schedule(jobs.add, (1, 2)).fetch(30) + 40
        finally:
            os._exit(code)
    os.close(read)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 43


def test_values_are_awaited_in_asyncio(coordinator):
    async def all_of(count):
        values = [coordinator.schedule(jobs.same, (i,)) for i in range(count)]
        return await asyncio.gather(*(wrap(value) for value in values))

    async def wrap(value):
        return await value

    async def fails():
        await coordinator.schedule(jobs.fail, ("awaited",))

    async def times_out():
        value = coordinator.schedule(jobs.sleep, (5,))
        try:
            await asyncio.wait_for(wrap(value), 0.1)
        finally:
            value.cancel()

    assert asyncio.run(all_of(200)) == list(range(200))
    with pytest.raises(ValueError, match="awaited"):
        asyncio.run(fails())
    with pytest.raises(ValueError):
        coordinator.join(30)
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(times_out())


def interrupted(expression, after):
    """Whether a signal that comes some seconds after the start interrupts this."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        expression()
        for _ in range(100):    # where it would be raised, if it is late
            time.sleep(0.01)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        timer.join()


@pytest.mark.parametrize("seconds, after", [(0.045, 0.02), (0.5, 0.3)])
def test_an_interrupt_where_a_coordinator_is_dropped_is_not_lost(own_cluster, seconds,
                                                                 after):
    cluster = own_cluster(workers=1)

    def drop():
        muster.ClusterCoordinator(cluster).schedule(jobs.sleep_deaf, (seconds,)).wait()

    muster.ClusterCoordinator(cluster).schedule(jobs.sleep_deaf, (0,)).fetch(30)
    for _ in range(5):
        assert interrupted(drop, after)


def test_a_signal_is_handled_while_a_short_fetch_waits(coordinator):
    delays = []
    begun = 0.0

    def handle(*_):
        delays.append(time.monotonic() - begun)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        for _ in range(20):
            value = coordinator.schedule(jobs.sleep_deaf, (0.045,))
            timer = threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGUSR1))
            begun = time.monotonic()
            timer.start()
            value.fetch(30)
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(delays) == 20 and min(delays) < 0.03
