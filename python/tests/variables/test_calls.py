"""Futures of calls that do not wait."""

import subprocess
import sys

import pytest

from muster import _calls


def test_results_and_errors():
    assert _calls.at_once(lambda a, b: a - b, 5, b=3).result(0) == 2
    with pytest.raises(ZeroDivisionError):
        _calls.at_once(lambda: 1 // 0).result(0)


def test_a_process_ends_without_them():
    program = ("import muster\n"
               "cluster = muster.LocalCluster(workers=1, ps=1)\n"
               "variable = muster.Variable([1.0], name='v', node=cluster)\n"
               "futures = [variable.read_async() for i in range(5000)]")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
