"""Runs CPython's own tests of executors with muster.Executor: python cpython_executor.py.

The tests are those of test.test_concurrent_futures of this interpreter, or of the package
libpython3-testsuite for the same version; nothing of them is here. Prints one line of
JSON: how many ran, failed and were skipped. Exit code 77: there are no such tests.
"""

import glob
import importlib
import json
import os
import sys
import tempfile
import time
import unittest

# Named tests that are not about what an executor promises, and why.
LEFT_OUT = {
    "ProcessPoolShutdownTest": "looks at _processes, _call_queue and the manager thread",
    "ThreadPoolShutdownTest": "looks at _threads",
    "ThreadPoolWaitTests": "its function waits for an Event of this process's memory",
    "ThreadPoolExecutorTest": "about threads that are reused, and about their names",
    "ProcessPoolExecutorTest": "about processes and their number; test_map_chunksize is "
                               "taken out of it",
    "ExecutorDeadlockTest": "ends a pool's processes through its internals; "
                            "test_executor.py has the same cases",
    "ThreadPoolExecutorTest.test_hang_global_shutdown_lock": "forks",
}

# What is run: the mixins by name, and the module of the package that has each.
MIXINS = {
    "ExecutorTest": "executor",
    "ExecutorShutdownTest": "test_shutdown",
    "WaitTests": "test_wait",
    "AsCompletedTests": "test_as_completed",
    "InitializerMixin": "test_init",
    "FailingInitializerMixin": "test_init",
}


def find_suite():
    """A folder that has test/test_concurrent_futures, and what else "test" needs."""
    version = "python%d.%d" % sys.version_info[:2]
    import test

    places = [os.environ.get("MUSTER_CPYTHON_TESTS", ""), *test.__path__,
              f"/usr/lib/{version}/test"]
    for place in places:
        if not place or not glob.glob(os.path.join(place, "test_concurrent_futures*")):
            continue
        if os.path.isdir(os.path.join(place, "support")):
            return os.path.dirname(place), None
        whole = tempfile.TemporaryDirectory(prefix="muster-test-")
        folder = os.path.join(whole.name, "test")
        os.mkdir(folder)
        for source in (place, *test.__path__):
            for name in os.listdir(source):
                if not os.path.lexists(os.path.join(folder, name)):
                    os.symlink(os.path.join(source, name), os.path.join(folder, name))
        return whole.name, whole
    return None, None


def restart_with(folder):
    """The tests must be `test` here and in the workers: the path comes first."""
    path = os.pathsep.join([folder, *filter(None, sys.path[1:])])
    environment = dict(os.environ, PYTHONPATH=path, MUSTER_SUITE=folder)
    import subprocess

    return subprocess.call([sys.executable, __file__, *sys.argv[1:]], env=environment)


def module_of(part):
    package = importlib.import_module("test.test_concurrent_futures")
    if not hasattr(package, "__path__"):
        return package
    return importlib.import_module(f"test.test_concurrent_futures.{part}")


def patch_scripts(module):
    """Scripts that name the executor by its class take muster's."""
    plain = module.assert_python_ok

    def assert_python_ok(*args, **variables):
        script = args[-1].replace("from concurrent.futures import Executor",
                                  "from muster import Executor")
        return plain(*args[:-1], script, PYTHONPATH=os.environ["PYTHONPATH"], **variables)

    module.assert_python_ok = assert_python_ok


class Event:
    """An event of several processes: a file that is there or not."""

    def __init__(self, path):
        self.path = path

    def set(self):
        with open(self.path, "w", encoding="ascii"):
            pass

    def wait(self, timeout=60):
        end = time.monotonic() + timeout
        while not os.path.exists(self.path) and time.monotonic() < end:
            time.sleep(0.005)
        return os.path.exists(self.path)


def create_event(test):
    """What tests of 3.13 and later ask of the executor's side."""
    folder = tempfile.TemporaryDirectory(prefix="muster-event-")
    test.addCleanup(folder.cleanup)
    return Event(os.path.join(folder.name, "event"))


def make_tests():
    import muster
    from muster.futures import Future

    with muster.Executor(1) as executor:    # the thread for notices stays
        executor.submit(int).result()
    base = module_of("util").BaseTestCase
    plain = module_of("util").ExecutorMixin
    suite = unittest.TestSuite()
    patch_scripts(module_of("test_shutdown"))

    def add(name, *bases, **fields):
        cls = type(name, bases, {"executor_type": muster.Executor,
                                 "create_event": create_event,
                                 "__module__": __name__, **fields})
        globals()[name] = cls
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(cls))

    for name, part in MIXINS.items():
        mixin = getattr(module_of(part), name)
        bases = (mixin, base) if issubclass(mixin, plain) else (mixin, plain, base)
        add("Muster" + name, *bases)
    pool = getattr(module_of("test_process_pool"), "ProcessPoolExecutorTest")
    add("MusterMapTest", plain, base, test_map_chunksize=pool.test_map_chunksize)
    futures = module_of("test_future")
    futures.Future = Future
    # The suite's own finished futures were made of the base class: its words say so.
    add("MusterFutureTests", futures.FutureTests)
    return suite


def main():
    if "MUSTER_SUITE" not in os.environ:
        folder, whole = find_suite()
        if folder is None:
            print("there is no test.test_concurrent_futures: libpython3-testsuite has it")
            return 77
        code = restart_with(folder)
        if whole is not None:
            whole.cleanup()
        return code
    suite = make_tests()
    wanted = sys.argv[1:]
    tests = [test for test in suite
             if not wanted or any(word in test.id() for word in wanted)]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(tests))
    print(json.dumps({"ran": result.testsRun, "failed": len(result.failures),
                      "errors": len(result.errors), "skipped": len(result.skipped)}))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
