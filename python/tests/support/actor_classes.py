"""Classes of actors for tests."""

import asyncio
import os
import threading
import time

import muster


def one():
    return 1


class Unloadable:
    """Its pickle raises where it is loaded."""

    def __reduce__(self):
        return (_raise, ())


def _raise():
    raise RuntimeError("not here")


class Counter:
    """Counts."""

    def __init__(self, n=0, step=1):
        if n < 0:
            raise ValueError("n is below 0")
        self.n = n
        self.step = step
        self._items = []
        self._running = 0
        self._lock = threading.Lock()
        self._made = 0
        self._closed = False

    def add(self, number=1):
        """Add a number."""
        self.n += number * self.step
        return self.n

    def append(self, item):
        self._items.append(item)
        return len(self._items)

    def items(self):
        return self._items

    def echo(self, value):
        return value

    def size(self, value):
        return len(value)

    def pid(self):
        return os.getpid()

    def parent(self):
        return os.getppid()

    def where(self):
        run = muster.current_run()
        return run.worker, run.worker_type

    def fail(self, words):
        raise KeyError(words)

    async def fail_async(self, words):
        await asyncio.sleep(0.001)
        raise KeyError(words)

    def lock(self):
        return threading.Lock()

    def deep(self, depth):
        value = []
        for _ in range(depth):
            value = [value]
        return value

    def sleep(self, seconds):
        time.sleep(seconds)

    def end(self, reason):
        muster.die(reason)

    async def end_async(self, reason):
        await asyncio.sleep(0)
        muster.die(reason)

    def overlap(self, seconds):
        with self._lock:
            self._running += 1
            running = self._running
        time.sleep(seconds)
        with self._lock:
            self._running -= 1
        return running

    async def overlap_async(self, seconds):
        self._running += 1
        running = self._running
        await asyncio.sleep(seconds)
        self._running -= 1
        return running

    def rows(self, count, fail_at=None):
        for i in range(count):
            if i == fail_at:
                raise ValueError(f"after {i}")
            yield i

    async def rows_async(self, count, fail_at=None):
        for i in range(count):
            if i == fail_at:
                raise ValueError(f"after {i}")
            yield i

    def counted_rows(self, count):
        for i in range(count):
            self._made += 1
            yield i

    def made(self):
        return self._made

    def guarded_rows(self, count):
        try:
            yield from range(count)
        finally:
            self._closed = True

    def is_closed(self):
        return self._closed

    def run_facts(self):
        run = muster.current_run()
        return (run.worker, run.worker_type, run.closure, run.attempt, run.cancelled(),
                run.name)

    async def run_facts_async(self):
        await asyncio.sleep(0)
        return self.run_facts()

    def report(self, name, number):
        muster.current_run().report_metric(name, number, 3)

    def variable_sum(self, variable):
        return float(variable.read().sum())

    def variable_add(self, variable, value):
        variable.assign_add(value)

    def run_add(self, variable, value):
        muster.current_run().add(variable, value)

    def _hidden(self):
        return None


class Shadow:
    """Loses a method when it is made."""

    def __init__(self):
        self.vanishing = None

    def vanishing(self):
        return None

    def present(self):
        return "here"


class Caller:
    """Calls another actor."""

    def __init__(self, other):
        self.other = other

    def sync(self, number):
        return self.other.add(number).fetch(10)

    async def later(self, number):
        return await self.other.add(number)

    def failing(self, words):
        try:
            self.other.fail(words).fetch(10)
        except KeyError as error:
            return str(error)

    async def failing_later(self, words):
        try:
            await self.other.fail(words)
        except KeyError as error:
            return str(error)

    def items(self):
        return list(self.other.rows(3))

    def many(self, count):
        values = [self.other.add(1) for _ in range(count)]
        return [value.fetch(30) for value in values]

    def unanswered(self):
        for _ in range(20):
            self.other.options(one_way=True).add(1)
            self.other.add(1)
        return self.other.add(0).fetch(10)

    def late(self):
        value = self.other.sleep(0.3)
        try:
            value.fetch(0.01)
        except TimeoutError:
            return value.fetch(10), value.exception()

    def nested(self):
        return self.other.echo([self.other.add(1)]).fetch(10)

    def find(self, name):
        found = muster.actor(name)
        return found.add(1).fetch(10), found == self.other

    def stop_other(self):
        self.other.stop()


class Holder:
    """Has a variable of its own."""

    def __init__(self, name):
        self.variable = muster.Variable([1.0, 2.0], name=name)

    def add(self, number):
        self.variable.assign_add([number, number])
        return self.variable.read().tolist()


class Link:
    """Passes calls on."""

    def __init__(self, next_one):
        self.next_one = next_one

    def add(self, number):
        return self.next_one.add(number).fetch(30)


class Purse:
    """For kept actors: what it has changes in its methods."""

    def __init__(self, amount, things=()):
        if amount < 0:
            raise ValueError("amount is below 0")
        self.amount = amount
        self.things = list(things)

    def add(self, number):
        self.amount += number
        if self.amount < 0:
            raise ValueError(f"there is only {self.amount - number}")
        return self.amount

    async def add_async(self, number):
        self.amount += number
        await asyncio.sleep(0.001)
        if self.amount < 0:
            raise ValueError(f"there is only {self.amount - number}")
        return self.amount

    def show(self):
        return self.amount

    def fill(self, size):
        self.things = [os.urandom(size)]

    def hold(self, thing):
        self.things.append(thing)
        return len(self.things)

    def lock(self):
        self.amount = 99
        self.things.append(threading.Lock())

    def rows(self):
        yield self.amount

    def sneak(self):
        return iter([self.amount])

    def record(self):
        muster.record(1)

    def end(self, reason):
        self.amount = 77
        muster.die(reason)

    def pid(self):
        return os.getpid()


class Log:
    """For kept actors: what it has changes in replay() alone."""

    def __init__(self):
        self.lines = []

    def write(self, line, fails=False):
        muster.record(line)
        if fails:
            raise ValueError("it has changed its mind")
        return len(self.lines)

    async def write_async(self, line, fails=False):
        await asyncio.sleep(0.001)
        return self.write(line, fails)

    def replay(self, line):
        if line is None:
            raise TypeError("no line")
        self.lines.append(line)

    def count(self):
        return len(self.lines)

    def read(self, first=0):
        return self.lines[first:]

    def pid(self):
        return os.getpid()
