"""CPython's tests of executors and joblib's of backends, run with those of muster."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = os.path.join(HERE, "support")


def run(script, *arguments, timeout):
    """Run a script that is described in its own file; its output is that of a failure."""
    import muster

    package = os.path.dirname(os.path.dirname(os.path.abspath(muster.__file__)))
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    done = subprocess.run([sys.executable, os.path.join(SUITES, script), *arguments],
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(paths)),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout)
    lines = done.stdout.strip().splitlines()
    if done.returncode == 77:
        pytest.skip(lines[-1])
    assert done.returncode == 0, "\n".join(lines[-80:])
    return lines


def test_cpythons_tests_of_executors():
    lines = run("cpython_executor.py", timeout=600)
    assert '"failed": 0' in lines[-1] and '"ran": 0' not in lines[-1]


def test_joblibs_tests_of_backends():
    lines = run("joblib_backend.py", timeout=1800)
    assert any(" passed" in line for line in lines)
