#!/usr/bin/env python3
"""Real tests name the program that they lack, and take the processes that they start with
them.

    check_helpers.py TESTS_FOLDER     where the test programs are

Each program of the list is run where nothing is installed: it must end with the code that
ctest shows as skipped, and say which program is missing. And every file of real tests in
which another program is started has the kernel end that one with the test."""
import os
import pathlib
import re
import subprocess
import sys

REAL = pathlib.Path(__file__).resolve().parent / "real"
SKIPPED = 77
LACKING = {
    "real_sources_tls": "openssl",
    "real_etcd": "etcd",
    "real_etcd_secure": "etcd",
    "real_google": "openssl",
    "real_https_resolvers": "openssl",
    "real_https_google": "openssl",
    "real_kubernetes_https": "openssl",
    "real_kubernetes_pod": "openssl",
    "real_mpirun": "mpirun",
    "real_node_etcd": "etcd",
    "real_service_etcd": "etcd",
    "real_service_etcd_secure": "etcd",
}
# Daemons are looked for in /usr/sbin too, so these may have what they need: dns, slurm.
SECONDS_MAX = 60


def check_skip(folder, name, lacking):
    path = folder / name
    if not path.exists():
        return f"{name} was not built"
    environment = dict(os.environ, PATH="/nonexistent")
    done = subprocess.run([path], env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False)
    if done.returncode != SKIPPED:
        return f"{name}: exit code {done.returncode}, expected {SKIPPED}:\n{done.stdout}"
    if f"skipped: there is no program {lacking} " not in done.stdout:
        return f"{name} does not say that {lacking} is missing:\n{done.stdout}"
    return None


def starts_a_program(text):
    return re.search(r"\bexec(l|lp|v|vp)\(", text) is not None


def main():
    folder = pathlib.Path(sys.argv[1])
    problems = [check_skip(folder, name, lacking)
                for name, lacking in LACKING.items()]
    for path in sorted(REAL.glob("*.[ch]")):
        text = path.read_text()
        if starts_a_program(text) and "PR_SET_PDEATHSIG" not in text:
            problems.append(f"tests/real/{path.name} starts a program that stays when "
                            "the test fails: no PR_SET_PDEATHSIG")
    problems = [problem for problem in problems if problem is not None]
    print("\n".join(problems) if problems else "helpers: 0 problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
