"""A round of scripts/chaos --service: the coordination service."""

import collections
import signal
import time

from chaos_cluster import END_LIMIT_S, Cluster
from chaos_relays import HOST

SPARED = 2      # workers that are not killed, with --actors


class Trace:
    """What the workers of examples/rounds have noted, line after line of one file: each
    change and each look before it was asked for and once it was answered, what barriers
    said, and what was there at the end."""

    def __init__(self, path, workers):
        self.workers = workers
        self.asked = collections.Counter()
        self.acknowledged = collections.defaultdict(list)
        self.refused = collections.Counter()
        self.final = collections.defaultdict(set)
        self.met = collections.defaultdict(lambda: collections.defaultdict(set))
        self.errors = collections.Counter()
        self.alone = 0
        self.largest = collections.Counter()    # number that was acknowledged
        self.least = {}                         # that a look must see
        self.skipped = collections.Counter()    # numbers that only one worker can take
        self.wrong = []
        for line in path.read_text().splitlines():
            worker, what, rest_of_line = line.split(" ", 2)
            getattr(self, "note_" + what)(int(worker), *rest_of_line.split(" ", 1))

    def note_ask(self, _, key):
        self.asked[key] += 1

    def note_ack(self, _, key, number):
        number = int(number)
        self.acknowledged[key].append(number)
        self.largest[key] = max(self.largest[key], number)
        if key.startswith("own/"):
            self.check_own(key, number)

    def check_own(self, key, number):
        """What one worker alone changes goes on by one, but for what nobody knows of."""
        acknowledged = len(self.acknowledged[key])
        skipped = number - acknowledged
        if not self.skipped[key] <= skipped <= self.asked[key] - acknowledged:
            self.wrong.append(f"{key} went to {number}: {acknowledged} acknowledged, "
                              f"{self.asked[key] - acknowledged} uncertain")
        self.skipped[key] = skipped

    def note_look(self, worker, key):
        self.least[worker] = self.largest[key]

    def note_saw(self, worker, key, number):
        if int(number) < self.least[worker]:
            self.wrong.append(f"worker {worker} saw {key} as {number}, after "
                              f"{self.least[worker]} was acknowledged")

    def note_no(self, _, key):
        self.refused[key] += 1

    def note_final(self, _, key, number):
        self.final[key].add(int(number))

    def note_met(self, worker, name, outcome):
        """A limit that was over while no host was there is nobody else's outcome."""
        if "was not passed within" in outcome:
            self.alone += 1
        else:
            self.met[name][outcome].add(worker)

    def note_error(self, _, name, words):
        self.errors[f"{name} {words}"] += 1

    def problems(self, rounds):
        yield from self.wrong
        for key, asked in sorted(self.asked.items()):
            yield from self.problems_of(key, asked)
        for name, outcomes in self.met.items():
            if len(outcomes) > 1:
                yield f"barrier {name} had several outcomes: {dict(outcomes)}"
        for number in range(rounds):
            met = self.met[f"round-{number}"]["0 "]
            if len(met) != self.workers:
                yield f"barrier round-{number} was met by {sorted(met)} alone"

    def problems_of(self, key, asked):
        numbers = self.acknowledged[key]
        most = asked - self.refused[key]
        if len(self.final[key]) != 1:
            yield f"{key} had several values at the end: {sorted(self.final[key])}"
            return
        final, = self.final[key]
        if not len(numbers) <= final <= most:
            yield (f"{key} is {final}, with {len(numbers)} acknowledged and "
                   f"{most - len(numbers)} uncertain")
        if len(set(numbers)) != len(numbers) or max(numbers, default=0) > final:
            twice = [n for n, count in collections.Counter(numbers).items() if count > 1]
            yield f"{key}: numbers given twice: {twice}, the largest {max(numbers)}"


