"""How programs end. Ctrl-C in a terminal: one ends a program, whatever its functions do;
two, at once."""

import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import wait_until

# Functions that would run for much longer than any test.
HEAD = """
    import os, sys, time
    import muster

    PLACE = sys.argv[-1]

    def long(x):
        open(os.path.join(PLACE, str(os.getpid())), "w").close()
        time.sleep(600)
        return x

    def ready(count=2):
        while len(os.listdir(PLACE)) < count:
            time.sleep(0.01)
        print("READY", flush=True)
    """
PROGRAMS = {
    "Executor(2)": """
        with muster.Executor(2) as executor:
            futures = [executor.submit(long, i) for i in range(6)]
            ready()
            futures[0].result()
        """,
    "Executor of a cluster": """
        with muster.LocalCluster(workers=2) as cluster:
            with muster.Executor(cluster) as executor:
                futures = [executor.submit(long, i) for i in range(6)]
                ready()
                futures[0].result()
        """,
    "an executor that is not closed": """
        executor = muster.Executor(2)
        futures = [executor.submit(long, i) for i in range(6)]
        ready()
        futures[0].result()
        """,
    "the end of an executor": """
        with muster.Executor(2) as executor:
            futures = [executor.submit(long, i) for i in range(6)]
            ready()
        """,
    "the end of the program": """
        executor = muster.Executor(2)
        futures = [executor.submit(long, i) for i in range(6)]
        ready()
        """,
    "Executor.map": """
        with muster.Executor(2) as executor:
            results = executor.map(long, range(6))
            ready()
            list(results)
        """,
    "muster.map": """
        with muster.LocalCluster(workers=2) as cluster:
            results = muster.map(long, range(6), cluster=cluster)
            ready()
            list(results)
        """,
    "executor processes": """
        with muster.Executor(1, processes=2) as executor:
            futures = [executor.submit(long, i) for i in range(6)]
            ready()
            futures[0].result()
        """,
    "join": """
        with muster.LocalCluster(workers=2) as cluster:
            coordinator = muster.ClusterCoordinator(cluster)
            values = [coordinator.schedule(long, (i,)) for i in range(6)]
            ready()
            coordinator.join()
        """,
    "fetch": """
        with muster.LocalCluster(workers=2) as cluster:
            coordinator = muster.ClusterCoordinator(cluster)
            values = [coordinator.schedule(long, (i,)) for i in range(6)]
            ready()
            values[0].fetch()
        """,
    "schedule": """
        with muster.LocalCluster(workers=2, queue_max=4) as cluster:
            coordinator = muster.ClusterCoordinator(cluster)
            values = [coordinator.schedule(long, (i,), timeout=0) for i in range(2)]
            ready()
            while True:
                values.append(coordinator.schedule(long, (0,)))
        """,
    "joblib": """
        import joblib, muster.joblib
        with muster.LocalCluster(workers=2) as cluster:
            import threading
            threading.Thread(target=ready, daemon=True).start()
            with joblib.parallel_config("muster", cluster=cluster):
                joblib.Parallel()(joblib.delayed(long)(i) for i in range(6))
        """,
}
# Those in which Python says itself that it was interrupted when it was ending.
AT_END = ("the end of the program",)
ENDS_SECONDS = 60.0     # a bound for slow machines; functions take ten times as long


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, path, argument):
        self.said = b""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.execv(sys.executable, [sys.executable, str(path), str(argument)])

    def read(self, until, seconds=ENDS_SECONDS):
        """Read until these bytes come, or (None) the program ends."""
        limit = time.monotonic() + seconds
        while until is None or until not in self.said:
            left = limit - time.monotonic()
            assert left > 0, f"it has said only {self.said.decode()}"
            if select.select([self.file], [], [], left)[0]:
                try:
                    data = os.read(self.file, 65536)
                except OSError:     # nobody has the terminal open
                    data = b""
                if not data:
                    assert until is None, self.said.decode()
                    return
                self.said += data

    def type(self, keys):
        os.write(self.file, keys)

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass
        os.close(self.file)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("what", list(PROGRAMS))
