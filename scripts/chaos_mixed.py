"""Rounds of scripts/chaos --mixed: a job that is started again and again on the same
files, with functions that hang among those that do not."""

import collections
import json
import os
import re
import subprocess
import time

from chaos_cluster import Cluster
from chaos_relays import HOST, rest

HISTORY = 17                    # runs that a store shows, with the present one
HOLD_S = 20                     # for a store to be let go of by those who were killed
LOOK_MS = 15000                 # for one look at it
KILL_S = (0.3, 8)               # when a job that is to be killed is killed
FREEZE_S = (0.1, 1.5)           # and a worker, one of whose functions never ends
STORE_BYTES_MAX = 1 << 20       # of a journal of the service
JOURNAL_BYTES_MAX = 8 << 20     # and of a chief
FAILURE = "mixed: told to fail in the end\n"

# Closures of a round beside the quick ones: at least, and at most.
CLOSURES = {"slow": (0, 24), "stumble": (0, 6), "freeze": (0, 2), "hang": (0, 2)}

# What a round is like, how often; and of one that comes to its end what the store says.
KINDS = {"ended": 4, "failed": 1, "killed": 3}


class Past:
    """What the starts before left behind."""

    def __init__(self, folder):
        self.files = folder / "files"
        self.files.mkdir()
        self.starts = 0
        self.run = None         # the present one of the store, as it was shown
        self.number = 0
        self.asked = {}         # sums by their keys, which may be there
        self.kept = set()       # keys that are
        self.states = {}        # of runs by their names, which have come to their ends
        self.bytes = collections.Counter()  # that each file had at most


