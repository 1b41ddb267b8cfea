"""A function is what it is when it is scheduled."""

import functools
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import muster
from muster import _content


def run(text, tmp_path, name="program.py", **more):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True,
                            timeout=120, cwd=str(tmp_path), **more)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def space(text, **names):
    """The globals that a text makes, as those of a program."""
    names["__name__"] = "__main__"
    exec(textwrap.dedent(text), names)
    return names


def change_code(names):
    names["f"].__code__ = space("def f(): return 2")["f"].__code__


def change_bytes(names):
    names["data"][-1] = 7


# What f() is made of, and what then changes.
CHANGES = {
    "a global": ("x = 1\ndef f(): return x", "x = 2"),
    "a new global": ("def f():\n  try: return x\n  except NameError: return 0", "x = 2"),
    "a global that hides a builtin": ("def f(): return len('a')",
                                      "def len(x): return 5"),
    "a global that is gone": ("max = min\ndef f(): return max(1, 2)", "del max"),
    "code": ("def f(): return 1", change_code),
    "a default": ("def f(a=1): return a", "f.__defaults__ = (2,)"),
    "a keyword's default": ("def f(*, a=1): return a", "f.__kwdefaults__['a'] = 2"),
    "an item of a default": ("def f(a=[1]): return a[0]", "f.__defaults__[0][0] = 2"),
    "an attribute": ("def f(): return f.x\nf.x = 1", "f.x = 2"),
    "a helper": ("def g(): return 1\ndef f(): return g()", "def g(): return 2"),
    "a helper's helper": ("def h(): return 1\ndef g(): return h()\ndef f(): return g()",
                          "def h(): return 2"),
    "a helper's global": ("x = 1\ndef g(): return x\ndef f(): return g()", "x = 2"),
    "a global of code inside": ("x = 1\ndef f(): return [x for _ in 'a'][0]", "x = 2"),
    "a global of a lambda": ("x = 1\ndef f(): return (lambda: (lambda: x)())()", "x = 2"),
    "helpers that call each other": (
        "def f(n=1): return g(n)\ndef g(n): return f(0) if n else x\nx = 1", "x = 2"),
    "a class": ("class C: v = 1\ndef f(): return C.v", "class C: v = 2"),
    "an attribute of a class": ("class C: v = 1\ndef f(): return C.v", "C.v = 2"),
    "a method": ("class C:\n  def m(self): return 1\ndef f(): return C().m()",
                 "C.m = lambda self: 2"),
    "a global of a method": ("x = 1\nclass C:\n  def m(self): return x\n"
                             "def f(): return C().m()", "x = 2"),
    "a property's global": ("x = 1\nclass C:\n  @property\n  def m(self): return x\n"
                            "def f(): return C().m", "x = 2"),
    "a static method's global": ("x = 1\nclass C:\n  @staticmethod\n  def m(): return x\n"
                                 "def f(): return C.m()", "x = 2"),
    "a base's attribute": ("class B: v = 1\nclass C(B): pass\ndef f(): return C.v",
                           "B.v = 2"),
    "an object's attribute": ("class C: pass\nc = C(); c.v = 1\ndef f(): return c.v",
                              "c.v = 2"),
    "a slot": ("class C: __slots__ = 'v'\nc = C(); c.v = 1\ndef f(): return c.v",
               "c.v = 2"),
    "a data class": ("import dataclasses\n@dataclasses.dataclass\nclass C: v: int = 1\n"
                     "c = C()\ndef f(): return c.v", "c.v = 2"),
    "an item of a list": ("x = [1, 2]\ndef f(): return x", "x[0] = 3"),
    "an item of a nested dict": ("x = {'a': {'b': [1]}}\ndef f(): return x",
                                 "x['a']['b'].append(2)"),
    "the order of a dict": ("x = {'a': 1, 'b': 2}\ndef f(): return list(x)",
                            "x['a'] = x.pop('a')"),
    "a set": ("x = {1}\ndef f(): return sorted(x)", "x.add(2)"),
    "a set whose item is an equal one": ("x = {1}\ndef f(): return str(x)",
                                         "x.clear(); x.add(True)"),
    "bytes of an array": ("data = numpy.zeros(5000)\ndef f(): return float(data.sum())",
                          change_bytes),
    "another array": ("data = numpy.zeros(3)\ndef f(): return float(data.sum())",
                      "data = numpy.ones(3)"),
    "an array that is gone": ("data = numpy.zeros(3)\ndef f(): return str(data)",
                              "data = None"),
    "an array of an odd type": ("data = numpy.zeros(3, 'f2')\n"
                                "def f(): return float(data.sum())", change_bytes),
    "an array with gaps": ("data = numpy.zeros(9)[::2]\n"
                           "def f(): return float(data.sum())", change_bytes),
    "a bytearray": ("data = bytearray(3)\ndef f(): return data", change_bytes),
    "a partial's keyword": ("import functools\ng = functools.partial(dict, a=1)\n"
                            "def f(): return g()", "g.keywords['a'] = 2"),
    "what a wrapper wraps": (
        "import functools\nx = 1\ndef w(g):\n  @functools.wraps(g)\n"
        "  def inner(): return g()\n  return inner\n@w\ndef f(): return x", "x = 2"),
    "an object with a pickle of its own": (
        "import collections\nx = collections.Counter(a=1)\ndef f(): return dict(x)",
        "x['a'] = 2"),
    "an enum": ("import enum\nclass E(enum.Enum): A = 1\ndef f(): return E.A.value",
                "class E(enum.Enum): A = 2"),
    "a member of an enum": ("import enum\nclass E(enum.Enum):\n  A = 1\n  B = 2\n"
                            "x = E.A\ndef f(): return x.value", "x = E.B"),
}


