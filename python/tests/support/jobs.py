"""Functions that tests schedule: workers import this module."""

import ctypes
import dataclasses
import os
import signal
import sys
import threading
import time

import numpy as np

import muster


def same(value):
    return value


def add(a, b=0):
    return a + b


def array_of(count):
    return np.arange(count)


@dataclasses.dataclass
class Pair:
    a: object
    b: object


class Calls:
    """Pickles a call of a function, and a state for what it returns."""

    def __init__(self, function, *args, state=None):
        self.reduced = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.reduced


def give_call(function):
    return Calls(function)


def type_name(value):
    return type(value).__name__


def clock_steps(name, count):
    with muster.Clock(None, name, staleness=1) as clock:
        return [clock.tick(timeout=20) for _ in range(count)]


def shard_number(shard):
    return shard.number


def complain(line):
    print(line, file=sys.stderr, flush=True)


def write(stream, text):
    {"out": sys.stdout, "err": sys.stderr}[stream].write(text)


def call(function):
    return function()


def fail(message="no"):
    raise ValueError(message)


def fail_later(seconds, message):
    """Not before its user is scheduled, too: who would be told of it first."""
    time.sleep(seconds)
    raise ValueError(message)


def fail_as(path, name, kind, task):
    """Its own error of muster, after a byte more in a file: how often it ran."""
    with open(path, "ab") as file:
        file.write(b".")
    raise getattr(muster.errors, name)("its own words", kind=kind, task=task)


class Odd(Exception):
    """Takes two arguments, and cannot be unpickled from its words alone."""

    def __init__(self, number, words):
        super().__init__(number, words)
        self.number = number


def fail_odd():
    raise Odd(7, "words")


class Holding(Exception):
    """Has an attribute and an argument that cannot be pickled."""

    def __init__(self, words):
        super().__init__(words, threading.Lock())
        self.lock, self.words = threading.Lock(), words


def fail_holding():
    raise Holding("words")


def fail_unpicklable():
    class Local(Exception):
        pass

    raise Local("of a function")


def sleep(seconds):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and not muster.current_run().cancelled():
        time.sleep(0.005)
    return muster.current_run().cancelled()


def sleep_deaf(seconds):
    time.sleep(seconds)


def touch_and_sleep(path, seconds):
    open(path, "w", encoding="ascii").close()
    return sleep(seconds)


def die_first(how):
    run = muster.current_run()
    return run.attempt if run.attempt > 1 else die_always(how)


def die_always(how):
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return 0


def whoami():
    run = muster.current_run()
    return {"worker": run.worker, "attempt": run.attempt, "closure": run.closure,
            "name": run.name, "type": run.worker_type, "cancelled": run.cancelled(),
            "task": run.node.task, "pid": os.getpid()}


def add_once(variable, die=False):
    run = muster.current_run()
    run.add(variable, 1)
    if die and run.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def next_of(iterator):
    return next(iterator)


def numbers():
    return range(1000)


def pid():
    return os.getpid()


def pid_of(_):
    return os.getpid()


def pid_list():
    return [os.getpid()]


def say(text):
    print(text)


def log(text):
    muster.current_run().log(text)


def end_forked_children():
    """As a pool of multiprocessing ends: its processes are told to by SIGTERM."""
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(2) as pool:
        doubled = pool.map(abs, [-1, -2])
    return doubled, os.getpid()


def end_a_program():
    """Its exit code, of a program that was told to end by SIGTERM."""
    import subprocess

    program = subprocess.Popen(["sleep", "600"])
    program.terminate()
    return program.wait(20)


def die_with_a_forked_child_left(path):
    """The first time; the child has all that this process has open."""
    if os.path.exists(path):
        return True
    child = os.fork()
    if child == 0:
        time.sleep(600)
    with open(path, "w", encoding="ascii") as file:
        file.write(str(child))
    os.kill(os.getpid(), signal.SIGKILL)
    return False
