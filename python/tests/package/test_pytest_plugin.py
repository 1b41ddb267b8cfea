"""The fixtures of muster_pytest, in a pytest of their own."""

import os
import subprocess
import sys

TESTS = '''
import muster

def test_the_cluster(muster_cluster, muster_executor):
    assert len(muster_cluster.cluster_spec["worker"]) == 1
    assert muster_executor.submit(pow, 2, 3).result(30) == 8

def test_an_error_that_is_left_behind(muster_coordinator):
    muster_coordinator.schedule(int, ("x",))

def test_does_not_reach_the_next_one(muster_coordinator):
    assert muster_coordinator.fetch(muster_coordinator.schedule(int, ("5",))) == 5
    muster_coordinator.join(30)

def test_a_cluster_of_its_own(make_muster_cluster):
    cluster = make_muster_cluster(workers=1)
    assert list(muster.map(abs, [-1, 2], cluster=cluster)) == [1, 2]
'''


def run(folder, *arguments):
    import muster

    package = os.path.dirname(os.path.dirname(os.path.abspath(muster.__file__)))
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=300, env=dict(os.environ, PYTHONPATH=os.pathsep.join(paths)))


def installed():
    """Whether pytest finds the plugin by itself: only where the package is installed."""
    from importlib import metadata

    points = metadata.entry_points()
    group = points.select(group="pytest11") if hasattr(points, "select") \
        else points.get("pytest11", ())
    return any(point.name == "muster" for point in group)


def test_the_fixtures_work(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmuster_workers = 1\n")
    named = [] if installed() else ["-p", "muster_pytest"]
    done = run(tmp_path, *named)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


def test_it_costs_nothing_where_it_is_not_used(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    assert 'muster_pytest' in sys.modules\n"
        "    assert not {'muster', 'numpy', 'cloudpickle'} & set(sys.modules)\n")
    named = [] if installed() else ["-p", "muster_pytest"]
    done = run(tmp_path, *named)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_a_wrong_option_is_told(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmuster_ps = many\n")
    named = [] if installed() else ["-p", "muster_pytest"]
    done = run(tmp_path, *named)
    assert done.returncode != 0 and "muster_ps is 'many'" in done.stdout, done.stdout
