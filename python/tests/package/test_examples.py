"""The programs of examples/python, each in a process of its own."""

import importlib.util
import math
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "python"


def run_example(name, timeout=120):
    """What an example prints; it ends with 0."""
    process = subprocess.run([sys.executable, str(FOLDER / name)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             timeout=timeout)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Traceback" not in process.stderr, process.stderr
    return process.stdout


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None,
                              reason=f"{module} is not installed")


def test_digits_are_learnt_although_a_worker_is_killed():
    output = run_example("digits.py")
    assert "killed worker/1" in output
    finished, counted = re.search(r"steps: (\d+) finished, (\d+) counted",
                                  output).groups()
    assert (int(finished), int(counted)) == (3000, 3000)
    assert float(re.search(r"accuracy: ([\d.]+)%", output).group(1)) >= 95


def test_the_counter_is_exact_although_a_worker_is_killed():
    assert "the counter is at 2000" in run_example("once.py")


def test_pi_comes_out_of_random_points():
    pi = float(re.search(r"pi is about ([\d.]+)", run_example("monte_carlo.py")).group(1))
    assert abs(pi - math.pi) < 1e-3


@needs("sklearn")
def test_a_grid_search_on_a_cluster_has_the_same_result():
    assert "; the same as without a cluster" in run_example("grid_search.py")


@needs("torch")
def test_a_model_of_torch_is_trained_asynchronously():
    first, final = re.search(r"loss: ([\d.]+) in the first step, ([\d.]+) at the end",
                             run_example("torch_async.py")).groups()
    assert float(final) < 0.1 * float(first)


@pytest.mark.parametrize("module, name", [("torch", "torch_async.py"),
                                          ("sklearn", "grid_search.py")])
def test_without_its_library_an_example_says_so_and_ends_well(tmp_path, module, name):
    script = tmp_path / "run.py"
    script.write_text(
        "import importlib.util, runpy\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: (\n"
        f"    None if name == {module!r} else find(name, *more))\n"
        f"runpy.run_path({str(FOLDER / name)!r}, run_name='__main__')\n")
    process = subprocess.run([sys.executable, str(script)], text=True,
                             stdout=subprocess.PIPE, timeout=60)
    assert process.returncode == 0
    assert process.stdout.startswith("skipped: ")


def test_each_example_has_a_test():
    source = pathlib.Path(__file__).read_text()
    names = [name for name in os.listdir(FOLDER) if name.endswith(".py")]
    assert names and all(f'"{name}"' in source or f"'{name}'" in source for name in names)
