"""Functions, their arguments and results."""

import collections
import functools
import os
import pickle
import subprocess
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

import jobs
import muster
from muster import _pickling

Point = collections.namedtuple("Point", "x y")

PLAIN = [None, True, False, 0, -1, 2 ** 63 - 1, -2 ** 63, 1.5, float("inf"), "", "text",
         "ä€😀", b"", b"a\0b", b"x" * 100000]

OTHER = [2 ** 63, -2 ** 64, 10 ** 100, "a\0b", "\ud800", [], [1, [2, {"k": (3,)}]], {},
         {1: 2, "a": None}, {1, 2}, (1, 2), 1 + 2j, Point(1, 2), range(3), slice(1, 2),
         bytearray(b"x"), Ellipsis, frozenset([1])]


@pytest.mark.parametrize("value", PLAIN + OTHER, ids=lambda value: repr(value)[:20])
def test_a_value_goes_to_a_worker_and_back_with_its_type(coordinator, value):
    result = coordinator.schedule(jobs.same, (value,)).fetch(30)
    assert result == value
    assert type(result) is type(value)


DTYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
          "float16", "uint16", "uint64", "complex128", ">f8", "<U4", "S3", "M8[s]"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 4), (600,)], ids=str)
def test_an_array_goes_to_a_worker_and_back(coordinator, dtype, shape):
    array = (np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(dtype)
    result = coordinator.schedule(jobs.same, (array,)).fetch(30)
    assert result.dtype == array.dtype
    assert result.shape == array.shape
    assert np.all(result == array)


def test_arrays_that_are_not_contiguous_arrive_whole(coordinator):
    base = np.arange(24.0).reshape(4, 6)
    for view in (base.T, base[::2], base[:, ::-1], np.asfortranarray(base),
                 np.broadcast_to(base[0], (3, 6))):
        assert (coordinator.schedule(jobs.same, (view,)).fetch(30) == view).all()


def test_arrays_inside_of_other_objects_travel_beside_the_pickle(coordinator):
    value = {"a": [np.arange(100000.0)], "b": (np.zeros(3), np.ones((50, 50), "f2"))}
    result = coordinator.schedule(jobs.same, (value,), {}).fetch(30)
    assert (result["a"][0] == value["a"][0]).all()
    assert (result["b"][1] == 1).all()


def test_results_are_writable_and_each_fetch_gives_the_same_object(coordinator):
    value = coordinator.schedule(jobs.same, (np.zeros(5),))
    first = value.fetch(30)
    first[0] = 1
    assert value.fetch(30) is first and coordinator.fetch([value]) == [first]
    pair = coordinator.schedule(jobs.same, ([np.zeros(5000)],))
    pair.fetch(30)[0][0] = 1
    assert pair.fetch(30)[0][0] == 1


def test_arguments_are_writable_on_the_worker(coordinator):
    def change(array):
        array += 1
        return array.sum()

    assert coordinator.schedule(change, (np.zeros(5),)).fetch(30) == 5
    assert coordinator.schedule(change, (np.zeros(50000),)).fetch(30) == 50000


def test_functions_of_all_kinds_are_scheduled(coordinator):
    class Adder:
        def __init__(self, base):
            self.base = base

        def add(self, value):
            return self.base + value

        def __call__(self, value):
            return self.base * value

    base = 5
    kinds = [
        (lambda value: base + value, 7), (jobs.same, 2), (Adder(1).add, 3),
        (Adder(4), 8), (functools.partial(jobs.add, b=10), 12), (abs, 2),
        (np.sqrt, np.sqrt(2)), (int, 2), ("{}".format, "2"),
    ]
    for function, expected in kinds:
        assert coordinator.schedule(function, (2,)).fetch(30) == expected


def test_an_object_whose_state_changed_is_sent_again(coordinator):
    class Counter:
        def __init__(self):
            self.value = 0

        def __call__(self):
            return self.value

    counter = Counter()
    for i in range(5):
        counter.value = i
        assert coordinator.schedule(counter).fetch(30) == i


def test_keyword_arguments_and_lists_of_arguments(coordinator):
    assert coordinator.schedule(jobs.add, [1], {"b": 2}).fetch(30) == 3
    assert coordinator.schedule(jobs.add, kwargs={"a": 1, "b": 5}).fetch(30) == 6
    assert coordinator.schedule(fn=jobs.add, args=(1, 2)).fetch(30) == 3
    assert coordinator.schedule(jobs.add, (1,), None).fetch(30) == 1


def test_a_thousand_functions_and_more_are_kept_apart(coordinator):
    values = [coordinator.schedule(eval(f"lambda: {i}")) for i in range(1300)]
    assert coordinator.fetch(values, 120) == list(range(1300))


def test_the_run_tells_who_and_where_it_is(coordinator):
    result = coordinator.schedule(jobs.whoami, name="a-name", worker=1).fetch(30)
    assert result["worker"] == 1 and result["attempt"] == 1
    assert result["name"] == "a-name" and result["type"] == "worker"
    assert result["task"] == "/job:worker/task:1" and result["cancelled"] is False
    assert result["closure"] > 0


def test_there_is_no_run_outside_of_functions():
    with pytest.raises(muster.errors.FailedPreconditionError, match="there is no run"):
        muster.current_run()


def test_a_run_cannot_be_used_after_its_end_or_by_other_threads(coordinator):
    def keep():
        run = muster.current_run()
        seen = []

        def look():
            try:
                run.worker
            except Exception as error:
                seen.append(type(error).__name__)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        sys.kept_run = run
        return seen

    def use():
        sys.kept_run.worker

    assert coordinator.schedule(keep, worker=0).fetch(30) == ["FailedPreconditionError"]
    with pytest.raises(muster.errors.FailedPreconditionError):
        coordinator.schedule(use, worker=0).fetch(30)


# ---- remote values among arguments ----


def test_remote_values_are_passed_at_any_depth(coordinator):
    one = coordinator.schedule(jobs.same, (1,))
    array = coordinator.schedule(jobs.same, (np.arange(3000.0),))
    text = coordinator.schedule(jobs.same, ({"k": "v"},))

    def take(a, b, *, c):
        return a, b["x"][0][1].sum(), c

    result = coordinator.schedule(take, (one, {"x": [(0, array)]}), {"c": [text, text]})
    assert result.fetch(30) == (1, np.arange(3000.0).sum(), [{"k": "v"}] * 2)


def test_a_chain_of_remote_values(coordinator):
    value = coordinator.schedule(jobs.same, (0,))
    for _ in range(50):
        value = coordinator.schedule(jobs.add, (value, 1))
    assert value.fetch(30) == 50


def test_a_function_of_ten_thousand_remote_values(coordinator):
    values = [coordinator.schedule(jobs.same, (i,)) for i in range(10000)]
    assert coordinator.schedule(sum, (values,)).fetch(60) == sum(range(10000))


def test_kept_results_stay_on_the_worker_until_they_are_used(coordinator):
    kept = coordinator.schedule(jobs.same, (np.arange(1000.0),), pin_result=True)
    total = coordinator.schedule(lambda array: array.sum(), (kept,))
    assert total.fetch(30) == 499500
    assert kept.fetch(30).sum() == 499500


def test_a_remote_value_cannot_be_pickled_elsewhere(coordinator):
    import pickle

    value = coordinator.schedule(jobs.same, (1,))
    with pytest.raises(TypeError, match="among the arguments of a closure only"):
        pickle.dumps(value)


def test_fetch_takes_structures(coordinator):
    def value(of):
        return coordinator.schedule(jobs.same, (of,))

    structure = {"a": [value(1), (value(2), 3)], "p": Point(value(4), 5), "n": None}
    assert coordinator.fetch(structure, 30) == {"a": [1, (2, 3)], "p": Point(4, 5),
                                                "n": None}
    assert coordinator.fetch(7) == 7


# ---- exceptions ----


def test_an_exception_comes_back_as_its_class_with_the_workers_traceback(coordinator):
    value = coordinator.schedule(jobs.fail, ("words",))
    with pytest.raises(ValueError, match="^words$") as caught:
        value.fetch(30)
    cause = caught.value.__cause__
    assert isinstance(cause, muster.RemoteTraceback)
    assert "jobs.py" in cause.text and "raise ValueError(message)" in cause.text
    error = caught.value.muster_error
    assert error.function == "fail" and error.kind == "function" and error.attempt == 1
    assert error.task.startswith("/job:worker/task:") and error.closure > 0
    assert isinstance(value.exception(30), ValueError)


def test_an_exception_with_arguments_of_its_own_comes_back(coordinator):
    with pytest.raises(jobs.Odd) as caught:
        coordinator.schedule(jobs.fail_odd).fetch(30)
    assert caught.value.number == 7


def test_what_cannot_be_pickled_of_an_exception_stays_behind(coordinator,
                                                             shared_cluster):
    with muster.Executor(shared_cluster) as executor:
        for fetch in (coordinator.schedule(jobs.fail_holding).fetch,
                      executor.submit(jobs.fail_holding).result):
            with pytest.raises(jobs.Holding, match="words") as caught:
                fetch(30)
            assert caught.value.words == "words"
            assert "lock" in caught.value.args[1]
            assert not hasattr(caught.value, "lock")


def test_an_exception_of_a_class_inside_of_a_function_comes_by_content(coordinator):
    with pytest.raises(Exception, match="of a function") as caught:
        coordinator.schedule(jobs.fail_unpicklable).fetch(30)
    assert type(caught.value).__qualname__.endswith("Local")
    assert "Traceback" in str(caught.value.__cause__)


def test_an_exception_that_cannot_be_pickled_is_an_unknown_error(coordinator):
    def fail():
        import threading as of_worker

        class Held(Exception):
            lock = of_worker.Lock()     # in the class, which is sent by content

        raise Held("words")

    with pytest.raises(muster.errors.UnknownError, match="Held: words") as caught:
        coordinator.schedule(fail).fetch(30)
    assert "Traceback" in str(caught.value.__cause__)


def test_a_very_long_exception_keeps_its_class(coordinator):
    with pytest.raises(ValueError, match="^xxx") as caught:
        coordinator.schedule(jobs.fail, ("x" * (2 << 20),)).fetch(30)
    assert "were cut" in str(caught.value) and len(str(caught.value)) < 100000
    assert caught.value.muster_error.function == "fail"


def test_a_very_long_error_of_muster_keeps_its_class(coordinator):
    def fail():
        raise muster.errors.NotFoundError("x" * 100000)

    with pytest.raises(muster.errors.NotFoundError, match="xxx") as caught:
        coordinator.schedule(fail).fetch(30)
    assert "fail" in caught.value.function and caught.value.closure > 0


MAIN_PROGRAM = """
import muster

class Own(Exception):
    def __init__(self, number, words):
        super().__init__(number, words)
        self.number = number

def fail(words):
    raise Own(7, words)

if __name__ == "__main__":
    with muster.LocalCluster(workers=1, ps=0) as cluster:
        coordinator = muster.ClusterCoordinator(cluster)
        for words in ("short", "long " * 10000):
            try:
                coordinator.schedule(fail, (words,)).fetch(60)
            except Own as error:
                print("Own", getattr(error, "number", None), str(error)[:20],
                      type(error.__cause__).__name__)
            try:
                coordinator.join(60)
            except Own:
                pass
"""


def test_an_exception_of_main_comes_back_as_its_class(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MAIN_PROGRAM)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                          timeout=120)
    lines = done.stdout.splitlines()
    assert lines[:1] == ["Own 7 (7, 'short') RemoteTraceback"], done.stderr
    assert lines[1].startswith("Own 7 (7, 'long"), done.stderr