@pytest.mark.parametrize("what", list(CHANGES))
def test_a_change_is_seen(coordinator, what):
    text, change = CHANGES[what]
    names = space(text, numpy=np)
    function = names["f"]
    with coordinator.executor() as executor:
        for schedule in (lambda: coordinator.schedule(function).fetch(60),
                         lambda: executor.submit(function).result(60)):
            assert schedule() == function()
            assert schedule() == function()
    before = str(function())
    if callable(change):
        change(names)
    else:
        exec(change, names)
    assert str(function()) != before
    with coordinator.executor() as executor:
        assert coordinator.schedule(function).fetch(60) == function()
        assert executor.submit(function).result(60) == function()
        assert list(executor.map(lambda _: function(), range(4), chunksize=2)) == \
            [function()] * 4
        assert coordinator.schedule(function).fetch(60) == function()


# What f() is made of, whose changes are seen without pickling it.
@pytest.mark.parametrize("what", [what for what in CHANGES if what not in (
    "an array with gaps", "a bytearray", "an object with a pickle of its own")])
def test_what_has_not_changed_is_not_pickled_again(what):
    content = _content.content_of(space(CHANGES[what][0], numpy=np)["f"])
    assert content is not None
    assert content.holds()


@pytest.mark.parametrize("value", ["collections.deque()", "threading.Lock()",
                                   "random.Random(1)", "[collections.deque()]"])
def test_what_cannot_be_looked_at_is_pickled_each_time(value):
    names = space(f"import collections, random, threading\nx = {value}\n"
                  "def f(): return x")
    assert _content.content_of(names["f"]) is None


def test_a_cell_is_what_it_is_when_it_is_scheduled(coordinator):
    x = 0

    def f():
        return x

    with coordinator.executor() as executor:
        futures, values = [], []
        for x in range(1, 6):
            futures.append(executor.submit(f))
            values.append(coordinator.schedule(f))
        assert [each.result(60) for each in futures] == [1, 2, 3, 4, 5]
        assert coordinator.fetch(values, 60) == [1, 2, 3, 4, 5]


