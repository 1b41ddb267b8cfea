"""What programs of newcomers do, run as programs of their own: what they define, and
raise, is in __main__."""

import subprocess
import sys

import pytest

PROGRAM = """
import muster

class Plain(Exception):
    pass

class Rich(Exception):
    def __init__(self, code, words):
        super().__init__(f"{{code}}: {{words}}")
        self.code = code

class Keyword(ValueError):
    def __init__(self, *, code):
        super().__init__("keyword")
        self.code = code

def fail(make):
    raise make()

with muster.LocalCluster(workers=1) as cluster:
{body}
"""

SCHEDULE = """
    coordinator = muster.ClusterCoordinator(cluster)
    for make, kind in MAKERS:
        try:
            coordinator.schedule(fail, (make,)).fetch(60)
        except kind as error:
            print(type(error) is kind, error, getattr(error, "code", None),
                  "in fail" in error.__cause__.text)
        try:
            coordinator.join(60)
        except kind as error:       # once more: it is the coordinator's first error
            pass
"""

SUBMIT = """
    executor = muster.Executor(cluster)
    for make, kind in MAKERS:
        try:
            executor.submit(fail, make).result(60)
        except kind as error:
            print(type(error) is kind, error, getattr(error, "code", None),
                  "in fail" in error.__cause__.text)
    executor.shutdown()
"""

MAKERS = """[(lambda: Plain("plain"), Plain), (lambda: Rich(7, "rich"), Rich),
                        (lambda: Keyword(code=9), Keyword)]"""

RAISED = ["True plain None True", "True 7: rich 7 True", "True keyword 9 True"]


def run_program(text):
    done = subprocess.run([sys.executable, "-c", text], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("body", [SCHEDULE, SUBMIT], ids=["schedule", "submit"])
def test_exceptions_of_the_program_are_raised_as_their_own_class(body):
    assert run_program(PROGRAM.format(body=body.replace("MAKERS", MAKERS))) == RAISED


def test_what_cannot_be_sent_says_what_to_do():
    lines = run_program(PROGRAM.format(body="""
    coordinator = muster.ClusterCoordinator(cluster)
    for owner in (coordinator, cluster, muster.Executor(cluster)):
        try:
            coordinator.schedule(lambda: owner)
        except TypeError as error:
            print(error)
"""))
    assert len(lines) == 3 and all("cannot be sent to workers" in line for line in lines)


def test_functions_may_schedule_functions():
    assert run_program("""
import muster

def inner(x):
    return x + 1

def outer(x):
    coordinator = muster.ClusterCoordinator(muster.current_run().node, timeout=30)
    return coordinator.schedule(inner, (x,)).fetch(30)

with muster.LocalCluster(workers=2) as cluster:
    coordinator = muster.ClusterCoordinator(cluster)
    print(coordinator.schedule(outer, (1,)).fetch(60))
""") == ["2"]
