"""Runs joblib's own tests of Parallel with the backend muster: python joblib_backend.py.

The tests are read out of the installed wheel, with "muster" in the lists of backends
that they are run for; nothing of them is here. Exit code 77: joblib is not installed.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile

# Tests that are not about what a backend promises, and why.
LEFT_OUT = {
    "test_no_blas_crash_or_freeze_with_subprocesses": "forks after threads on purpose",
    "test_auto_memmap_on_arrays_from_generator": "memory maps of one machine",
    "test_memmapping_leaks": "memory maps of one machine",
    "test_dispatch_multiprocessing": "a Manager's key goes to multiprocessing's own "
                                     "processes only",
    "test_initializer_parallel": "the same",
    "test_error_capture": "wants processes to be replaced after an exception",
    "test_initializer_context": "the backend is given again: its workers are shared",
}

# With n_jobs left open the backend takes all workers; joblib's own take one.
DESELECTED = [f"test_nested_backend_in_sequential[{context}-muster-None]"
              for context in ("parallel_config", "parallel_backend")]

# The lists of backends in that file, and what they are instead.
LISTS = {
    'PROCESS_BACKENDS = ["multiprocessing", "loky"]': 'PROCESS_BACKENDS = ["muster"]',
    'PARALLEL_BACKENDS = PROCESS_BACKENDS + ["threading"]':
        'PARALLEL_BACKENDS = PROCESS_BACKENDS + ["threading"]',
    'ALL_VALID_BACKENDS = [None] + sorted(BACKENDS.keys())':
        'ALL_VALID_BACKENDS = ["muster"]',
    'RETURN_GENERATOR_BACKENDS = BACKENDS.copy()':
        'RETURN_GENERATOR_BACKENDS = {"muster": BACKENDS["muster"]}',
}


def main():
    spec = importlib.util.find_spec("joblib.test.test_parallel") \
        if importlib.util.find_spec("joblib") else None
    if spec is None or spec.origin is None:
        print("joblib is not installed with its tests")
        return 77
    with open(spec.origin, encoding="utf-8") as file:
        source = file.read()
    for was, now in LISTS.items():
        if was not in source:
            print(f"joblib's tests have changed: {was!r} is not there")
            return 1
        source = source.replace(was, now, 1)
    with tempfile.TemporaryDirectory(prefix="muster-joblib-") as folder:
        with open(os.path.join(folder, "test_parallel.py"), "w",
                  encoding="utf-8") as file:
            file.write("import muster.joblib\n"
                       + source.replace("from __future__", "# from __future__"))
        # Scripts of the tests name the backend without an import.
        with open(os.path.join(folder, "sitecustomize.py"), "w",
                  encoding="utf-8") as file:
            file.write("import muster.joblib\n")
        paths = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
        left_out = " and ".join(f"not {name}" for name in LEFT_OUT)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   "-k", f"muster and ({left_out})", "-rf",
                   *(f"--deselect=test_parallel.py::{name}" for name in DESELECTED),
                   *sys.argv[1:], "test_parallel.py"]
        return subprocess.call(command, cwd=folder,
                               env=dict(os.environ, PYTHONPATH=":".join(paths)))


if __name__ == "__main__":
    sys.exit(main())
