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


def test_a_bank_has_all_its_money_although_workers_are_killed():
    output = run_example("bank.py")
    assert "6 times a worker was killed" in output
    assert "there is 16000 in the bank" in output


def test_model_servers_answer_although_workers_are_killed():
    output = run_example("model_servers.py")
    count, processes, wrong = re.search(
        r"(\d+) predictions by 4 servers in (\d+) processes, (\d+) of them wrong",
        output).groups()
    assert (int(count), int(wrong)) == (2000, 0)
    assert int(processes) >= 3      # of the first ones and of those that came after


def test_clicks_are_predicted_although_a_worker_and_a_server_are_killed():
    output = run_example("ctr.py")
    assert "killed worker/1" in output and "killed ps/1" in output
    trained, held = re.search(r"(\d+) lines trained on, 0 damaged, (\d+) held out",
                              output).groups()
    assert int(trained) + int(held) == 100_000
    auc, best = re.findall(r"AUC ([\d.]+)", output)
    assert float(best) - float(auc) < 0.01


@pytest.fixture
def ctr():
    spec = importlib.util.spec_from_file_location("ctr_example", FOLDER / "ctr.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_of_clicks_are_each_in_one_range_of_bytes(ctr, tmp_path):
    ctr.make_lines(tmp_path / "lines", 300)
    size = (tmp_path / "lines").stat().st_size
    labels, ids, damaged = ctr.read(tmp_path / "lines", 0, size)
    assert (len(labels), ids.shape, damaged) == (300, (300, 39), 0)
    assert (ids >> 56 == range(39)).all()
    for part in (1, 50, 1000, size - 1):
        parts = [ctr.read(tmp_path / "lines", begin, min(begin + part, size))
                 for begin in range(0, size, part)]
        assert [id for _, rows, _ in parts for id in rows.flat] == list(ids.flat)


@pytest.mark.parametrize("line, damaged", [
    ("1" + "\t" * 39, 0), ("0\t-1" + "\t" * 37 + "\tff", 0), ("2" + "\t" * 39, 1),
    ("", 1), ("1", 1), ("1" + "\t" * 38, 1), ("1" + "\t" * 40, 1),
    ("1\tmany" + "\t" * 38, 1), ("1" + "\t" * 39 + "68fd1e6g", 1)])
def test_damaged_lines_of_clicks_are_counted(ctr, tmp_path, line, damaged):
    (tmp_path / "lines").write_text(f"{line}\n")
    labels, _, found = ctr.read(tmp_path / "lines", 0, len(line) + 1)
    assert (len(labels), found) == (1 - damaged, damaged)


@pytest.mark.parametrize("labels, probabilities, auc", [
    ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], 1), ([1, 0], [0.2, 0.3], 0),
    ([0, 1, 0, 1], [0.5] * 4, 0.5), ([0, 1, 0, 1], [0.125, 0.25, 0.5, 0.5], 0.625)])
def test_area_under_the_curve_of_clicks(ctr, labels, probabilities, auc):
    import numpy
    found, _ = ctr.scores(numpy.array(labels), numpy.array(probabilities))
    assert found == auc


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
