"""Futures of an executor: who settles them, and what wakes those who wait."""

import concurrent.futures as cf
import gc
import threading
import time
import weakref

import pytest

import jobs_executor as jobs
import muster
from conftest import wait_until


@pytest.fixture
def executor(coordinator):
    with muster.Executor(coordinator) as executor:
        yield executor


def in_thread(function):
    answers = []

    def run():
        try:
            answers.append(function())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


def test_a_wait_that_is_over_too_early_can_be_repeated(executor):
    future = executor.submit(jobs.wait_and_give, 0.3, "late")
    for _ in range(3):
        with pytest.raises(cf.TimeoutError):
            future.result(0.01)
    with pytest.raises(cf.TimeoutError):
        future.exception(0)
    assert future.result(20) == "late" and future.exception(0) is None


def test_threads_that_wait_for_one_future_all_get_its_result(executor):
    future = executor.submit(jobs.wait_and_give, 0.2, 5)
    waiting = [in_thread(lambda: future.result(20)) for _ in range(8)]
    for thread, answers in waiting:
        thread.join(20)
        assert answers == [5]


def test_cancelling_wakes_who_waits(coordinator):
    with muster.Executor(coordinator, cancel_running=True) as executor:
        for many in (0, 40):    # with few in flight a result comes straight to its waiter
            others = [executor.submit(jobs.wait_and_give, 0.02, 1) for _ in range(many)]
            future = executor.submit(jobs.wait_and_give, 1, 1)
            thread, answers = in_thread(lambda: future.result(20))
            time.sleep(0.05)
            assert future.cancel()
            thread.join(0.8)
            assert isinstance(answers[0], cf.CancelledError)
            assert all(other.result(20) == 1 for other in others)


def test_shutting_down_wakes_who_waits_for_what_was_not_sent(coordinator):
    executor = muster.Executor(coordinator, max_workers=1)
    first = executor.submit(jobs.wait_and_give, 0.5, 1)
    second = executor.submit(jobs.wait_and_give, 0, 2)
    thread, answers = in_thread(lambda: second.result(20))
    time.sleep(0.05)
    executor.shutdown(wait=False, cancel_futures=True)
    thread.join(5)
    assert isinstance(answers[0], cf.CancelledError) and first.result(20) == 1
    executor.shutdown()


def test_slow_calls_after_many_fast_ones_can_still_be_cancelled(executor):
    for future in [executor.submit(jobs.give, i) for i in range(20000)]:
        future.result(60)
    assert wait_until(lambda: executor._engine.is_idle)
    slow = [executor.submit(jobs.wait_and_give, 0.3, i) for i in range(100)]
    assert sum(not future.cancel() for future in slow) <= executor._max_workers + 2


def test_many_that_cannot_be_sent_fail_each_by_itself(executor):
    lock = threading.Lock()
    blocked = [executor.submit(jobs.wait_and_give, 0.2, i) for i in range(16)]
    futures = [executor.submit(abs, lock) for _ in range(20000)]
    assert all(isinstance(future.exception(60), TypeError) for future in futures)
    assert [future.result(20) for future in blocked] == list(range(16))


def goes_away(reference):
    """Within a while: another thread may still be busy with it."""
    end = time.monotonic() + 10
    while reference() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.005)
    return reference() is None


def test_a_future_in_a_cycle_is_collected(executor):
    cycle, holder = executor.submit(jobs.give, 2), executor.submit(jobs.give, [3])
    cycle.me = cycle
    holder.result(20).append(holder)
    assert cycle.result(20) == 2
    gone = [weakref.ref(future) for future in (cycle, holder)]
    del cycle, holder
    assert all(goes_away(reference) for reference in gone)


def test_what_a_future_was_given_is_dropped_when_it_is_done(executor):
    argument = jobs.Multiplier(3)
    gone = weakref.ref(argument)
    future = executor.submit(jobs.give, argument)
    assert future.result(20).k == 3
    del argument
    assert goes_away(gone)


def test_threads_that_submit_wait_and_cancel_at_once(coordinator):
    failures = []

    def use(number):
        try:
            futures = [executor.submit(jobs.give, (number, i)) for i in range(200)]
            for i, future in enumerate(futures):
                if i % 7 == 0:
                    future.cancel()
                elif i % 5 == 0:
                    cf.wait(futures[i:i + 3], 30)
                if future.cancelled():
                    continue
                if future.result(30) != (number, i):
                    failures.append((number, i))
            assert len(list(cf.as_completed(futures, 30))) == 200
        except BaseException as error:
            failures.append(error)

    with muster.Executor(coordinator, cancel_running=True) as executor:
        threads = [threading.Thread(target=use, args=(n,)) for n in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


# ---- wait(num_returns=) ----

@pytest.mark.parametrize("kind", ["futures", "values", "both"])
def test_some_of_many_are_waited_for(coordinator, executor, kind, tmp_path):
    paths = [str(tmp_path / str(i)) for i in range(4)]
    waiting = [executor.submit(jobs.wait_for, path) if
               (kind == "futures" or (kind == "both" and i % 2)) else
               coordinator.schedule(jobs.wait_for, (path,))
               for i, path in enumerate(paths)]
    assert muster.wait(waiting, 0.05, num_returns=1) == ([], waiting)
    assert muster.wait(waiting, 0, num_returns=4) == ([], waiting)
    for i in (2, 0):
        open(paths[i], "w").close()
        assert muster.wait([waiting[i]], 30, num_returns=1) == ([waiting[i]], [])
    # In the order given, no more than were asked for.
    assert muster.wait(waiting, 30, num_returns=2) == (
        [waiting[0], waiting[2]], [waiting[1], waiting[3]])
    assert muster.wait(iter(waiting), num_returns=1) == ([waiting[0]], waiting[1:])
    thread, answers = in_thread(lambda: muster.wait(waiting, 30, num_returns=3))
    time.sleep(0.1)
    assert not answers
    open(paths[3], "w").close()
    thread.join(30)
    assert answers == [([waiting[0], waiting[2], waiting[3]], [waiting[1]])]
    open(paths[1], "w").close()
    assert muster.wait(waiting, num_returns=4) == (waiting, [])


def test_a_loop_over_what_is_done_first(coordinator):
    values = [coordinator.schedule(jobs.wait_and_give, (0.001 * (i % 7), i))
              for i in range(100)]
    rest, got = values, []
    while rest:
        done, rest = muster.wait(rest, 30, num_returns=min(3, len(rest)))
        got += [value.fetch() for value in done]
    assert sorted(got) == list(range(100))


def test_a_value_has_one_future(coordinator):
    value = coordinator.schedule(jobs.wait_and_give, (0.05, 1))
    assert muster.future_of(value) is muster.future_of(value)
    assert muster.future_of(value).result(30) == 1 == value.fetch()


def test_those_that_fail_are_done(executor):
    bad = executor.submit(jobs.divide, 1, 0)
    assert muster.wait([bad], 30, num_returns=1) == ([bad], [])


@pytest.mark.parametrize("count", [0, -1, 3, 1.5, True, "1"])
def test_wrong_numbers_to_wait_for(executor, count):
    futures = [executor.submit(abs, i) for i in range(2)]
    with pytest.raises(ValueError, match="num_returns is"):
        muster.wait(futures, num_returns=count)
    with pytest.raises(ValueError, match="once only"):
        muster.wait(futures[:1] * 2, num_returns=1)
    with pytest.raises(ValueError, match="were given"):
        muster.wait(futures, None, muster.futures.FIRST_COMPLETED, num_returns=1)
