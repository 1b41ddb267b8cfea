"""One round of scripts/chaos: a cluster of real processes that count, and what happens to
them."""

import collections
import heapq
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

from chaos_relays import HOST, Relay, Relays, rest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORTS = range(20000, 32000)     # below those that the system gives out by itself
SILENCE_MS = 2000               # for the tasks; stops and stalls are shorter and longer
SETTLE_S = SILENCE_MS / 1000 + 3
KNOWN_S = SILENCE_MS / 1000 + 0.5   # a silent server that goes on is known to be one
ROUND_LIMIT_S = 180             # without faults a round takes some seconds
END_LIMIT_S = 20                # for the tasks, once the chief has ended
TTL_S = 3                       # after which a task that is silent has no address
FIND_S = TTL_S + 8              # until a task that comes anew is known, and knows all
WORKERS_KEPT = 2                # of those who come and go, the first never go for good
WORKERS_MAX = 12                # that there are at once
LIVES_MAX = 64                  # workers of a round, who have been there or are


# ---- Processes ----


class Task:
    def __init__(self, cluster, job, index):
        self.cluster = cluster
        self.job = job
        self.index = index
        self.name = f"{job}-{index}"
        self.relay = self.make_relay()
        self.process = None
        self.stopped = False
        self.started = 0.0
        self.troubled = 0.0         # when a fault of it was over
        self.output = cluster.folder / f"{self.name}.out"
        self.errors = cluster.folder / f"{self.name}.err"

    def make_relay(self):
        """Where nobody knows the address beforehand there is nothing to relay."""
        if self.cluster.options.resolver is not None:
            return Relay(0, 0)
        return self.cluster.relays.add(next(self.cluster.ports), next(self.cluster.ports))

    def start(self):
        command = [str(word) for word in self.command()]
        with open(self.output, "ab") as out, open(self.errors, "ab") as err:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env=self.cluster.environment, start_new_session=True)
        self.stopped = False
        self.started = time.monotonic()

    def command(self):
        c = self.cluster
        command = [c.options.build / "muster", "node", *c.whereabouts(self),
                   "--task", f"{self.job}:{self.index}",
                   "--bind", f"tcp://{HOST}:{self.relay.target}",
                   "--heartbeat-ms", "200", "--silence-ms", str(SILENCE_MS),
                   "--log-file", c.folder / f"{self.name}.log"] + c.flags_of(self)
        for setting in c.options.set:
            command += ["--set", setting]
        return command + c.options.flags

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        """To the process that we started, while we have not waited for it."""
        if self.is_up():
            os.kill(self.process.pid, number)
        self.stopped = number == signal.SIGSTOP

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def wait_stopped(self):
        while self.is_up():
            stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
            if stat.rsplit(")", 1)[1].split()[0] in "TtZX":
                return
            rest(0.001)


class Etcd(Task):
    """One server, reached through a relay."""

    def __init__(self, cluster):
        super().__init__(cluster, "etcd", 0)
        self.peer = next(cluster.ports)

    def make_relay(self):
        return self.cluster.relays.add(next(self.cluster.ports), next(self.cluster.ports))

    def command(self):
        at = [f"http://{HOST}:{port}" for port in (self.relay.target, self.peer)]
        return ["etcd", "--data-dir", self.cluster.files / "etcd",
                "--listen-client-urls", at[0], "--advertise-client-urls", at[0],
                "--listen-peer-urls", at[1], "--initial-advertise-peer-urls", at[1],
                "--initial-cluster", f"default={at[1]}", "--logger", "zap",
                "--log-level", "error",
                "--log-outputs", self.cluster.folder / "etcd-0.log"]


