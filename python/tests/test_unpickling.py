"""Results and exceptions of other tasks that are unpickled as plain data alone."""

import collections
import datetime
import decimal
import operator
import os
import pickle
import struct
import subprocess
import sys
import types
import uuid

import numpy as np
import pytest

import jobs
import muster
from jobs import Calls
from muster import _pickling, _worker, errors
from muster._pickling import plain


@pytest.fixture(autouse=True)
def restored():
    yield
    muster.set_unpickle("any")


def packed(value):
    """As a worker packs a result."""
    data, buffers = _pickling.dumps(value)
    return data, [bytearray(buffer) for buffer in buffers]


def load(value):
    return plain.loads(*packed(value))


def named(module, name):
    """The pickle of what has this name in a module."""
    return (b"\x80\x04" + b"".join(b"\x8c" + struct.pack("B", len(text)) + text.encode()
                                   for text in (module, name)) + b"\x93.")


def call(name, *args):
    """The pickle of a call of module:name with texts."""
    texts = b"".join(b"X" + struct.pack("<I", len(arg)) + arg.encode() for arg in args)
    return named(*name.split(":"))[:-1] + b"(" + texts + b"tR."


# ---- data ----

PLAIN = [
    None, True, 5, -2.5, 1 << 80, 1j, "text", b"bytes", bytearray(b"x"),
    (1, [2, {3: {4}}]), frozenset({1}), range(3), slice(1, 2), Ellipsis,
    collections.OrderedDict(a=1), collections.Counter("aab"), collections.deque([1], 3),
    collections.defaultdict(list, {1: [2]}), types.SimpleNamespace(a=1),
    datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), datetime.timedelta(1, 2),
    decimal.Decimal("1.25"), uuid.UUID(int=7),
    np.float32(1.5), np.datetime64("2020-01-01"), np.str_("abc"), np.float64,
    np.dtype(">i4"), np.dtype("m8[25us]"), np.dtype([("a", "f4"), ("b", "O")]),
    np.dtype([("a", "u1"), ("b", "f8")], align=True), np.dtype(("f4", (2, 3))),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_is_loaded_as_it_is(value):
    muster.set_unpickle("plain")
    got = load([value, value])
    assert got == [value, value] and type(got[0]) is type(value)
    assert got[0] is got[1] or not isinstance(value, np.dtype)


