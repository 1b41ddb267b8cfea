"""Each function of the public headers either is tried while what it waits for is absent
(a row of a table in tests/real/waits/test_waits_*.c) or is named, with the reason why
it waits for nobody, in tests/waits_none.txt. A function that takes a limit in time
always waits.

usage: check_waits.py SOURCE | --self-test
"""

import pathlib
import re
import sys

REASONS = {
    "memory": "works on this process's memory alone",
    "file": "reads or writes local files",
    "begins": "hands its work to others and returns",
    "callback": "waits for the program's own functions alone",
    "lets-go": "frees, and what is under way goes on or is cancelled",
    "inner": "what it waits for is a row by the name of another function",
}

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARATION = re.compile(r"MU_EXPORT\s+([^;{]*?)\b(mu_\w+)\s*\(([^;]*?)\)\s*"
                         r"(?:MU_PRINTF\([^)]*\)\s*)?;", re.DOTALL)
ROW = re.compile(r"\{\"(mu_\w+)\",")
LIMIT = re.compile(r"\bint64_t\s+\w*(?:timeout_ms|wait_ms|timeout_ms)\b")


def declared(headers):
    """{name: takes a limit} of all functions that headers' texts export."""
    found = {}
    for text in headers:
        for match in DECLARATION.finditer(COMMENT.sub(" ", text)):
            found[match.group(2)] = LIMIT.search(match.group(3)) is not None
    return found


def listed(text):
    """[(name, reason)] of waits_none.txt."""
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    return [(line[0], line[1] if len(line) == 2 else "") for line in lines if line]


def findings(functions, rows, none):
    names = [name for name, _ in none]
    for name, reason in none:
        if reason not in REASONS:
            yield f"{name}: \"{reason}\" is no reason: {', '.join(REASONS)}"
        if name not in functions:
            yield f"{name}: no header has it, but waits_none.txt does"
        elif functions[name] and reason != "inner":
            yield f"{name}: it takes a limit in time, so it waits for somebody"
    for name in sorted(set(names)):
        if names.count(name) > 1:
            yield f"{name}: it is in waits_none.txt {names.count(name)} times"
        if name in rows:
            yield f"{name}: it is both in a table and in waits_none.txt"
    for name in sorted(rows - functions.keys()):
        yield f"{name}: no header has it, but a table does"
    for name in sorted(functions.keys() - rows - set(names)):
        yield (f"{name}: nobody has said whether it waits: a row in a table of "
               "tests/real/waits/test_waits_*.c, or a line in tests/waits_none.txt")


def check(source):
    headers = [path.read_text() for path in sorted(source.glob("include/**/*.h"))]
    tables = [path.read_text() for path in source.glob("tests/real/waits/test_waits_*.c")]
    rows = {name for text in tables for name in ROW.findall(text)}
    none = listed((source / "tests" / "waits_none.txt").read_text())
    return list(findings(declared(headers), rows, none))


def self_test():
    header = ("/* MU_EXPORT int mu_no(void); */\n"
              "MU_EXPORT int mu_wait(int a, int64_t timeout_ms,\n    int *b);\n"
              "MU_EXPORT const char *mu_say(const char *format, ...) MU_PRINTF(1, 2);\n"
              "MU_EXPORT void mu_call(void (*f)(void *user), void *user);\n")
    functions = declared([header])
    assert functions == {"mu_wait": True, "mu_say": False, "mu_call": False}, functions
    fine = [("mu_say", "memory"), ("mu_call", "begins")]
    assert not list(findings(functions, {"mu_wait"}, fine))
    for rows, none, words in (
            (set(), fine, "mu_wait: nobody has said"),
            ({"mu_wait"}, fine[:1], "mu_call: nobody has said"),
            (set(), fine + [("mu_wait", "memory")], "mu_wait: it takes a limit"),
            ({"mu_wait"}, fine + [("mu_gone", "memory")], "mu_gone: no header"),
            ({"mu_wait", "mu_gone"}, fine, "mu_gone: no header"),
            ({"mu_wait", "mu_say"}, fine, "mu_say: it is both"),
            ({"mu_wait"}, fine + fine[:1], "mu_say: it is in waits_none.txt 2 times"),
            ({"mu_wait"}, [("mu_say", "so"), fine[1]], "mu_say: \"so\" is no reason")):
        found = list(findings(functions, rows, none))
        assert len(found) == 1 and words in found[0], (words, found)
    assert listed("# none\nmu_a memory # x\nmu_b\n") == [("mu_a", "memory"), ("mu_b", "")]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = check(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
