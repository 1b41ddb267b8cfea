"""The types of the package, as mypy and pyright see them."""

import os
import re
import subprocess
import sys
import typing

import pytest

import muster

HERE = os.path.dirname(os.path.abspath(__file__))
RIGHT = os.path.join(HERE, "types_right.py")
WRONG = os.path.join(HERE, "types_wrong.py")


def mypy(*words):
    pytest.importorskip("mypy")
    folder = os.path.dirname(os.path.dirname(muster.__file__))
    if os.path.basename(folder) == "site-packages":     # where mypy finds it by itself
        folder = os.path.dirname(__file__)
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", *words],
                          capture_output=True, text=True, timeout=300,
                          cwd=folder)


def test_the_package_is_strictly_typed(tmp_path):
    done = mypy("--config-file", os.path.join(os.path.dirname(__file__), "..",
                                              "..", "pyproject.toml"),
                "--cache-dir", str(tmp_path), "-p", "muster")
    assert done.returncode == 0, done.stdout + done.stderr


def wrong_lines():
    with open(WRONG, encoding="utf-8") as file:
        return {number for number, line in enumerate(file, 1) if "# WRONG" in line}


def refused_lines(output):
    """The numbers of the lines for which a checker has an error."""
    return {int(number) for number in
            re.findall(r"types_wrong\.py:(\d+)(?::\d+)*(?: -)?:? error", output)}


def test_programs_are_checked_by_mypy(tmp_path):
    options = ("--cache-dir", str(tmp_path), "--follow-imports", "silent")
    done = mypy(*options, RIGHT)
    assert done.returncode == 0, done.stdout + done.stderr
    done = mypy(*options, WRONG)
    assert refused_lines(done.stdout) == wrong_lines(), done.stdout


def pyright(*words):
    pytest.importorskip("pyright")
    done = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath",
                           sys.executable, *words],
                          capture_output=True, text=True, timeout=300)
    if "error" not in done.stdout and "0 warnings" not in done.stdout:
        pytest.skip("pyright cannot be run: " + (done.stdout + done.stderr)[-200:])
    return done


def test_programs_are_checked_by_pyright():
    done = pyright(RIGHT)
    assert done.returncode == 0, done.stdout + done.stderr
    done = pyright(WRONG)
    assert refused_lines(done.stdout) == wrong_lines(), done.stdout


def test_the_package_is_checked_by_pyright():
    package = os.path.join(HERE, "..", "..")
    done = pyright("-p", package, "--level", "error", *(
        os.path.join(package, name) for name in ("muster", "muster_pytest")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_options_are_those_of_a_node():
    from muster import _muster

    cluster = set(muster.cluster.ClusterOptions.__annotations__)
    node = set(muster.cluster.NodeOptions.__annotations__)
    assert node == set(_muster.NODE_OPTIONS) | {"processes", "resolver"}
    hints = typing.get_type_hints(muster.cluster.NodeOptions)
    types = {"str": str, "int": int, "float": float, "bool": bool}
    for name, (kind, _) in _muster.NODE_OPTIONS.items():
        assert hints[name] == typing.Optional[types[kind]], name
    assert node - cluster == {"task_type", "task_index", "bind_address", "threads",
                              "advertise_address", "log_level", "processes", "resolver"}


def test_a_remote_value_has_the_type_of_its_result():
    assert muster.RemoteValue[int].__args__ == (int,)


def test_every_function_of_the_extension_is_in_the_stubs():
    from muster import _muster

    path = os.path.join(os.path.dirname(muster.__file__), "_muster.pyi")
    with open(path, encoding="utf-8") as file:
        stubs = file.read()
    missing = [name for name in dir(_muster)
               if not name.startswith("__") and name not in stubs]
    for name in dir(_muster):
        item = getattr(_muster, name)
        if isinstance(item, type):
            missing += [f"{name}.{method}" for method in vars(item)
                        if not method.startswith("__") and f"def {method}(" not in stubs
                        and f"    {method}: " not in stubs]
    assert not missing


def test_everything_public_has_a_docstring():
    for name in muster.__all__:
        item = getattr(muster, name)
        if isinstance(item, type) and not name.startswith("_"):
            assert item.__doc__, name
            for method, function in vars(item).items():
                if not method.startswith("_"):
                    assert getattr(function, "__doc__", None), f"{name}.{method}"
