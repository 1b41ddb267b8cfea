#!/usr/bin/env python3
"""Do what the tutorials say, word by word, with an installation of a build.

    check_tutorials.py BUILD_FOLDER PAGE...
    check_tutorials.py --self-test

A block of C or CMake is written to the file that its first line names; a block of sh is
run in the same folder, as a shell stops at the first command that fails; each line of a
block of text is in what the block of sh before it has printed, in this order."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SECONDS_MAX = 120   # for one block of sh
BLOCK = re.compile(r"^```(c|cmake|sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"^(?:/\*|#) (\S+)(?: \*/)?$")


def run(script, folder, environment):
    """What a script prints, and its exit code; it takes its processes with it."""
    process = subprocess.Popen(["sh", "-eu", "-c", script], cwd=folder, text=True,
                               env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=SECONDS_MAX)
        return output, process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return output + f"\n(not done within {SECONDS_MAX} s)", 1


def missing_lines(text, output):
    """The lines of `text` that are not in what comes of the output behind the last."""
    at = 0
    for line in text.splitlines():
        found = output.find(line, at)
        if found < 0:
            yield line
        else:
            at = found + len(line)


def check(text, folder, environment):
    """What is wrong with a page, as text."""
    problems = []
    output = ""
    for kind, block in BLOCK.findall(text):
        if kind in ("c", "cmake"):
            first, rest = block.split("\n", 1)
            name = NAME.match(first)
            if name is None:
                problems.append(f"a block of {kind} names no file: {first}")
            else:
                (folder / name.group(1)).write_text(rest)
        elif kind == "sh":
            output, code = run(block, folder, environment)
            if code != 0:
                problems.append(f"{block}exit code {code}:\n{output}")
        else:
            problems += [f"not printed: {line}\nbut:\n{output}"
                         for line in missing_lines(block, output)]
    return problems


def install(build, folder):
    """The environment of a user who has installed the build to a folder of his own."""
    prefix = folder / "muster"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    pc = next(prefix.rglob("muster.pc")).parent
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("MUSTER_", "TF_"))}
    environment["PATH"] = f"{prefix / 'bin'}:{environment['PATH']}"
    environment["PKG_CONFIG_PATH"] = str(pc)
    environment["CMAKE_PREFIX_PATH"] = str(prefix)
    return environment


def self_test():
    """Each kind of mistake is found, and a page without one is fine."""
    rows = (
        ("fine", 0, "```c\n/* a.c */\nint x;\n```\n```sh\ncat a.c\n```\n"
                    "```text\nint\nx;\n```\n"),
        ("no name", 1, "```c\nint x;\n```\n"),
        ("a command that fails", 1, "```sh\nfalse\necho on\n```\n"),
        ("not printed", 1, "```sh\necho a\n```\n```text\nb\n```\n"),
        ("another order", 1, "```sh\necho a b\n```\n```text\nb\na\n```\n"),
    )
    failed = 0
    for what, wanted, text in rows:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-tutorial-"))
        if len(check(text, folder, dict(os.environ))) != wanted:
            print(f"self-test: {what}")
            failed = 1
        shutil.rmtree(folder)
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-tutorial-"))
    problems = []
    try:
        environment = install(sys.argv[1], folder)
        for page in sys.argv[2:]:
            work = folder / pathlib.Path(page).stem
            work.mkdir()
            problems += [f"{page}: {problem}" for problem in
                         check(pathlib.Path(page).read_text(), work, environment)]
    finally:
        shutil.rmtree(folder)
    print("\n".join(problems) if problems else "tutorials: all is as they say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
