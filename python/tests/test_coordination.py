"""The coordination service: key-values, locks, barriers, tasks, preemption, with tasks
that are processes of their own, which are killed and stopped."""

import asyncio
import concurrent.futures
import os
import signal
import sys
import threading
import time

import pytest

import muster
from conftest import wait_until
from muster import CoordinationService, errors
from task_process import TaskError, TaskProcess


@pytest.fixture(scope="module")
def node():
    with muster.Node({"chief": ["127.0.0.1:0"]}, task_type="chief",
                     task_index=0, log_level=0) as opened:
        yield opened


@pytest.fixture
def service(node):
    service = CoordinationService(node)
    service.register(timeout=30)
    for item in service.key_values.list():
        service.key_values.delete(item.key)
    return service


@pytest.fixture
def keys(service):
    return service.key_values


@pytest.fixture
def tasks(tmp_path):
    """Makes the chief and workers: tasks(2, option=...) has them, ready."""
    made = []

    def make(workers, **options):
        options.setdefault("heartbeat", 0.2)
        if "dead" in options:
            options.setdefault("suspect", options["dead"] / 2)
        every = f"chief=1,worker={workers}"
        made.append(TaskProcess(tmp_path, "chief", 0, every, **options))
        for index in range(workers):
            made.append(TaskProcess(tmp_path, "worker", index, every, **options))
        for task in made:
            task.ready()
        return made

    yield make
    for task in made:
        task.end()


# ---- key-values ----

def test_a_value_is_put_read_and_deleted(keys):
    revision = keys.put("a/b", "text")
    item = keys.get("a/b", timeout=5)
    assert (item.key, item.value, item.text, item.revision) == (
        "a/b", b"text", "text", revision)
    assert keys.try_get("/a//b/").value == b"text" and keys.try_get("a") is None
    keys.put("a/c", b"\x00\xff")
    assert [(item.key, item.value) for item in keys.list("a")] == [
        ("a/b", b"text"), ("a/c", b"\x00\xff")]
    assert keys.delete("a") == 2 and keys.delete("a") == 0 and keys.list() == []


def test_put_without_overwriting_and_under_a_revision(keys):
    revision = keys.put("k", "1")
    with pytest.raises(errors.AlreadyExistsError, match='"k"'):
        keys.put("k", "2", overwrite=False)
    with pytest.raises(errors.FailedPreconditionError, match=f"revision {revision}"):
        keys.put("k", "2", revision=revision + 1)
    assert keys.put("k", "2", revision=revision) > revision
    with pytest.raises(errors.FailedPreconditionError):
        keys.put("k", "3", revision=0)
    assert keys.put("new", "1", revision=0) and keys.get("k").value == b"2"


def test_get_waits_until_somebody_puts(keys):
    with pytest.raises(errors.DeadlineExceededError, match='"later"'):
        keys.get("later", timeout=0.1)
    timer = threading.Timer(0.2, keys.put, ("later", "now"))
    timer.start()
    assert keys.get("later", timeout=30).text == "now"
    timer.join()


