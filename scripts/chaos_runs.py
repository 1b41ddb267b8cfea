"""Runs of a job, one behind another over the same store, for scripts/chaos --runs."""

import collections
import json
import random
import re
import signal
import socket
import subprocess
import time

HOST = "127.0.0.1"
RUNS = 8                # of one round, which has a store of its own
HISTORY = 17            # runs that a store remembers
LIMIT_S = 90            # for one run; the slow ones take a second
HOLD_S = 20             # for a store to be let go of by processes that were killed
SUM = "500500"

# What a run is like, how often, and what the store says of it afterwards.
KINDS = {
    "quick": (3, "ended"),
    "slow": (2, "ended"),
    "failing": (2, "failed"),
    "killed": (2, "abandoned"),
    "hanging": (2, "abandoned"),
}


def free_port():
    with socket.socket() as one:
        one.bind((HOST, 0))
        return one.getsockname()[1]


class Runs:
    """One round: the interface of a Cluster of scripts/chaos."""

    def __init__(self, options, folder, seed):
        folder.mkdir()
        self.options = options
        self.folder = folder
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.problems = []
        self.states = []            # of the runs, as they must be
        self.keys = 0
        self.etcd = None
        self.store = f"journal:{folder / 'store'}"

    # ---- the store ----

    def start_etcd(self):
        port, peer = free_port(), free_port()
        self.store = f"etcd:http://{HOST}:{port}"
        log = open(self.folder / "etcd.log", "wb")
        self.etcd = subprocess.Popen(
            ["etcd", "--data-dir", self.folder / "etcd", "--log-level", "error",
             "--listen-client-urls", f"http://{HOST}:{port}",
             "--advertise-client-urls", f"http://{HOST}:{port}",
             "--listen-peer-urls", f"http://{HOST}:{peer}",
             "--initial-advertise-peer-urls", f"http://{HOST}:{peer}",
             "--initial-cluster", f"default=http://{HOST}:{peer}"],
            stdout=log, stderr=log)
        log.close()

    def muster(self, *arguments):
        return subprocess.run([self.options.build / "muster", *arguments],
                              capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)

    def look(self):
        """What the store has, once nobody holds it any more."""
        ends = time.monotonic() + HOLD_S
        while True:
            done = self.muster("store", "ls", "--store", self.store, "-o", "json",
                               "--timeout-ms", "15000")
            if done.returncode == 0:
                return json.loads(done.stdout)
            if time.monotonic() > ends:
                self.problem(f"the store is not shown: {done.stderr.strip()}")
                return {"runs": [], "keys": self.keys}
            time.sleep(0.05)

    # ---- a run ----

    def problem(self, words):
        self.problems.append(words)

    def start(self, kind, log):
        settings = {"quick": [], "slow": ["pause_ms=60"], "killed": ["pause_ms=30"],
                    "failing": ["fails=/job:worker/task:1"],
                    "hanging": ["pause_ms=600000"]}[kind]
        flags = [word for text in settings + self.options.set for word in ("--set", text)]
        return subprocess.Popen(
            [self.options.build / "muster", "run", "--workers", "2", "--ps", "1",
             "--log-level", "info",
             "--plugin", self.options.build / "examples/distribute.so",
             "--store", self.store, "--lease-ms", "2000", "--grace-ms", "2000",
             "--set", "numbers=1000", *flags, *self.options.flags],
            stdout=log, stderr=subprocess.STDOUT)

    def text(self, path):
        return path.read_text(errors="replace")

    def put_key(self, path):
        """While functions hang: a key that is to be there in all later runs."""
        ends = time.monotonic() + LIMIT_S
        while "/job:chief/task:0 begins" not in self.text(path):
            if time.monotonic() > ends:
                self.problem("a run has not begun")
                return
            time.sleep(0.02)
        at = re.search(r"chief/0 pid \d+ started at (\S+)", self.text(path))
        done = self.muster("kv", "put", f"kept/{self.keys}", "x", "--address",
                           f"tcp://{at[1]}")
        if done.returncode != 0:
            self.problem(f"a key was not put: {done.stderr.strip()}")
        self.keys += 1

    def kill(self, child):
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=LIMIT_S)

    def run_one(self, number, kind):
        path = self.folder / f"run-{number}.log"
        with open(path, "wb") as log:
            child = self.start(kind, log)
        try:
            if kind == "killed":
                time.sleep(self.random.uniform(0, 0.6))
            elif kind == "hanging":
                self.put_key(path)
            if kind in ("killed", "hanging"):
                self.kill(child)
            else:
                child.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill(child)
            self.problem(f"run {number} ({kind}) has not ended: {path}")
        self.judge(number, kind, child.returncode, self.text(path))

    def judge(self, number, kind, code, text):
        if kind in ("quick", "slow") and (
                code != 0 or f"/job:chief/task:0: {SUM}" not in text):
            self.problem(f"run {number} ({kind}) ended with {code}, expected 0 and the "
                         f"sum {SUM}: somebody has not waited, or has heard of another "
                         f"run's end")
        if kind == "failing" and (code != 1 or "was told to fail" not in text):
            self.problem(f"run {number} (failing) ended with {code}, expected 1")
        self.counts[kind] += 1
        self.counts["runs"] += 1

    # ---- all of them ----

    def check(self):
        seen = self.look()
        states = [run["state"] for run in seen["runs"]]
        names = {run["name"] for run in seen["runs"]}
        if len(names) != len(states) or len(states) > HISTORY:
            self.problem(f"the store has {len(states)} runs of {len(names)} names")
        # One that was killed may not have come to the store, or just to its end.
        if states and self.states[-1] != "abandoned" and states[-1] != self.states[-1]:
            self.problem(f"the last run is {states[-1]}, expected {self.states[-1]}")
        for word in ("ended", "failed"):
            if states.count(word) < self.states.count(word) and len(states) < HISTORY:
                self.problem(f"{states.count(word)} runs have {word}, expected "
                             f"{self.states.count(word)}")
        # What the functions of a run that was killed came to is there until the next one.
        keys = seen["keys"] - (seen["runs"][-1]["results"] if seen["runs"] else 0)
        if keys != self.keys:
            self.problem(f"{keys} keys are there, expected {self.keys}")

    def run(self, ends):
        kinds = [kind for kind, (weight, _) in KINDS.items() for _ in range(weight)]
        if self.options.runs == "etcd":
            self.start_etcd()
        try:
            for number in range(RUNS):
                if number > 1 and time.monotonic() > ends:
                    break
                kind = self.random.choice(kinds) if number > 0 else "failing"
                self.run_one(number, kind)
                self.states.append(KINDS[kind][1])
                self.check()
                if self.problems:
                    break
        finally:
            if self.etcd is not None:
                self.etcd.kill()
                self.etcd.wait()
