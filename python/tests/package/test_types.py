"""The types of the package, as mypy sees them."""

import os
import subprocess
import sys

import pytest

import muster

USE = """
import muster
import numpy as np
import numpy.typing as npt
from typing import Any

def train(x: int) -> float:
    return x * 0.5

async def use() -> None:
    with muster.LocalCluster(workers=2, ps=1) as cluster:
        coordinator = muster.ClusterCoordinator(cluster, timeout=5.0)
        value: muster.RemoteValue = coordinator.schedule(train, (1,), priority=0)
        result: Any = value.fetch(timeout=1.0)
        again: Any = await value
        variable = muster.Variable(np.zeros(3), name="w")
        array: npt.NDArray[Any] = variable.read()
        run: muster.Run = muster.current_run()
        index: int = run.worker
        error: muster.MusterError = muster.errors.NotFoundError("x", task="t")
        print(result, again, array, index, error.code)
"""

WRONG = """
import muster
cluster = muster.LocalCluster(workers="two")
coordinator = muster.ClusterCoordinator(cluster)
coordinator.schedule(len, ([],), priorty=1)
muster.current_run().worker = 3
"""


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


def test_programs_are_checked_against_the_stubs(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = mypy("--cache-dir", str(tmp_path), "--follow-imports", "silent",
                str(tmp_path / "use.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    done = mypy("--cache-dir", str(tmp_path), "--follow-imports", "silent",
                str(tmp_path / "wrong.py"))
    assert done.stdout.count("error:") == 3, done.stdout


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
