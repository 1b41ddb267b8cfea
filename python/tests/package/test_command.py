"""The command: `python -m muster`, and --python of the plain program."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import muster

JOB = """
import muster, os, sys

def square(x):
    return x * x

@muster.register("job.pid")
def pid():
    return os.getpid()

@muster.program("chief")
def main(node):
    print("python", sys.version_info[0], flush=True)
    with muster.ClusterCoordinator(node, timeout=30) as coordinator:
        values = [coordinator.schedule(square, (i,)) for i in range(10)]
        print("squares", coordinator.fetch(values, 30), flush=True)
        assert coordinator.schedule("job.pid").fetch(30) != os.getpid()
    if os.environ.get("JOB_FAILS"):
        raise muster.errors.NotFoundError("the job's own words")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    return tmp_path


def run(words, folder, **variables):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60,
                          env={**os.environ, **variables})


PYTHON = [sys.executable, "-m", "muster"]


def test_the_command_is_the_command():
    done = subprocess.run([*PYTHON, "version"], capture_output=True, text=True)
    assert done.returncode == 0 and muster.__version__ in done.stdout
    done = subprocess.run([*PYTHON, "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "no verb" in done.stderr


def test_every_option_of_a_local_cluster_is_a_flag(folder):
    from muster import _muster, cluster

    values = {"str": "x", "int": 1, "float": 10.0, "bool": True}
    options = {name: values[kind] for name, (kind, _) in _muster.NODE_OPTIONS.items()
               if name not in cluster._OF_ONE and name != "log_level"}
    assert "server_failures_window" in options and len(options) > 40
    done = run([*PYTHON, "node", *cluster._flags(options), "--no-such-flag"], folder)
    assert done.returncode == 2
    assert 'no flag "no-such-flag"' in done.stderr


def test_a_job_of_python_runs_by_the_command(folder):
    done = run([*PYTHON, "run", "--workers", "2", "--python", "job"], folder)
    assert done.returncode == 0, done.stderr
    assert "squares [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]" in done.stdout


def test_the_words_of_a_job_that_failed(folder):
    done = run([*PYTHON, "run", "--workers", "1", "--python", "job"], folder,
               JOB_FAILS="1")
    assert done.returncode == 1 and "the job's own words" in done.stderr


def test_a_module_that_is_not_there_is_a_usage_error(folder):
    done = run([*PYTHON, "run", "--workers", "1", "--python", "absent"], folder)
    assert done.returncode == 2
    assert 'the Python module "absent" cannot be imported' in done.stdout + done.stderr


def program():
    path = os.environ.get("MUSTER_BIN") or shutil.which("muster-c")
    if not path:
        pytest.skip("MUSTER_BIN does not say where the plain program is")
    return path


def test_the_plain_program_starts_an_interpreter(folder):
    paths = os.pathsep.join([*sys.path])
    done = run([program(), "run", "--workers", "2", "--python", "job"], folder,
               MUSTER_PYTHON=sys.executable, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    assert "squares [0, 1, 4" in done.stdout


def test_an_interpreter_that_is_not_there_or_has_no_muster_is_told(folder, tmp_path):
    words = [program(), "node", "--cluster", '{"worker": ["127.0.0.1:0"]}', "--task",
             "worker:0", "--python", "job"]
    done = run(words, folder, MUSTER_PYTHON="/no/such/python")
    assert done.returncode == 2 and "MUSTER_PYTHON names another" in done.stderr
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = run(words, tmp_path / "bare", MUSTER_PYTHON=str(bare / "bin" / "python"),
               PYTHONPATH="")
    assert done.returncode == 2 and "has no package muster" in done.stderr