ARRAYS = [
    np.arange(10.0), np.arange(10000).reshape(100, 100),
    np.ones((3, 4), ">f4", order="F"),
    np.arange(100)[::3], np.zeros((0, 3)), np.array(2.5), np.array(["a", "bcd"]),
    np.array([b"x"]), np.array([True]), np.array([1, None, "x", [2]], object),
    np.array([[1], [2]], object), np.array(["2020-01-01"], "M8[s]"),
    np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]),
    np.array([(1, [2])], [("a", "i4"), ("b", "O")]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_are_loaded_as_they_are(array):
    muster.set_unpickle("plain")
    got = load({"a": [array, 1], "b": array})
    assert type(got["b"]) is np.ndarray and got["b"].dtype == array.dtype
    assert got["b"].shape == array.shape and got["b"].tolist() == array.tolist()
    assert got["a"][0] is got["b"]
    scalar = array.reshape(-1)[:1]
    if scalar.size and not array.dtype.hasobject:
        assert load(scalar[0]) == scalar[0] and type(load(scalar[0])) is type(scalar[0])


def test_an_array_that_contains_itself_is_loaded():
    muster.set_unpickle("plain")
    array = np.empty(1, object)
    array[0] = [array]
    got = load(array)
    assert got[0][0] is got


def exceptions():
    return [ValueError("a", 1), OSError(2, "no such file"), KeyError("k"), SystemExit(3),
            UnicodeDecodeError("utf-8", b"x", 0, 1, "why"), muster.InputError("text"),
            errors.NotFoundError("text", task="/job:ps/task:0", closure=4)]


@pytest.mark.parametrize("error", exceptions(), ids=lambda error: type(error).__name__)
def test_builtin_exceptions_keep_all(error):
    muster.set_unpickle("plain")
    got = load(_worker.failed(error)).exception()
    assert type(got) is type(error) and got.args == error.args
    assert got.__dict__ == error.__dict__


# ---- what is refused ----

class Ran(Exception):
    pass


def run_it(*_):
    raise Ran       # what no test may come to


ATTACKS = {
    "os.system": call("os:system", "touch ran"),
    "posix.system": call("posix:system", "touch ran"),
    "eval": call("builtins:eval", "open('ran', 'w')"),
    "exec": call("builtins:exec", "open('ran', 'w')"),
    "import": call("builtins:__import__", "antigravity"),
    "getattr": call("builtins:getattr", "x", "y"),
    "a chain of names": call("collections:abc.sys.modules", "x"),
    "a chain in a module": call("muster.errors:sys.modules.get", "os"),
    "a chain in an allowed module": call("jobs:os.system", "touch ran"),
    "what an allowed module imports": call("jobs:threading.Thread", "x"),
    "a function of an allowed module": call("jobs:say", "x"),
    "a chain in an allowed class": call("jobs:Pair.__init__.__globals__", "x"),
    "popen": call("subprocess:Popen", "true"),
    "a module that is not loaded": named("this", "s"),
    "a code object": call("muster._pickling:make_code", "x"),
    "cloudpickle": call("cloudpickle.cloudpickle:subimport", "os"),
    "an opcode of protocol 0": b"(S'touch ran'\nios\nsystem\n.",
    "the old name of a builtin": b"c__builtin__\neval\n(Vopen('ran', 'w')\ntR.",
    "a registered extension": b"\x80\x04\x82\x01.",
    "an exception by name": call("muster.errors:_find_class", "os", "system"),
    "what is no exception": named("muster.errors", "_revive_named")[:-1]
    + pickle.dumps(("os", "system", (), {}), 3)[2:-1] + b"R.",
    "a module by an exception": named("muster.errors", "_of_class")[:-1]
    + pickle.dumps(("this", "s", "words"), 3)[2:-1] + b"R.",
    "an identity elsewhere": b"\x80\x04X\x01\x00\x00\x00xQ.",
}


@pytest.mark.parametrize("what", list(ATTACKS))
def test_code_is_refused(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    muster.set_unpickle("plain", allow=["jobs.*"])
    before = set(sys.modules)
    with pytest.raises(pickle.UnpicklingError):
        plain.loads(ATTACKS[what])
    nested = pickle.PROTO + b"\x04]" + ATTACKS[what][2:-1] + b"a."
    with pytest.raises(pickle.UnpicklingError):
        plain.loads(nested)
    assert os.listdir(tmp_path) == [] and "this" not in set(sys.modules) - before


def objects(value, dtype=object):
    array = np.empty(1, dtype)
    array[0] = value
    return array


def in_state(value):
    error = ValueError("x")
    error.more = value
    return error


@pytest.mark.parametrize("where", [
    lambda value: [1, {"a": (value,)}], objects, in_state,
    lambda value: objects((1, value), [("a", "i4"), ("b", "O")]),
    lambda value: Calls(list, [value]), lambda value: collections.deque([value]),
    lambda value: Calls(collections.deque, (), state={"a": value}),
    lambda value: _worker.Failed(pickle.dumps(in_state(value), 4), "words", "", 2),
    lambda value: Calls(errors.revive, ValueError, (value,), {}),
    lambda value: Calls(errors._rebuild, errors.MusterError, "m", {"a": value}),
], ids=range(10))
def test_code_is_refused_wherever_it_is(where):
    muster.set_unpickle("plain")
    for function in (run_it, os.system, eval):
        hidden = where(Calls(function, "exit 7"))
        data, buffers = _pickling.dumps(hidden)
        try:
            got = plain.loads(data, buffers)
        except pickle.UnpicklingError as error:
            assert "to allow it" in str(error) or "by content" in str(error)
        else:       # the exception cannot be made, its words are there
            assert isinstance(got, _worker.Failed)
            assert type(got.exception()) is not Ran
            assert isinstance(got.exception(), errors.MusterError)


NUMPY = {
    "ndarray over given memory": Calls(np.ndarray, (1,), np.dtype("O"), b"12345678"),
    "a scalar of given memory": Calls(
        np.float64(1).__reduce__()[0], np.dtype("O"), np.arange(3)),
    "a scalar of a record of objects": Calls(
        np.float64(1).__reduce__()[0], np.dtype([("a", "O")]), np.arange(3)),
    "an array of too few bytes": Calls(
        *np.arange(2)[::2].__reduce__()[:2],
        state=(1, (9,), np.dtype("f8"), False, b"x")),
    "an array of too few objects": Calls(
        *np.arange(2)[::2].__reduce__()[:2], state=(1, (9,), np.dtype("O"), False, [1])),
    "an array of objects of bytes": Calls(
        *np.arange(2)[::2].__reduce__()[:2],
        state=(1, (1,), np.dtype("O"), False, b"12345678")),
    "fields outside of the record": Calls(
        np.dtype, "V8", False, True,
        state=(3, "|", None, ("a",), {"a": (np.dtype("f8"), 4000)}, 8, 1, 0)),
    "objects that the flags hide": Calls(
        np._core.numeric._frombuffer if hasattr(np, "_core")
        else np.core.numeric._frombuffer, b"12345678",
        Calls(np.dtype, "V8", False, True,
              state=(3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)),
        (1,), "C"),
    "a dtype in words": Calls(np.dtype, "f4,O", False, True),
}


@pytest.mark.parametrize("what", list(NUMPY))
def test_arrays_over_memory_that_is_not_theirs_are_refused(what):
    muster.set_unpickle("plain")
    with pytest.raises(pickle.UnpicklingError):
        plain.loads(pickle.dumps([NUMPY[what]], 4))


def test_a_dtype_that_is_in_use_is_not_changed():
    """A record is declared, an array made of it, and then given fields of objects."""
    muster.set_unpickle("plain")
    record = Calls(np.dtype, "V8", False, True)
    array = Calls(np.arange(1).__reduce_ex__(5)[0], b"12345678", record, (1,), "C")
    data = pickle.dumps([record, array, record], 3)
    state = pickle.dumps((3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 63), 3)
    got = plain.loads(data[:-2] + state[2:-1] + b"be.")
    assert got[1].dtype == np.dtype("V8") and not got[1].dtype.hasobject
    assert got[2].hasobject and not got[0].hasobject


def test_a_class_cannot_be_changed():
    muster.set_unpickle("plain", allow=[jobs.Odd])
    for cls in (errors.MusterError, collections.deque, jobs.Odd):
        state = pickle.dumps((None, {"args": 1}), 3)
        with pytest.raises(pickle.UnpicklingError, match="a state for a type"):
            plain.loads(pickle.dumps(cls, 3)[:-1] + state[2:-1] + b"b.")


@pytest.mark.parametrize("data", [
    b"", b"\x80\x04", b"\x80\x04.", b"\x80\x04]q", b"\xff\xff.", b"\x80\x04R.",
    b"\x80\x04N)R.", b"\x80\x04b.", b"\x80\x04h\x05.", b"\x80\x04\x97.",
    pickle.dumps(np.arange(3), 4)[:-9], b"\x80\x04c"])
def test_damaged_pickles_are_one_error(data):
    muster.set_unpickle("plain")
    with pytest.raises(pickle.UnpicklingError):
        plain.loads(data)


# ---- what the program allows ----

def test_classes_are_allowed_by_name_module_or_themselves():
    pair = jobs.Pair(1, 2)
    name = "jobs.Pair"
    muster.set_unpickle("plain")
    with pytest.raises(pickle.UnpicklingError) as refused:
        load(pair)
    assert f'set_unpickle("plain", allow=["{name}"])' in str(refused.value)
    assert f"MUSTER_UNPICKLE_ALLOW={name}" in str(refused.value)
    for allow in ([name], name, [jobs.Pair], ["jobs.*"]):
        muster.set_unpickle("plain", allow=allow)
        assert load([pair, ValueError]) == [pair, ValueError]
    for allow in (["jobs.Pairs"], ["job.*"], ["jobs.Pair.*"], ["jobs2.*"]):
        muster.set_unpickle("plain", allow=allow)
        with pytest.raises(pickle.UnpicklingError):
            load(pair)
    muster.set_unpickle("any")
    assert _pickling.loads_result(*packed(pair)) == pair


@pytest.mark.parametrize("mode, allow", [
    ("plian", ()), ("any", ["jobs.*"]), ("plain", ["*"]), ("plain", ["jobs"]),
    ("plain", ["jobs.*.x"]), ("plain", [""])])
def test_wrong_settings(mode, allow):
    with pytest.raises(ValueError):
        muster.set_unpickle(mode, allow)


def says(code, **variables):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, **variables}, timeout=60)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_environment_says_it():
    code = ("from muster._pickling import plain as u; "
            "print(u._allowed and sorted(u._allowed.names))")
    assert says(code) == "None"
    assert says(code, MUSTER_UNPICKLE="plain") == "[]"
    assert says(code, MUSTER_UNPICKLE_ALLOW="a.B, c.d.E") == "['a.B', 'c.d.E']"
    assert "MUSTER_UNPICKLE" in says(code, MUSTER_UNPICKLE="plian")


