"""Functions in C that Python schedules, and functions of Python that C schedules."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import muster

HERE = pathlib.Path(__file__).resolve().parent

MODULE = """
import muster, numpy

@muster.register("py.add")
def add(a, b):
    return a + b

@muster.register("py.double")
def double(array):
    assert isinstance(array, numpy.ndarray)
    return array * 2

@muster.register("py.fail")
def fail(words):
    raise KeyError(words)

@muster.register("py.object")
def give_object():
    return object()
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """The plugin in C, as a shared object."""
    compiler = shutil.which("cc")
    include = HERE.parent.parent / "include"
    if compiler is None or not include.is_dir():
        pytest.skip("no C compiler, or no headers of the library")
    path = tmp_path_factory.mktemp("plugin") / "plugin_mixed.so"
    source = HERE / "support" / "plugin_mixed.c"
    subprocess.run([compiler, "-std=c11", "-shared", "-fPIC", "-I", str(include),
                    str(source), "-o", str(path)], check=True)
    return str(path)


def test_a_function_of_c_is_scheduled_by_name(plugin, own_cluster):
    cluster = own_cluster(workers=1, plugins=[plugin])
    with muster.ClusterCoordinator(cluster) as coordinator:
        scaled = coordinator.schedule("c.scale", (np.arange(6.0).reshape(2, 3), 10))
        result = scaled.fetch(30)
        assert result.dtype == np.float64 and result.shape == (2, 3)
        assert (result == np.arange(0.0, 60.0, 10).reshape(2, 3)).all()
        for value in (7, 1.5, "text", None, True, b"bytes", [1, "a", [2.5]], {"k": [1]}):
            assert coordinator.schedule("c.same", value).fetch(30) == value
        with pytest.raises(muster.errors.InvalidArgumentError,
                           match="^c.scale expects float64 and a factor$") as caught:
            coordinator.schedule("c.scale", ("no array", 1)).fetch(30)
        assert caught.value.function == "c.scale" and caught.value.kind == "function"


def test_a_chief_in_c_schedules_functions_of_python(plugin, tmp_path):
    (tmp_path / "job.py").write_text(textwrap.dedent(MODULE))
    done = subprocess.run(
        [sys.executable, "-m", "muster", "run", "--workers", "2", "--python", "job",
         "--plugin", plugin], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "CHIEF_IN_C": "1"})
    lines = [line.partition("| ")[2] for line in done.stdout.splitlines()
             if line.startswith("chief/0")]
    assert done.returncode == 0, done.stderr
    assert lines[:4] == ["sum 42", "text abcd", "array float64 2x3 last 12",
                         "EUNKNOWN py.fail failed: KeyError: 'words' | function"]
    assert lines[4].startswith('ENOTFOUND py.absent failed: no function "py.absent"')
    assert lines[5].startswith("EUNKNOWN py.object failed: TypeError: ")
    assert lines[5].endswith(" | function") and lines[6:] == ["sum 42"]