class Mixed(Cluster):
    """One start of the job; the files are those of all rounds."""

    RESULT = re.compile(r"mixed: the counter is (-?\d+) after (\d+) closures")
    PROGRESS = re.compile(r"mixed: (\d+) of \d+ closures, (\d+) retried")
    KEPT = re.compile(r"mixed: kept:(.*)\n")

    def __init__(self, options, folder, seed):
        super().__init__(options, folder, seed)
        if options.past is None:
            options.past = Past(folder.parent)
        self.past = options.past
        self.files = self.past.files
        self.past.starts += 1
        self.start = self.past.starts
        self.mix = {what: self.random.randint(*range_)
                    for what, range_ in CLOSURES.items()}
        self.mix["hang"] = min(self.mix["hang"], options.workers - 1)
        self.sum = options.closures + sum(self.mix.values()) - self.mix["hang"]
        self.outstanding = self.random.choice((0, 64))
        self.threads = self.random.choice((1, 1, 2))
        self.kind = self.random.choices(list(KINDS), KINDS.values())[0]
        self.exit_code = 1 if self.kind == "failed" else 0
        self.killed = False
        self.trace = folder / "frozen"
        self.frozen = {}            # when whose process is to be killed, by lines of it
        self.hosts = [self.chief] + (self.servers if self.etcd else [])
        self.store = f"journal:{self.files / 'store'}"
        if self.etcd:
            self.store = f"etcd:http://{HOST}:{self.etcd[0].relay.port}"
        self.run_name = self.choose_run()
        self.past.asked[f"kept/{self.start}"] = self.sum

    # ---- What is started ----

    def choose_run(self):
        """None: whoever holds the store says which one. One that was killed may be gone
        on with, by all new processes."""
        present = self.past.run
        names = [f"start-{self.start}"] * 2 + [None] * 2
        if present is not None and present not in self.past.states:
            names += [present] * 2
        return self.random.choice(names)

    def flags_of(self, task):
        settings = [f"start={self.start}", f"quick={self.options.closures}",
                    f"outstanding={self.outstanding}", f"fails={self.exit_code}",
                    f"trace={self.trace}"]
        settings += [f"{what}={count}" for what, count in self.mix.items()]
        flags = ["--service-hosts", ",".join(f"{t.job}:{t.index}" for t in self.hosts),
                 "--suspect-ms", "1500", "--dead-ms", "3000", "--lease-ms", "2000",
                 "--threads", str(self.threads),
                 "--plugin", self.options.build / "examples/mixed.so"]
        for setting in settings:
            flags += ["--set", setting]
        if self.run_name is not None:
            flags += ["--run", self.run_name]
        if task in self.hosts:
            flags += ["--store", self.store]
        return flags + (["--journal", self.files / "journal"] if task is self.chief
                        else [])

    # ---- Faults ----

    def kinds(self):
        kinds = super().kinds()
        if self.etcd:
            kinds += [lambda: self.kill_one(self.etcd, "etcd kills"),
                      lambda: self.stop_one(self.etcd), lambda: self.cut_one(self.etcd)]
        return kinds

    def kill_all(self):
        """As when the machine dies; etcd's is another one, and dies half of the times."""
        spared = self.etcd if self.random.random() < 0.5 else []
        self.note("kill all")
        for task in self.tasks:
            if task.is_up() and task not in spared:
                task.kill()
        self.killed = True

    def read_frozen(self):
        """Each line: a closure's name, the worker's index, the process."""
        if not self.trace.exists():
            return
        for line in self.trace.read_text().splitlines()[len(self.frozen):]:
            self.note(f"frozen: {line}")
            self.frozen[line] = time.monotonic() + self.random.uniform(*FREEZE_S)
            self.counts["frozen"] += 1

    def kill_frozen(self, now):
        """Nothing else ends them."""
        for line, when in self.frozen.items():
            pid = int(line.split()[2])
            task = next((w for w in self.workers if w.is_up() and w.process.pid == pid),
                        None)
            if task is not None and when <= now:
                self.note(f"kill {task.name}, which is frozen")
                task.kill()
                self.restart_later(task)

    def watch(self):
        self.read_frozen()
        self.kill_frozen(time.monotonic())
        return self.killed or super().watch()

    def count(self, ends):
        if self.kind == "killed":
            self.after(self.random.uniform(*KILL_S), self.kill_all)
        super().count(ends)
        if self.kind == "killed" and not self.killed:
            self.kind = "ended"         # before it was to be killed

    # ---- Checks ----

    def check_ends(self):
        if self.killed:
            return
        self.read_frozen()
        self.kill_frozen(float("inf"))      # a function of one that was cut off, too
        super().check_ends()

    def check_words(self):
        self.check_keys()
        self.check_silence(FAILURE if self.exit_code and not self.killed else "")
        if not self.killed:
            self.check_result()
            for what in ("slow", "stumble", "hang"):
                self.counts[what] += self.mix[what]
        self.counts["killed" if self.killed else self.kind] += 1
        self.check_store()
        self.check_sizes()

    def check_keys(self):
        """What each life of the chief has seen of those before it."""
        text = self.chief.output.read_text(errors="replace")
        for words in self.KEPT.findall(text):
            seen = dict(word.split("=") for word in words.split())
            for key in self.past.kept - set(seen):
                self.problems.append(f"key {key} is lost")
            for key, value in seen.items():
                if value != str(self.past.asked.get(key)):
                    self.problems.append(f"key {key} is {value}, expected "
                                         f"{self.past.asked.get(key)}")
        if self.result is not None:
            self.past.kept.add(f"kept/{self.start}")

    def look(self):
        """What the store has, once nobody holds it any more."""
        for task in self.etcd:
            if not task.is_up():
                task.start()
        command = [self.options.build / "muster", "store", "ls", "--store", self.store,
                   "-o", "json", "--timeout-ms", str(LOOK_MS)]
        ends = time.monotonic() + HOLD_S
        while True:
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=LOOK_MS / 1000 + HOLD_S)
            if done.returncode == 0:
                return json.loads(done.stdout)
            if time.monotonic() > ends:
                self.problems.append(f"the store is not shown: {done.stderr.strip()}")
                return None
            rest(0.05)

    def check_store(self):
        if not self.etcd and not (self.files / "store").exists():
            return
        seen = self.look()
        if seen is None:
            return
        keys = len(self.past.asked)
        if not len(self.past.kept) <= seen["keys"] <= keys:
            self.problems.append(f"{seen['keys']} keys are there, of {keys} that may be")
        self.check_runs(seen["runs"])

    def check_runs(self, runs):
        names = [run["name"] for run in runs]
        if len(set(names)) != len(names) or len(names) > HISTORY:
            self.problems.append(f"the store has {len(names)} runs: {names}")
        for run in runs[:-1]:
            self.check_former(run)
        if runs:
            self.check_present(runs[-1])
        elif not self.killed:
            self.problems.append("the store has no run")
        self.past.states.update({run["name"]: run["state"] for run in runs
                                 if run["state"] != "running"})
        self.past.run = names[-1] if names else None
        self.past.number = runs[-1]["number"] if runs else 0

    def check_former(self, run):
        expected = self.past.states.get(run["name"], "abandoned")
        if run["state"] != expected:
            self.problems.append(f"run {run['name']} is {run['state']}, expected "
                                 f"{expected}")

    def check_present(self, run):
        """Each start goes on with the present run or begins another, and it does so once;
        one that was killed at once may have done neither."""
        begins = (self.run_name != self.past.run if self.run_name is not None else
                  self.past.run is None or self.past.run in self.past.states)
        number = self.past.number + begins
        if run["number"] != number and not (self.killed and
                                            run["number"] == self.past.number):
            self.problems.append(f"run {run['name']} is number {run['number']}, expected "
                                 f"{number}")
        elif run["number"] == number and self.run_name not in (None, run["name"]):
            self.problems.append(f"the present run is {run['name']}, expected "
                                 f"{self.run_name}")
        if not self.killed and run["state"] != self.kind:
            self.problems.append(f"run {run['name']} is {run['state']}, expected "
                                 f"{self.kind}")

    def check_sizes(self):
        for name, most in (("store", STORE_BYTES_MAX), ("journal", JOURNAL_BYTES_MAX)):
            path = self.files / name
            size = os.stat(path).st_size if path.exists() else 0
            self.past.bytes[name] = max(self.past.bytes[name], size)
            if size > most:
                self.problems.append(f"{path} has {size} bytes, expected at most {most}")