def test_increment_counts_with_threads(keys):
    def count():
        for _ in range(50):
            keys.increment("count")

    threads = [threading.Thread(target=count) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keys.get("count").number == 1200 and keys.increment("count", -1200) == 0
    keys.put("word", "x")
    with pytest.raises(errors.FailedPreconditionError, match="number"):
        keys.increment("word")
    keys.put("large", str(2**63 - 1))
    with pytest.raises(errors.OutOfRangeError):
        keys.increment("large")


@pytest.mark.parametrize("call, kind", [
    (lambda keys: keys.put(3, "x"), TypeError),
    (lambda keys: keys.put("k", 3), TypeError),
    (lambda keys: keys.put("a\0b", "x"), ValueError),
    (lambda keys: keys.put("", "x"), ValueError),
    (lambda keys: keys.put("k" * 2000, "x"), ValueError),
    (lambda keys: keys.put("k", b"x" * (2 << 20)), errors.ResourceExhaustedError),
    (lambda keys: keys.put("_muster/x", "x"), errors.PermissionDeniedError),
    (lambda keys: keys.get("k", timeout="soon"), TypeError),
    (lambda keys: keys.get("k", timeout=float("nan")), ValueError),
    (lambda keys: keys.increment("k", 2**70), OverflowError),
])
def test_wrong_use_has_the_right_class(keys, call, kind):
    with pytest.raises(kind):
        call(keys)


def test_requests_without_waiting(keys):
    futures = [keys.increment_async("many") for _ in range(1000)]
    assert sorted(future.result(30) for future in futures) == list(range(1, 1001))
    waiting = keys.get_async("soon")
    assert isinstance(waiting, concurrent.futures.Future) and not waiting.done()
    keys.put_async("soon", "yes").result(30)
    assert waiting.result(30).text == "yes" and keys.delete_async("soon").result(30) == 1
    with pytest.raises(errors.NotFoundError):
        keys.try_get_async("soon").result(30)
    with pytest.raises(errors.DeadlineExceededError):
        keys.get_async("soon", timeout=0.1).result(30)


def test_a_request_can_be_cancelled_and_frees_what_it_has(keys):
    class Counted:
        pass

    import weakref
    waiting = keys.get_async("never")
    counted = Counted()
    alive = weakref.ref(counted)
    waiting.add_done_callback(lambda _, kept=counted: None)
    del counted
    assert waiting.cancel() and waiting.cancelled()
    del waiting
    assert wait_until(lambda: alive() is None)


def test_requests_are_awaited(keys):
    async def work():
        waiting = asyncio.ensure_future(_await(keys.get_async("awaited")))
        await keys.put_async("awaited", "1")
        return (await waiting).number

    async def _await(future):
        return await future

    assert asyncio.run(work()) == 1


def test_a_transaction_is_all_or_nothing(keys):
    revision = keys.put("a", "1")
    outcome = (keys.transaction().if_revision("a", revision).if_absent("b")
               .if_value("a", "1").put("b", "2").increment("n", 5).delete("a").commit())
    assert outcome.number == 5 and outcome.revision > revision
    assert keys.try_get("a") is None and keys.get("b").text == "2"
    with pytest.raises(errors.FailedPreconditionError) as caught:
        keys.transaction().if_present("b").if_absent("b").put("c", "1").commit()
    assert caught.value.failed == 1 and keys.try_get("c") is None
    with pytest.raises(errors.FailedPreconditionError) as caught:
        other = keys.transaction().if_present("b").if_value("b", "3").put("c", "1")
        other.commit_async().result(30)
    assert caught.value.failed == 1
    assert keys.transaction().put("d", "1").commit_async().result(30).revision
    with pytest.raises(ValueError):
        keys.transaction().put("x", "1").put("x", "2").commit()
    many = keys.transaction()
    for i in range(129):
        many.put(f"t/{i}", "x")
    with pytest.raises(errors.ResourceExhaustedError, match="128"):
        many.commit()


def test_a_watch_tells_what_is_there_and_each_change(keys):
    keys.put("w/a", "1")
    with keys.watch("w", below=True) as watch:
        assert [event.type for event in (watch.next(5), watch.next(5))] == [
            "put", "synced"]
        keys.put("w/b", "2")
        event = watch.next(5)
        assert (event.type, event.key, event.value) == ("put", "w/b", b"2")
        keys.delete("w/a")
        event = watch.next(5)
        assert (event.type, event.key, event.value) == ("deleted", "w/a", None)
        with pytest.raises(errors.DeadlineExceededError):
            watch.next(0.05)
    assert watch.closed
    with pytest.raises(errors.ClosedError):
        watch.next(1)


def test_a_watch_that_is_iterated_ends_when_another_thread_closes_it(keys):
    watch = keys.watch("w", below=True)
    events = []
    thread = threading.Thread(target=lambda: events.extend(watch))
    thread.start()
    for i in range(100):
        keys.put(f"w/{i}", "x")
    assert wait_until(lambda: len(events) == 101)
    watch.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_key_is_held_for_as_long_as_a_with(keys):
    with keys.hold("mine", "v") as item:
        assert keys.get("mine").revision == item.revision
        with pytest.raises(errors.AlreadyExistsError):
            with keys.hold("mine"):
                pass
    assert keys.try_get("mine") is None


def test_what_a_killed_task_held_goes(tasks):
    chief, worker = tasks(1, dead=1)
    worker.run("service.key_values.put('lease', 'x', lease=True)")
    worker.run("service.key_values.put('stays', 'x')")
    assert chief.run("service.key_values.get('lease', 10).text") == "x"
    worker.kill()
    assert wait_until(lambda: chief.run("service.key_values.try_get('lease')") is None)
    assert chief.run("service.key_values.get('stays', 10).text") == "x"


# ---- locks ----

def test_a_lock_is_held_by_one_at_a_time(service):
    inside = []
    most = []

    def work():
        for _ in range(5):
            with service.lock("one") as lock:
                inside.append(lock.number)
                most.append(len(inside))
                time.sleep(0.001)
                inside.remove(lock.number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 40 and max(most) == 1


def test_a_lock_says_who_holds_it(service):
    lock = service.lock("who").acquire(10)
    assert lock.held and not lock.lost and lock.key.startswith("lock/who/")
    with pytest.raises(errors.DeadlineExceededError, match="/job:chief/task:0"):
        service.lock("who", timeout=0.1).acquire()
    with pytest.raises(errors.FailedPreconditionError):
        lock.acquire()
    lock.release()
    for call in (lock.release, lambda: lock.number, lambda: lock.wait_lost(0)):
        with pytest.raises(errors.FailedPreconditionError):
            call()


def test_the_lock_of_a_killed_task_goes_to_the_next(tasks):
    chief, first, second = tasks(2, dead=1)
    first.run("lock = service.lock('shared').acquire(10)")
    assert first.run("lock.held")
    second.begin("service.lock('shared').acquire(30).number")
    with pytest.raises(TaskError, match="DeadlineExceededError.*worker/task:0"):
        chief.run("service.lock('shared').acquire(0.3)")
    first.kill()
    assert second.result() > 0


# ---- barriers ----

def test_a_barrier_of_processes_and_who_is_missing(tasks):
    chief, first, second = tasks(2)
    for _ in range(3):
        for task in (chief, first, second):
            task.begin("service.barrier('again', timeout=30)")
        assert [task.result() for task in (chief, first, second)] == [None] * 3
    for task in (chief, first):
        task.begin("service.barrier('late', timeout=0.5)")
    for task in (chief, first):
        with pytest.raises(TaskError, match="DeadlineExceededError.*worker/task:1"):
            task.result()


def test_a_barrier_of_some_tasks(tasks):
    chief, first, second = tasks(2)
    for task in (first, second):
        task.begin("service.barrier('workers', tasks='worker:0-1', timeout=30)")
    assert [task.result() for task in (first, second)] == [None, None]
    with pytest.raises(TaskError, match="InvalidArgumentError"):
        chief.run("service.barrier('workers', tasks='worker:0-1', timeout=5)")


def test_a_task_that_dies_ends_a_barrier_unless_it_is_recoverable(tasks):
    chief, first, second = tasks(2, recoverable="none", dead=1)
    for task in (chief, first, second):
        task.run("service.register(timeout=30)")
    for task in (chief, first):
        task.begin("service.barrier('all', timeout=30)")
    time.sleep(0.3)
    second.kill()
    for task in (chief, first):
        with pytest.raises(TaskError, match="worker/task:1") as caught:
            task.result()
        assert caught.value.kind != "DeadlineExceededError"


def test_threads_meet_first(service):
    passed = []

    def arrive():
        service.barrier("threads", timeout=30, threads=4)
        passed.append(1)

    threads = [threading.Thread(target=arrive) for _ in range(4)]
    for thread in threads[:3]:
        thread.start()
    time.sleep(0.2)
    assert not passed
    threads[3].start()
    for thread in threads:
        thread.join(30)
    assert len(passed) == 4
    with pytest.raises(ValueError):
        service.barrier("threads", threads=0)


def test_a_barrier_can_be_cancelled(tasks):
    chief, worker = tasks(1)
    chief.run("waiting = service.barrier_async('stuck', timeout=60)")
    wait_until(lambda: not chief.run("waiting.done()"))
    time.sleep(0.2)
    chief.run("service.cancel_barrier('stuck', 10)")
    with pytest.raises(TaskError, match="CancelledError"):
        chief.run("waiting.result(10)")
    with pytest.raises(TaskError, match="FailedPreconditionError"):
        chief.run("service.cancel_barrier('stuck', 10)")
    assert worker.run("service.state") == "connected"


# ---- tasks ----

def test_states_of_tasks_and_a_watch_of_them(tasks):
    chief, worker = tasks(1, dead=1)
    states = chief.run("service.tasks.wait('chief:0,worker:0', 30)")
    assert [state["task"] for state in states] == ["/job:chief/task:0",
                                                   "/job:worker/task:0"]
    assert states[0]["devices"]["cores"] >= 1
    assert len(chief.run("service.tasks.devices(10)")) == 2
    version = chief.run("service.tasks.watch('worker:0', 0, 10)[0]")
    chief.begin(f"service.tasks.watch('worker:0', {version}, 30)")
    worker.kill()
    assert chief.result()[0] != version
    assert wait_until(lambda: chief.run("service.tasks.states('worker:0', 10)")[0][
        "state"] in ("error", "disconnected"))
    with pytest.raises(TaskError, match="NotFoundError"):
        chief.run("service.tasks.states('worker:7', 10)")


def test_a_stopped_task_is_suspected_then_lost_and_may_come_back(tasks):
    chief, worker = tasks(1, suspect=0.5, dead=1)

    def state():
        return chief.run("service.tasks.states('worker:0', 10)")[0]["state"]

    assert wait_until(lambda: state() == "connected")
    worker.stop()
    assert wait_until(lambda: state() in ("error", "disconnected"))
    worker.go_on()
    assert wait_until(lambda: state() == "connected" or worker.run(
        "service.reset(10) if service.state == 'error' else None"), 40) or state()
    assert wait_until(lambda: state() == "connected", 40)


def test_all_who_ask_get_the_same_list_of_who_is_alive(tasks):
    chief, first, second = tasks(2, dead=1)
    second.kill()
    for task in (chief, first):
        task.begin("sorted(t['task'] for t in "
                   "service.tasks.alive('chief:0,worker:0-1', 30))")
    answers = [task.result() for task in (chief, first)]
    assert answers == [["/job:chief/task:0", "/job:worker/task:0"]] * 2


def test_an_error_that_is_reported_reaches_the_others(tasks):
    chief, first, second = tasks(2, recoverable="none")
    for task in (chief, first, second):
        task.run("service.register(timeout=30)")
    chief.run("told = []; service.on_error(told.append)")
    first.run("service.report_error('the disk is full', 8, 10)")
    assert wait_until(lambda: second.run("service.state") == "error")
    with pytest.raises(TaskError, match="the disk is full") as caught:
        second.run("service.key_values.put('k', 'v', timeout=5)")
    assert caught.value.kind == "ResourceExhaustedError"
    assert caught.value.task == "/job:worker/task:0"
    assert wait_until(lambda: chief.run("len(told)") == 1)
    assert chief.run("told[0].task") == "/job:worker/task:0"
    second.run("service.reset(10); service.register(timeout=10)")
    assert second.run("service.state") == "connected"


def test_a_task_can_report_and_reset_another(tasks):
    chief, first, second = tasks(2)
    for task in (first, second):
        task.run("service.register(timeout=30)")
    chief.run("service.tasks.report_error('worker:0', 'it answers nonsense', 15, 10)")
    assert wait_until(lambda: first.run("service.state") == "error")
    assert "nonsense" in first.run("str(service.error)")
    assert second.run("service.state") == "connected"
    chief.run("service.tasks.reset('worker:0', 10)")
    assert wait_until(lambda: first.run("service.state") == "connected")
    with pytest.raises(TaskError, match="FailedPreconditionError"):
        chief.run("service.tasks.reset('worker:0', 10)")
    with pytest.raises(TaskError, match="NotFoundError"):
        chief.run("service.tasks.report_error('worker:9', 'x', timeout=10)")


def test_registering_leaving_and_registering_again(tasks):
    chief, worker = tasks(1)
    for task in (chief, worker):
        task.begin("service.register(barrier=True, timeout=30)")
    assert [task.result() for task in (chief, worker)] == [None, None]
    worker.run("service.leave(10)")
    assert worker.run("service.state") == "disconnected"
    with pytest.raises(TaskError, match="FailedPreconditionError"):
        worker.run("service.leave(10)")
    worker.run("service.register(timeout=30); service.progress()")
    assert worker.run("service.state") == "connected"
    assert chief.run("service.host['task']") == "/job:chief/task:0"


def test_an_error_of_ones_own_fails_all_calls_until_reset(tasks):
    chief, = tasks(0)
    chief.run("service.register(timeout=30)")
    chief.run("service.set_error('stop', 1)")
    with pytest.raises(TaskError, match="CancelledError.*stop"):
        chief.run("service.key_values.get('k', 5)")
    chief.run("service.reset(10); service.register(timeout=10)")
    assert chief.run("service.key_values.try_get('k')") is None


# ---- preemption ----

def test_all_tasks_agree_on_the_step_to_stop_at(tasks):
    every = tasks(2)
    for task, step in zip(every, (3, 5, 4)):
        assert task.run(f"service.preemption.reached({step})") is False
    every[1].begin("service.preemption.notice('maintenance', 0, 60)")
    # The tasks go on until they are told to stop.
    for task, step in zip(every, (3, 5, 4)):
        if task is not every[1]:
            task.begin(f"next(s for s in range({step + 1}, 10**6) "
                       "if service.preemption.reached(s))")
    assert every[1].result(60) is None
    stops = {task.result(60) for task in every if task is not every[1]}
    notice = every[0].run("service.preemption.wait(0, True, 30)._asdict()")
    assert stops == {notice["step"]} and notice["agreed"]
    assert (notice["task"], notice["reason"]) == ("/job:worker/task:0", "maintenance")
    with pytest.raises(TaskError, match="InvalidArgumentError"):
        every[0].run("service.preemption.notice('x', -1)")
    with pytest.raises(TaskError, match="DeadlineExceededError"):
        every[0].run("service.preemption.wait(notice_round, timeout=0.1)".replace(
            "notice_round", str(notice["round"])))


# ---- waits and ends ----

INTERRUPTED = """
import os, signal, threading, time
import muster
node = muster.Node({"chief": ["127.0.0.1:0"], "worker": ["127.0.0.1:1"]},
                   task_type="chief", task_index=0, log_level=0)
service = muster.CoordinationService(node)
service.register(timeout=30)
held = service.lock("held").acquire()
watch = service.key_values.watch("nothing")
assert watch.next(5).type == "synced"
service.key_values.put("alive", "")
for wait in (lambda: service.key_values.get("never"), watch.next,
             service.lock("held").acquire, held.wait_lost,
             lambda: service.barrier("b", threads=2),
             lambda: service.preemption.wait(0),
             lambda: service.tasks.wait("worker:0")):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - begin < 5, flush=True)
    except muster.MusterError as error:
        print(repr(error), flush=True)
        time.sleep(0.3)
watch.close()
held.release(5)
assert service.key_values.get("alive", 5).value == b""
node.close(1)
"""


def test_ctrl_c_interrupts_every_wait():
    import subprocess

    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], text=True, timeout=120,
                          capture_output=True, env=environment)
    assert done.stdout.count("interrupted True") == 7, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


def test_a_node_that_is_closed_ends_its_waits():
    with muster.Node({"chief": ["127.0.0.1:0"]}, task_type="chief",
                     task_index=0) as own:
        service = CoordinationService(own)
        caught = []

        def wait(call):
            try:
                call()
            except Exception as error:
                caught.append(error)

        threads = [threading.Thread(target=wait, args=(call,)) for call in (
            lambda: service.key_values.get("never"),
            lambda: service.barrier("b", threads=2), service.preemption.wait)]
        future = service.key_values.get_async("never")
        for thread in threads:
            thread.start()
        time.sleep(0.3)
    for thread in threads:
        thread.join(20)
    assert [type(error) for error in caught] == [errors.ClosedError] * 3
    with pytest.raises(errors.ClosedError):
        future.result(10)
    with pytest.raises(errors.ClosedError):
        service.key_values.put("k", "v")
    with pytest.raises(TypeError):
        CoordinationService(3)