@pytest.mark.parametrize("name", [
    "InvalidArgumentError", "NotFoundError", "AlreadyExistsError",
    "OutOfRangeError", "DataLossError", "ResourceExhaustedError"])
def test_an_error_of_muster_keeps_its_class_and_code(coordinator, name):
    cls = getattr(muster.errors, name)

    def fail():
        raise cls("on purpose")

    error = coordinator.schedule(fail).exception(30)
    assert type(error) is cls and str(error) == "on purpose"
    assert error.code == cls.code and error.name.startswith("E")


@pytest.mark.parametrize("raise_on_fetch", [False, True])
@pytest.mark.parametrize("kind, task", [("other", ""), ("server", "/job:ps/task:0")])
@pytest.mark.parametrize("name", [
    "CancelledError", "DeadlineExceededError", "AbortedError", "UnavailableError",
    "ClosedError", "UnknownError", "InternalError"])
def test_an_error_that_a_function_makes_itself_ends_it_at_once(
        coordinator, tmp_path, name, kind, task, raise_on_fetch):
    runs = str(tmp_path / "runs")
    begun = time.monotonic()
    with pytest.raises(getattr(muster.errors, name), match="^its own words$") as caught:
        executor = muster.Executor(coordinator)
        if raise_on_fetch:
            executor.submit(jobs.fail_as, runs, name, kind, task).result(30)
        else:
            coordinator.schedule(jobs.fail_as, (runs, name, kind, task)).fetch(30)
    assert time.monotonic() - begun < 5
    assert os.path.getsize(runs) == 1
    assert "fail_as" in caught.value.__cause__.text