# ---- from workers ----

def test_results_of_workers(coordinator):
    muster.set_unpickle("plain")
    array = np.arange(100_000)
    value = coordinator.schedule(jobs.same, ({"a": array, "b": (1, "x")},))
    assert value.fetch(30)["b"] == (1, "x") and value.fetch()["a"].sum() == array.sum()
    value = coordinator.schedule(jobs.same, (jobs.Pair(1, 2),))
    for _ in range(2):
        with pytest.raises(pickle.UnpicklingError, match="jobs.Pair"):
            value.fetch(30)
    muster.set_unpickle("plain", allow=[jobs.Pair])
    assert value.fetch(30) == jobs.Pair(1, 2)
    # Among the arguments of another closure they are of no concern here.
    muster.set_unpickle("plain")
    assert coordinator.schedule(jobs.type_name, (value,)).fetch(30) == "Pair"


@pytest.mark.parametrize("raise_on_fetch", [False, True])
@pytest.mark.parametrize("function, args, error, words", [
    (operator.truediv, (1, 0), ZeroDivisionError, "division by zero"),
    (jobs.fail_odd, (), errors.UnknownError, "Odd.*words.*set_unpickle.*jobs.Odd"),
    (jobs.give_call, (os.getpid,), pickle.UnpicklingError, "posix.getpid")])
def test_exceptions_of_workers(coordinator, function, args, error, words, raise_on_fetch):
    muster.set_unpickle("plain")
    with pytest.raises(error, match=words):
        coordinator.schedule(function, args, raise_on_fetch=raise_on_fetch).fetch(30)


def test_futures_of_an_executor(coordinator):
    muster.set_unpickle("plain")
    with muster.Executor(coordinator) as executor:
        assert executor.submit(jobs.same, [1]).result(30) == [1]
        assert isinstance(executor.submit(operator.truediv, 1, 0).exception(30),
                          ZeroDivisionError)
        error = executor.submit(jobs.same, jobs.Pair(1, 2)).exception(30)
        assert isinstance(error, pickle.UnpicklingError) and "jobs.Pair" in str(error)
        error = executor.submit(jobs.fail_odd).exception(30)
        assert type(error) is errors.UnknownError and "jobs.Odd" in str(error)