class Cluster:
    """One round: a counter from 0 to the number of closures."""

    RESULT = re.compile(r"counter: the counter is (-?\d+) after (\d+) closures")
    PROGRESS = re.compile(r"counter: (\d+) of \d+ closures, (\d+) retried")
    PAUSE = re.compile(r"the longest pause (\d+) ms")

    def __init__(self, options, folder, seed):
        self.options = options
        self.folder = folder
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.problems = []
        self.later = []             # heap of (when, order, function)
        self.order = 0
        self.result = None
        self.sum = options.closures     # that the counter is to come to
        self.exit_code = 0          # of all tasks
        self.files = folder         # where journals are, and what etcd has
        self.chief_lives = []       # retries that each life of the chief has told
        self.pauses = {}            # the longest, by what was done to a server before
        self.server_fault = "nothing"
        self.turn = 0               # whose server it is
        self.relays = Relays()
        self.ports = iter(random.SystemRandom().sample(PORTS, 2 * options.tasks + 3))
        folder.mkdir()
        self.chief = Task(self, "chief", 0)
        self.workers = [Task(self, "worker", i) for i in range(options.workers)]
        self.servers = [Task(self, "ps", i) for i in range(options.ps)]
        has_etcd = "etcd" in (options.service, options.resolver, options.mixed)
        self.etcd = [Etcd(self)] if has_etcd else []
        self.tasks = self.etcd + [self.chief] + self.servers + self.workers
        self.kept = self.workers[:WORKERS_KEPT]     # the others come and go
        self.left = []              # who went for good
        self.found = folder / "tasks"
        self.found.mkdir()
        self.spec = folder / "cluster.json"
        self.spec.write_text(json.dumps(
            {job: [f"{HOST}:{t.relay.port}" for t in self.tasks if t.job == job]
             for job in ("chief", "ps", "worker")}))
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("MUSTER_") and name != "TF_CONFIG"}
        self.environment.setdefault("ASAN_OPTIONS", "abort_on_error=1")
        self.environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        self.environment.setdefault(
            "LSAN_OPTIONS", f"suppressions={ROOT}/tests/lsan.supp:print_suppressions=0")

    def expected(self, _):
        return self.kept

    def whereabouts(self, task):
        """How a task gets to know of the others."""
        if self.options.resolver is None:
            return ["--cluster", self.spec]
        source = (f"endpoints=http://{HOST}:{self.etcd[0].relay.port}"
                  if self.options.resolver == "etcd" else f"path={self.found}")
        kept = len(self.expected(task))
        workers = f",worker={kept}" if kept else ""
        flags = ["--resolver", self.options.resolver, "--resolve-ms", "90000"]
        for setting in (source, f"ttl={TTL_S}",
                        f"tasks=chief=1,ps={len(self.servers)}{workers}"):
            flags += ["--resolver-set", setting]
        return flags

    def flags_of(self, task):
        flags = ["--plugin", self.options.build / "examples/counter.so",
                 "--set", f"closures={self.options.closures}"]
        flags += ["--backups", str(int(self.options.backups))]
        return flags + (["--journal", self.files / "journal"] if task is self.chief
                        else [])

    def after(self, seconds, function):
        self.order += 1
        heapq.heappush(self.later, (time.monotonic() + seconds, self.order, function))

    def note(self, words):
        with open(self.folder / "faults.log", "a") as log:
            now = time.time()
            log.write(time.strftime("%H:%M:%S", time.gmtime(now)) +
                      f".{int(now * 1000) % 1000:03d} {words}\n")

    # ---- Faults ----

    def restart_later(self, task):
        delay = self.random.uniform(0, 2)
        if task in self.etcd:
            delay *= 3
        again = self.random.uniform(0, 0.6)
        again = again if task is self.chief and again < 0.2 else 0

        def start():
            if task in self.left:
                return
            self.note(f"start {task.name}")
            task.start()
            # A chief is never as busy with its journal as just after its start.
            if again:
                self.after(again, self.kill_chief)
        self.after(delay, start)

    def kill_one(self, pool, what="kills"):
        up = [t for t in pool if t.is_up()]
        if up:
            task = self.random.choice(up)
            self.note(f"kill {task.name}")
            task.kill()
            self.counts[what] += 1
            self.restart_later(task)

    def kill_worker(self):
        self.kill_one(self.workers)

    def is_whole(self):
        """Whether each partition has a copy, as the chief says."""
        if not all(task.is_up() for task in self.servers + [self.chief]):
            return False
        status = subprocess.run(
            [self.options.build / "muster", "status", "--output", "json", "--address",
             f"tcp://{HOST}:{self.chief.relay.target}", *self.options.flags],
            env=self.environment, capture_output=True, check=False)
        try:
            partitions = json.loads(status.stdout)["partitions"]
        except (ValueError, KeyError):
            return False
        return partitions["placed"] > 0 and not (partitions["degraded"] or
                                                 partitions["without_primary"])

    def are_servers_well(self):
        """Whether the last fault of one has been over for so long that the chief knows
        what has come of it."""
        return not any(t.stopped or t.relay.stalls or t.relay.refuses or
                       time.monotonic() - t.troubled < KNOWN_S for t in self.servers)

    def harm_server(self):
        """One at a time: nobody promises more. The next in turn."""
        if not self.are_servers_well() or not self.is_whole():
            return
        server = self.servers[self.turn % len(self.servers)]
        self.turn += 1
        self.server_fault = self.random.choice(self.options.harms)
        harm = {"kill": self.kill_one, "stop": self.stop_one, "cut": self.cut_one}
        harm[self.server_fault]([server], f"server {self.server_fault}s")

    def stop_task(self):
        # Workers mostly; a stopped chief or server holds up everybody.
        self.stop_one(self.workers * 4 + self.servers + [self.chief])

    def stop_one(self, pool, what="stops"):
        pool = [t for t in pool if t.is_up() and not t.stopped]
        if not pool:
            return
        task = self.random.choice(pool)
        seconds = min(8, 0.1 * 80 ** self.random.random())
        self.note(f"stop {task.name} for {seconds:.3f} s")
        task.signal(signal.SIGSTOP)
        self.counts[what] += 1
        process = task.process

        def go_on():
            if task.process is process and task.stopped:
                self.note(f"go on {task.name}")
                task.signal(signal.SIGCONT)
                task.troubled = time.monotonic()
        self.after(seconds, go_on)

    def cut(self):
        self.cut_one(self.servers * 2 + self.workers + [self.chief])

    def cut_one(self, pool, what="cuts"):
        pool = [t for t in pool if not t.relay.stalls and not t.relay.refuses]
        if not pool:
            return
        task = self.random.choice(pool)
        kind = self.random.choice(("drop", "refuse", "stall"))
        seconds = 0 if kind == "drop" else min(8, 0.1 * 80 ** self.random.random())
        self.note(f"cut {task.name}: {kind} for {seconds:.3f} s")
        self.counts[what] += 1
        if kind == "stall":
            task.relay.stalls = True
        else:
            task.relay.refuses = kind == "refuse"
            task.relay.drops += 1

        def heal():
            task.relay.stalls = task.relay.refuses = False
            task.troubled = time.monotonic()
        self.after(seconds, heal)

    def kill_chief(self):
        """Not once it has counted: from then on it ends the others."""
        if not self.chief.is_up() or self.chief.stopped:
            return
        self.chief.signal(signal.SIGSTOP)
        self.chief.wait_stopped()
        self.read_chief()
        if self.result is not None or not self.chief.is_up():
            self.chief.signal(signal.SIGCONT)
            return
        self.note("kill chief-0")
        self.chief.kill()
        self.chief_lives.append(0)
        self.counts["chief restarts"] += 1
        self.restart_later(self.chief)

    def come(self):
        """A worker that nobody has heard of."""
        count = len(self.workers) + len(self.left)
        if len(self.workers) >= WORKERS_MAX or count >= LIVES_MAX:
            return
        task = Task(self, "worker", count)
        self.note(f"come {task.name}")
        self.counts["came"] += 1
        self.workers.append(task)
        self.tasks.append(task)
        task.start()

    def leave(self):
        """By itself, as it is told to, or without a word."""
        pool = [t for t in self.workers if t not in self.kept and not t.stopped]
        if not pool:
            return
        task = self.random.choice(pool)
        number = self.random.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGKILL))
        self.note(f"leave {task.name} by {number.name}")
        self.counts["left"] += 1
        self.workers.remove(task)
        self.tasks.remove(task)
        self.left.append(task)
        task.signal(number)
        task.leaves = (number, time.monotonic())

    def folder_goes(self):
        away = self.folder / "away"
        if away.exists():
            return
        seconds = min(8, 0.1 * 80 ** self.random.random())
        self.note(f"the folder is away for {seconds:.3f} s")
        self.counts["cuts"] += 1
        self.found.rename(away)
        self.after(seconds, self.folder_comes)

    def folder_comes(self):
        away = self.folder / "away"
        if away.exists():
            away.rename(self.found)

    def source_kinds(self):
        """What happens to that by which the tasks find each other."""
        if self.options.resolver == "directory":
            return [self.folder_goes] * 2
        if self.options.resolver == "etcd":
            return ([lambda: self.kill_one(self.etcd, "etcd kills")] +
                    [lambda: self.stop_one(self.etcd)] +
                    [lambda: self.cut_one(self.etcd)])
        return []

    def kinds(self):
        if self.options.backups and self.options.servers_only:
            return [self.harm_server]
        if self.options.backups:
            return ([self.kill_worker, self.harm_server] * 3 +
                    [lambda: self.stop_one(self.workers),
                     lambda: self.cut_one(self.workers)] * 2)
        kinds = [self.kill_worker] * 5 + [self.stop_task] * 4
        if self.options.resolver is None:
            kinds += [self.cut] * 5
        else:
            kinds += self.source_kinds() + [self.come] * 2 + [self.leave] * 2
        if self.options.chief_restart:
            kinds += [self.kill_chief] * 3
        return kinds

    def fault(self):
        self.random.choice(self.kinds())()
        self.after(self.random.uniform(0.05, 1), self.fault)

    def heal(self):
        """What was stopped goes on, what was cut off is connected again."""
        self.later.clear()
        self.folder_comes()
        now = time.monotonic()
        for task in self.tasks:
            if task.relay.stalls or task.relay.refuses:
                task.relay.stalls = task.relay.refuses = False
                task.troubled = now
            if task.stopped:
                task.signal(signal.SIGCONT)
                task.troubled = now

    def revive(self):
        """What is dead is started at once."""
        for task in self.tasks:
            if task.process is None:
                task.start()

    # ---- A round ----

    def read_chief(self):
        text = self.chief.output.read_text(errors="replace")
        found = self.PROGRESS.findall(text[self.chief_read:])
        if found:
            self.chief_lives[-1] = max(self.chief_lives[-1], int(found[-1][1]))
        self.note_pause(self.PAUSE.findall(text[self.chief_read:]))
        self.chief_read = text.rfind("\n") + 1
        result = self.RESULT.search(text)
        if result is not None:
            self.result = (int(result.group(1)), int(result.group(2)))

    def note_pause(self, told):
        longest_ms = max(map(int, told), default=0)
        if longest_ms > max(self.pauses.values(), default=0):
            self.pauses[self.server_fault] = longest_ms

    def watch(self):
        """Whether a process that nobody killed has ended: the round is over then."""
        self.read_chief()
        for task in self.tasks:
            if task.process is not None and task.process.poll() is not None:
                return True
        return self.result is not None

    def count(self, ends):
        """`ends` is when faults are over at the latest."""
        limit = time.monotonic() + ROUND_LIMIT_S
        healed = False
        self.after(self.random.uniform(0, 1), self.fault)
        while not self.watch():
            now = time.monotonic()
            if now >= min(ends, limit - ROUND_LIMIT_S / 2) and not healed:
                healed = True
                self.note("everything is healed")
                self.heal()
                self.revive()
            if now >= limit:
                self.problems.append(f"no end after {ROUND_LIMIT_S} s")
                return
            while self.later and self.later[0][0] <= now:
                heapq.heappop(self.later)[2]()
            rest()

    def run(self, ends):
        self.chief_read = 0
        self.chief_lives = [0]
        self.relays.start()
        try:
            for task in self.tasks:
                task.start()
            self.count(ends)
            self.heal()
            self.note("the end")
            self.check_ends()
            self.check_words()
        finally:
            self.stop()

    def stop(self):
        for task in self.tasks + self.left:
            if task.is_up():
                task.kill()
        self.relays.ends = True
        self.relays.join()

    # ---- Checks ----

    def may_be_late(self, task, chief_end):
        """Whoever was not connected when the chief ended was not told of it."""
        moments = (task.started, task.troubled, self.chief.troubled, self.chief.started)
        settle = SETTLE_S if self.options.resolver is None else SETTLE_S + FIND_S
        return chief_end - max(moments) < settle

    def wait(self, task, limit):
        while task.is_up() and time.monotonic() < limit:
            rest()
        return not task.is_up()

    def check_end(self, task, chief_end):
        if task.process is None:
            return
        late = self.may_be_late(task, chief_end)
        if not self.wait(task, chief_end + (SETTLE_S if late else END_LIMIT_S)):
            self.counts["late"] += late
            if not late:
                self.problems.append(f"{task.name} did not end")
            task.signal(signal.SIGTERM)
            if not self.wait(task, time.monotonic() + END_LIMIT_S):
                self.problems.append(f"{task.name} did not end on SIGTERM")
            elif task.process.returncode not in (0, 128 + signal.SIGTERM):
                self.problems.append(f"{task.name} ended with {task.process.returncode} "
                                     "on SIGTERM")
        elif task.process.returncode != self.exit_code:
            self.problems.append(f"{task.name} ended with {task.process.returncode}, "
                                 f"expected {self.exit_code}")

    def check_left(self):
        """Who is told to leave does so within the grace that it has."""
        for task in self.left:
            if task.process is None:
                continue
            number, since = task.leaves
            if not self.wait(task, since + END_LIMIT_S):
                self.problems.append(f"{task.name} did not leave")
                continue
            code = task.process.returncode
            # Who has only just begun has no handler yet; who could finish ends with 0.
            if code not in ((-number,) if number == signal.SIGKILL
                            else (-number, 128 + number, 0)):
                self.problems.append(f"{task.name} left with {code} on {number.name}")

    def check_etcd(self):
        for task in self.etcd:
            if task.process is not None and not task.is_up():
                self.problems.append(f"{task.name} ended with {task.process.returncode}")

    def check_ends(self):
        self.check_etcd()
        if not self.wait(self.chief, time.monotonic() + END_LIMIT_S):
            self.problems.append("the chief did not end")
        chief_end = time.monotonic()
        for task in self.tasks:
            if task not in self.etcd:
                self.check_end(task, chief_end)
        self.check_left()

    def check_words(self):
        self.check_result()
        self.check_silence()

    def check_result(self):
        self.read_chief()
        text = self.chief.output.read_text(errors="replace")
        last = re.findall(r"closures, (\d+) retried", text)
        if last:
            self.chief_lives[-1] = int(last[-1])
        self.counts["retries"] += sum(self.chief_lives)
        if self.result is None:
            self.problems.append("no counter was told")
        elif self.result != (self.sum, self.sum):
            self.problems.append(f"the counter is {self.result[0]} instead of {self.sum}")
        else:
            self.counts["closures"] += self.sum

    def check_silence(self, chief_says=""):
        for task in self.tasks + self.left:
            said = task.errors.read_text(errors="replace") if task.errors.exists() else ""
            expected = chief_says if task is self.chief else ""
            if said != expected and task not in self.etcd:
                self.problems.append(f"{task.name} said: {said[:2000]}")