def test_an_empty_cell_is_filled_later(coordinator):
    def make():
        def f():
            try:
                return g()
            except NameError:
                return 0
        yield f

        def g():
            return 1
        yield f

    made = make()
    f = next(made)
    assert coordinator.schedule(f).fetch(60) == 0
    next(made)
    assert coordinator.schedule(f).fetch(60) == 1


def test_functions_of_modules_are_known_by_their_name(coordinator, tmp_path):
    assert _content.content_of(functools.wraps).holds()
    content = _content.content_of(textwrap.dedent)
    before = textwrap.dedent
    try:
        textwrap.dedent = textwrap.indent
        assert not content.holds()
    finally:
        textwrap.dedent = before
    assert content.holds()


def test_what_a_function_refers_to_is_not_kept_alive_for_it():
    import weakref

    names = space("data = numpy.zeros(1 << 20)\ndef f(): return data", numpy=np)
    content = _content.content_of(names["f"])
    gone = weakref.ref(names["data"])
    assert content.holds()
    names["data"] = None
    assert gone() is None
    assert not content.holds()


def test_a_read_only_array_is_taken_as_constant():
    names = space("data = numpy.zeros(1 << 20)\ndef f(): return data", numpy=np)
    names["data"].flags.writeable = False
    content = _content.content_of(names["f"])
    names["data"].flags.writeable = True
    names["data"][0] = 1
    assert content.holds()


def test_many_contents_of_one_function_are_kept_apart(coordinator):
    names = space("x = 0\ndef f(n): return n * x")
    values = []
    for number in range(1200):
        names["x"] = number
        values.append(coordinator.schedule(names["f"], (3,)))
    assert coordinator.fetch(values, 120) == [3 * number for number in range(1200)]


def test_functions_of_a_program_are_as_they_are_when_scheduled(tmp_path):
    said = run("""
        import muster
        factor = 2

        def f(x):
            return x * factor

        if __name__ == "__main__":
            with muster.Executor(2) as executor:
                print(executor.submit(f, 10).result())
                factor = 3
                print(executor.submit(f, 10).result())
            print(*muster.map(f, [1, 2], cluster=muster.LocalCluster(workers=1)))
        """, tmp_path)
    assert said == ["20", "30", "3", "6"]


NOTEBOOK = ["""
    import muster
    cluster = muster.LocalCluster(workers=2)
    coordinator = muster.ClusterCoordinator(cluster)
    executor = muster.Executor(cluster)
    """, """
    def helper(x):
        return x + 1

    class Point:
        def __init__(self, x):
            self.x = x
        def words(self):
            return "first"
    """, """
    def f(x):
        point = Point(helper(x))
        return point, point.words()
    """, """
    def show():
        for point, words in (executor.submit(f, 1).result(60),
                             coordinator.schedule(f, (1,)).fetch(60),
                             next(executor.map(f, [1])),
                             next(muster.map(f, [1], cluster=cluster))):
            print(point.x, words, type(point) is Point, point.words())
    show()
    """, """
    def helper(x):
        return x + 10
    show()
    """, """
    class Point:
        def __init__(self, x):
            self.x = -x
        def words(self):
            return "second"
    show()
    """, """
    executor.shutdown()
    cluster.close()
    """]


def test_edited_cells_of_a_notebook_are_used(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    book = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in NOTEBOOK])
    # Its kernel is this interpreter, whatever else is installed.
    from jupyter_client import KernelManager
    from jupyter_client.kernelspec import KernelSpec

    manager = KernelManager()
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="python", language="python")
    nbclient.NotebookClient(book, km=manager, timeout=120,
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = ["".join(out.get("text", "") for out in cell.get("outputs", ())
                    if out.get("name") == "stdout").splitlines() for cell in book.cells]
    assert said[3] == ["2 first True first"] * 4
    assert said[4] == ["11 first True first"] * 4
    assert said[5] == ["-11 second True second"] * 4