def test_ctrl_c_ends_the_program(what, times, tmp_path):
    if what == "joblib":
        pytest.importorskip("joblib", reason="joblib is not installed")
    running = tmp_path / "running"
    running.mkdir()
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(HEAD) + "\nif __name__ == '__main__':\n"
                    + textwrap.indent(textwrap.dedent(PROGRAMS[what]), "    "))
    terminal = Terminal(path, running)
    try:
        terminal.read(b"READY")
        for _ in range(times):
            terminal.type(b"\x03")
            time.sleep(0.05)
        terminal.read(None)
        _, status = os.waitpid(terminal.pid, 0)
    finally:
        terminal.close()
    said = terminal.said.decode()
    assert b"KeyboardInterrupt" in terminal.said or what in AT_END, said
    # An interrupt while the interpreter ends does not change how it ends.
    if what not in AT_END:
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, said
    assert wait_until(lambda: not any(map(is_alive, os.listdir(running))))
    # What had not begun did not begin.
    assert len(os.listdir(running)) <= 2


# ---- other ends ----

SHORT = """
    import os, sys, time
    import muster

    PLACE, HOW = sys.argv[1:]

    def short(x):
        open(os.path.join(PLACE, f"begun-{x}"), "w").close()
        time.sleep(0.3 if HOW == "short" else 600)
        open(os.path.join(PLACE, f"ended-{x}"), "w").close()

    def ready():
        while not any(name.startswith("begun") for name in os.listdir(PLACE)):
            time.sleep(0.01)
        raise ValueError("the program's own")
    """
# What is left by an exception that nothing catches: all that was submitted, or nothing.
EXCEPTIONS = {
    "Executor": ("short", """
        with muster.Executor(2) as executor:
            for i in range(6):
                executor.submit(short, i)
            ready()
        """, 6),
    "an executor that is not closed": ("short", """
        executor = muster.Executor(2)
        for i in range(6):
            executor.submit(short, i)
        ready()
        """, 6),
    "LocalCluster": ("long", """
        with muster.LocalCluster(workers=2) as cluster:
            coordinator = muster.ClusterCoordinator(cluster)
            values = [coordinator.schedule(short, (i,)) for i in range(6)]
            ready()
        """, 0),
    "a cluster that is not closed": ("long", """
        cluster = muster.LocalCluster(workers=2)
        coordinator = muster.ClusterCoordinator(cluster)
        values = [coordinator.schedule(short, (i,)) for i in range(6)]
        ready()
        """, 0),
}


@pytest.mark.parametrize("what", list(EXCEPTIONS))
def test_an_exception_ends_the_program(what, tmp_path):
    how, body, ended = EXCEPTIONS[what]
    place = tmp_path / "place"
    place.mkdir()
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(SHORT) + "\nif __name__ == '__main__':\n"
                    + textwrap.indent(textwrap.dedent(body), "    "))
    done = subprocess.run([sys.executable, str(path), str(place), how], text=True,
                          capture_output=True, timeout=ENDS_SECONDS)
    assert done.returncode == 1 and "ValueError: the program's own" in done.stderr
    assert sum(name.startswith("ended") for name in os.listdir(place)) == ended


RUN = """
import os, sys, time
import muster

def long(x):
    open(os.path.join(os.environ["PLACE"], str(os.getpid())), "w").close()
    time.sleep(600)

@muster.program("chief")
def main(node):
    coordinator = muster.ClusterCoordinator(node)
    values = [coordinator.schedule(long, (i,)) for i in range(2)]
    while len(os.listdir(os.environ["PLACE"])) < 2:
        time.sleep(0.01)
    print("READY", flush=True)
    if os.environ["HOW"] == "exit":
        sys.exit(3)
    if os.environ["HOW"] == "raise":
        raise ValueError("the program's own")
    coordinator.join()
"""


@pytest.mark.parametrize("how, signals, code", [
    ("join", [signal.SIGINT], 5), ("join", [signal.SIGINT] * 2, 130),
    ("join", [signal.SIGTERM], 5), ("join", [signal.SIGKILL], -9),
    ("exit", [], 1), ("raise", [], 1)])
def test_muster_run_ends_with_all_tasks(tmp_path, how, signals, code):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "ending_job.py").write_text(RUN)
    job = subprocess.Popen(
        [sys.executable, "-m", "muster", "run", "--workers", "2", "--python",
         "ending_job", "--grace-ms", "300"], cwd=tmp_path, text=True,
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "HOW": how, "PLACE": str(place)})
    said = ""
    while "READY" not in said:
        line = job.stdout.readline()
        assert line, said
        said += line
    for number in signals:
        job.send_signal(number)
        time.sleep(0.05)
    rest, _ = job.communicate(timeout=ENDS_SECONDS)
    assert job.returncode == code, said + rest
    assert ("ValueError: the program's own" in rest) == (how == "raise")
    assert wait_until(lambda: not any(map(is_alive, os.listdir(place))))
