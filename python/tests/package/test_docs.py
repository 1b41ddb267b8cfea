"""The programs in the guides and the README, run as they stand.

A block that opens with ```python muster is a whole program, and is run; when its first
line is a comment with a file's name, it is written there for later ones. A block of
```sh muster is run by a shell. Each line of a ```text block is in what the block before
it has printed, in this order. All blocks of a page share a folder.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs" / "python").glob("*.md")) + [ROOT / "README.md"]
BLOCK = re.compile(r"^```(python muster|sh muster|text)\n(.*?)^```$",
                   re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"# (\w+\.(?:py|json))$")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SECONDS_MAX = 60


def blocks_of(page):
    return BLOCK.findall(page.read_text())


def run(command, folder):
    """What it prints, on both streams; it takes its processes with it."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("MUSTER_", "TF_", "PYTHON"))}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    process = subprocess.Popen(command, cwd=folder, text=True, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = process.communicate(timeout=SECONDS_MAX)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError("not done: " + process.communicate()[0]) from None
    assert process.returncode == 0, output
    return output


def do_block(kind, text, folder):
    first, _, rest = text.partition("\n")
    name = FILE_NAME.match(first)
    if kind == "sh muster":
        return run(["sh", "-eu", "-c", text], folder)
    if name is not None:
        (folder / name.group(1)).write_text(rest)
        return ""
    program = folder / "program.py"
    program.write_text(text)
    return run([sys.executable, str(program)], folder)


def missing_lines(text, output):
    at = 0
    for line in text.splitlines():
        found = output.find(line, at)
        if found < 0:
            yield line
        else:
            at = found + len(line)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "coverage"],
                         ids=lambda page: page.stem)
def test_programs_of_the_page_do_what_it_says(page, tmp_path):
    output, blocks = None, blocks_of(page)
    assert any(kind != "text" for kind, _ in blocks), "the page has no program of ours"
    for kind, text in blocks:
        if kind != "text":
            output = do_block(kind, text, tmp_path)
        elif output is not None:
            missing = list(missing_lines(text, output))
            assert not missing, f"not printed: {missing}\nbut:\n{output}"
            output = None


def test_each_row_of_the_coverage_names_a_test():
    tests = {path.stem: path.read_text()
             for path in pathlib.Path(__file__).parent.parent.rglob("test_*.py")}
    wrong, rows = [], 0
    for line in (PAGES[0].parent / "coverage.md").read_text().splitlines():
        if not line.startswith("| ") or line.endswith(" Shown by |"):
            continue
        rows += 1
        for shown in line.rstrip(" |").rpartition("| ")[2].split("; "):
            file, _, name = shown.partition(": ")
            if f"\ndef test_{name}(" not in tests.get(f"test_{file}", ""):
                wrong.append(shown)
    assert rows > 40 and not wrong


@pytest.mark.parametrize("page", PAGES[:-1], ids=lambda page: page.stem)
def test_links_of_the_page_lead_somewhere(page):
    broken = [target for target in LINK.findall(page.read_text())
              if not (page.parent / target).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_other_programs_of_the_page_are_python(page):
    for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(),
                           re.DOTALL | re.MULTILINE):
        compile(text, str(page), "exec")