def test_a_call_that_was_cancelled_in_a_function_is_tried_again(coordinator):
    def fetch_cancelled():
        run = muster.current_run()
        if run.attempt == 1:
            own = muster.ClusterCoordinator(run.node)
            value = own.schedule(time.sleep, (0,), not_worker=run.worker)
            value.cancel()
            value.fetch(30)
        return run.attempt

    assert coordinator.schedule(fetch_cancelled).fetch(30) == 2


def test_exit_and_interrupt_in_a_function_are_errors_of_it(coordinator):
    for raised in (SystemExit(3), KeyboardInterrupt()):
        def leave(raised=raised):
            raise raised

        assert isinstance(coordinator.schedule(leave).exception(30), type(raised))
        with pytest.raises(type(raised)):
            coordinator.join(30)


def test_a_result_that_cannot_be_pickled_is_an_error_of_the_closure(coordinator):
    with pytest.raises((TypeError, muster.MusterError), match="pickle"):
        coordinator.schedule(lambda: threading.Lock()).fetch(30)


def test_a_function_that_workers_cannot_load_is_an_input_error(coordinator, tmp_path,
                                                               monkeypatch):
    (tmp_path / "only_here.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here

    with pytest.raises(muster.InputError, match="only_here"):
        coordinator.schedule(only_here.f).fetch(30)


# ---- functions by name ----


def test_a_name_that_no_worker_knows_is_not_found(coordinator):
    with pytest.raises(muster.errors.NotFoundError, match='no function "nobody"'):
        coordinator.schedule("nobody", (1, 2)).fetch(30)


def test_an_array_that_a_function_keeps_is_copied_into_its_result(coordinator):
    def keep(array):
        sys.kept_array = array
        return array

    def keep_view(array):
        sys.kept_array = array[1:]
        return array

    def change():
        sys.kept_array[:] = -1
        return sys.kept_array

    for function in (keep, keep_view):
        kept = coordinator.schedule(function, (np.zeros(70000),), worker=0,
                                    pin_result=True)
        kept.wait(30)
        changed = coordinator.schedule(change, worker=0).fetch(30)
        assert (changed == -1).all()
        assert (kept.fetch(30) == 0).all()


def test_a_function_of_another_version_of_python_is_refused_with_words(coordinator,
                                                                       monkeypatch):
    # Such code would crash the worker; what is importable is sent by name.
    other = types.SimpleNamespace(implementation=types.SimpleNamespace(
        cache_tag="cpython-399"))
    monkeypatch.setattr(_pickling, "sys", other)
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(muster.InputError, match="from Python 3.99 to Python "
                                                f"{own}: .*module"):
        coordinator.schedule(lambda: 1).fetch(30)
    with pytest.raises(muster.InputError):
        coordinator.join(30)
    with pytest.raises(muster.errors.FailedPreconditionError, match="3.99"):
        coordinator.schedule(jobs.call, (lambda: 1,), raise_on_fetch=True).fetch(30)
    assert coordinator.schedule(jobs.add, (1, 2)).fetch(30) == 3


def test_arrays_of_numpy_2_are_read_where_numpy_1_is(monkeypatch):
    array = np.arange(5)
    data = pickle.dumps([array], 5)
    if b"numpy._core.numeric" not in data:
        pytest.skip("this NumPy names another module")
    monkeypatch.setitem(sys.modules, "numpy._core.numeric", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (_pickling.loads(data)[0] == array).all()


# ---- proxies of multiprocessing ----

def count_up(shared, lock):
    with lock:
        shared["count"] = shared.get("count", 0) + 1
    return shared["count"]


@pytest.mark.parametrize("processes", [0, 1])
def test_proxies_of_a_manager_are_arguments(own_cluster, processes):
    import multiprocessing

    with own_cluster(workers=1, processes=processes) as cluster, \
            multiprocessing.Manager() as manager:
        coordinator = muster.ClusterCoordinator(cluster, timeout=60)
        shared, lock = manager.dict(), manager.Lock()
        values = [coordinator.schedule(count_up, (shared, lock)) for _ in range(5)]
        assert sorted(coordinator.fetch(values, timeout=60)) == [1, 2, 3, 4, 5]
        assert shared["count"] == 5