class Service(Cluster):
    """One round: so many of examples/rounds, with all workers at their barriers."""

    def __init__(self, options, folder, seed):
        super().__init__(options, folder, seed)
        self.hosts = [self.chief]
        self.store = f"journal:{folder}/store"
        if options.service == "etcd":
            self.hosts += self.servers
            self.store = f"etcd:http://{HOST}:{self.etcd[0].relay.port}"
        self.trace = folder / "trace"

    def flags_of(self, task):
        flags = ["--service-hosts", ",".join(f"{t.job}:{t.index}" for t in self.hosts),
                 "--suspect-ms", "1500", "--dead-ms", "3000", "--lease-ms", "2000",
                 "--plugin", self.options.build / "examples/rounds.so",
                 "--set", f"rounds={self.options.rounds}", "--set", f"trace={self.trace}",
                 "--set", f"workers={self.options.workers}",
                 "--set", f"tallies={self.options.actors}"]
        return flags + (["--store", self.store] if task in self.hosts else [])

    def kill_worker(self):
        self.kill_one(self.workers[SPARED if self.options.actors else 0:])

    def expected(self, task):
        """A host knows all workers. A worker that comes back does not wait for those who
        have finished."""
        return self.workers if task in self.hosts else []

    def kill_host(self):
        """Nor does a host: it is not killed once a worker may have."""
        hosts = [t for t in self.hosts if t.is_up() and not t.stopped]
        if not hosts or self.options.resolver is None:
            self.kill_one(self.hosts, "host kills")
            return
        for host in hosts:
            host.signal(signal.SIGSTOP)
            host.wait_stopped()
        has_final = self.trace.exists() and " final " in self.trace.read_text()
        if not has_final:
            self.kill_one(hosts, "host kills")
        for host in hosts:
            host.signal(signal.SIGCONT)

    def kinds(self):
        everybody = self.workers + self.hosts * 2 + self.etcd
        relayed = everybody if self.options.resolver is None else self.etcd
        kinds = ([self.kill_worker] * 4 +
                 [self.kill_host] * 3 +
                 [lambda: self.kill_one(self.etcd, "etcd kills")] * len(self.etcd) +
                 [lambda: self.stop_one(everybody)] * 4 +
                 [lambda: self.cut_one(relayed)] * (4 if relayed else 0))
        if self.options.resolver == "directory":
            kinds += [self.folder_goes] * 2
        return kinds

    def watch(self):
        """Over when all workers have ended, or somebody has whom nobody killed."""
        ended = [t for t in self.tasks
                 if t.process is not None and t.process.poll() is not None]
        return (any(t not in self.workers or t.process.returncode != 0 for t in ended) or
                all(w in ended for w in self.workers))

    def check_ends(self):
        """Who serves ends when it is told to."""
        for task in self.tasks:
            if task in self.workers:
                if task.process is not None and task.process.poll() != 0:
                    self.problems.append(f"{task.name}: {task.process.poll()}")
            elif not task.is_up():
                if task.process is not None:
                    self.problems.append(f"{task.name}: {task.process.poll()}")
            else:
                task.signal(signal.SIGTERM)
                if not self.wait(task, time.monotonic() + END_LIMIT_S):
                    self.problems.append(f"{task.name} did not end on SIGTERM")

    def check_words(self):
        if not self.trace.exists():
            self.problems.append("no worker has begun")
            return
        trace = Trace(self.trace, self.options.workers)
        self.problems += trace.problems(self.options.rounds)
        self.counts["changes"] += sum(len(n) for n in trace.acknowledged.values())
        self.counts["kept changes"] += sum(len(n) for key, n in trace.acknowledged.items()
                                           if "tally" in key)
        self.counts["uncertain"] += sum(
            trace.asked[key] - trace.refused[key] - len(trace.acknowledged[key])
            for key in trace.asked)
        self.counts["barriers"] += len(trace.met)
        self.counts["failed barriers"] += sum("0 " not in outcomes
                                              for outcomes in trace.met.values())
        self.counts["limits without a host"] += trace.alone
        self.counts["errors"] += sum(trace.errors.values())
        for task in self.workers + self.servers + [self.chief]:
            said = task.errors.read_text(errors="replace") if task.errors.exists() else ""
            if said:
                self.problems.append(f"{task.name} said: {said[:2000]}")
