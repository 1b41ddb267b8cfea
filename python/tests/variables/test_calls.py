"""Calls that do not wait: on few threads, of which the process needs none at its end."""

import os
import subprocess
import sys
import threading
import time

import pytest

from muster import _calls


def test_results_and_errors():
    assert _calls.start(lambda a, b: a - b, 5, b=3).result(30) == 2
    with pytest.raises(ZeroDivisionError):
        _calls.start(lambda: 1 // 0).result(30)
    with pytest.raises(ZeroDivisionError):
        _calls.at_once(lambda: 1 // 0).result(0)


def test_at_most_eight_at_a_time():
    gate, lock, now = threading.Event(), threading.Lock(), []

    def call():
        with lock:
            now.append(1)
        return gate.wait(30)

    futures = [_calls.start(call) for _ in range(20)]
    limit = time.monotonic() + 30
    while len(now) < 8 and time.monotonic() < limit:
        time.sleep(0.01)
    time.sleep(0.1)
    assert len(now) == 8
    assert futures[-1].cancel() and not futures[0].cancel()
    gate.set()
    assert all(future.result(30) for future in futures[:-1])
    assert len(now) == 19, "a cancelled call does not run"


def test_more_calls_than_there_is_room_for_wait(monkeypatch):
    monkeypatch.setattr(_calls, "_CALLS_MAX", 2)
    threads, gate = _calls._Threads(), threading.Event()
    for _ in range(2):
        threads.put(lambda: gate.wait(30))
    third = threading.Thread(target=threads.put, args=(lambda: None,))
    third.start()
    third.join(0.2)
    assert third.is_alive()
    gate.set()
    third.join(30)
    assert not third.is_alive()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    assert _calls.start(lambda: 1).result(30) == 1
    child = os.fork()
    if child == 0:
        os._exit(_calls.start(lambda: 7).result(30))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_call_under_way_does_not_keep_the_process():
    program = ("import threading\nfrom muster import _calls\n"
               "_calls.start(threading.Event().wait)")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
