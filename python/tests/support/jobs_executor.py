"""Functions for the tests of executors, importable on workers."""

import os
import signal
import threading
import time

import muster


def both(*args, **kwargs):
    return args, kwargs


def divide(a, b):
    return a / b


def square(x):
    return x * x


def give(x):
    return x


def fail(words):
    raise ValueError(words)


def fail_with_lock():
    error = RuntimeError("held")
    error.lock = threading.Lock()
    raise error


def wait_and_give(seconds, x):
    time.sleep(seconds)
    return x


class Multiplier:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x

    def times(self, x):
        return self.k * x


class Thing:
    pass


def give_thing(thing):
    return Thing()


def wait_for(path):
    end = time.monotonic() + 60
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)


def run_until_cancelled(path):
    with open(path + ".begun", "w"):
        pass
    run = muster.current_run()
    limit = time.monotonic() + 30
    while not run.cancelled() and time.monotonic() < limit:
        time.sleep(0.01)
    if run.cancelled():
        with open(path, "w"):
            pass


def end_process(how):
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


def _fail_at_unpickle():
    raise ValueError("unpickled")


class FailsAt:
    def __init__(self, when):
        self.when = when

    def __reduce__(self):
        if self.when == "pickle":
            raise ValueError("pickled")
        return (_fail_at_unpickle, ())


_initialized = None


def initialize(value):
    global _initialized
    _initialized = value


def initialized():
    return _initialized


def total(structure):
    if isinstance(structure, dict):
        return sum(total(item) for item in structure.values())
    if isinstance(structure, (list, tuple)):
        return sum(total(item) for item in structure)
    return int(structure.sum())


def where(_):
    return muster.current_run().worker
