#!/usr/bin/env python3
"""House rules, as a test.

    scripts/tidy.py [ROOT]        check a tree (by default the one this file is in)
    scripts/tidy.py --self-test   show that every rule catches what it is for

Each finding is one line: file:line: rule: what is wrong.
"""

import os
import re
import sys
import tempfile

COLUMNS_MAX = 90
FUNCTION_LINES_MAX = 70

C_SUFFIXES = (".c", ".h", ".cpp")
TEXT_SUFFIXES = C_SUFFIXES + (
    ".py", ".sh", ".md", ".cmake", ".in", ".supp", ".json", "CMakeLists.txt")
# Wide tables and links are fine in prose, and data is as wide as it is.
WIDE_SUFFIXES = (".md", ".json")

# Files in such a folder may touch the loop, sockets or HTTP; all others are pure.
OUTER = re.compile(r"/uv/[^/]*$")
PURE_FOLDERS = ("actors", "runtime", "transport", "resolver")

OURS = r"^(\.\./)*(%s)/"
UV, NNG, CURL = r"^uv(\.h|/)", r"^nng/", r"^curl/"
CJSON, MSGPACK, CRYPTO, YAML = r"(?i:cjson)", r"msgpack", r"^openssl/", r"^yaml\.h$"

# Who may see what: (files, headers they must not include, except in these files).
WALLS = [
    (r"^include/", (UV, NNG, CURL, CJSON, MSGPACK,
                    OURS % "runtime|actors|transport|resolver|node|api|cli|tests"), None),
    (r"^runtime/", (UV, NNG), r"^runtime/uv/"),
    (r"^runtime/", (MSGPACK,), r"^runtime/message/(pack\.h|codec\.c|value_pack\.c)$"),
    (r"^runtime/", (OURS % "actors|transport|resolver|node|api|cli|tests",), None),
    (r"^runtime/base/", (OURS % "runtime/(kernel|message|uv)",), None),
    (r"^runtime/(kernel|message)/", (OURS % "runtime/uv",), None),
    (r"^actors/", (UV, NNG, CURL, CJSON, MSGPACK, r"^time\.h$",
                   OURS % "runtime/uv|transport|resolver|node|api|cli|tests"), None),
    (r"^transport/", (NNG, CURL, CJSON, OURS % "actors|resolver|node|api|cli|tests"),
     None),
    (r"^transport/", (UV, OURS % "runtime/uv"), r"^transport/wire/uv/"),
    (r"^transport/link/", (OURS % "transport/wire/uv",), None),
    (r"^resolver/", (NNG, MSGPACK, OURS % "actors|transport|node|api|cli|tests"), None),
    (r"^resolver/", (UV, OURS % "runtime/uv"), r"/uv/[^/]*$"),
    (r"^resolver/spec/", (OURS % "resolver/(engine|source|cloud)",), None),
    (r"^resolver/engine/", (OURS % "resolver/(source|cloud)",), None),
    (r"^resolver/source/", (OURS % "resolver/cloud",), None),
    # What is in libmuster-cloud, which is loaded when it is needed, is nowhere else.
    (r"^(runtime|actors|transport|resolver|node|api|cli|include)/", (CURL, CRYPTO),
     r"^resolver/cloud/uv/"),
    (r"^(runtime|actors|transport|resolver|node|api|cli|include)/", (YAML,),
     r"^resolver/cloud/kubernetes/yaml\.c$"),
    (r"^node/", (OURS % "api|cli|tests|bench",), None),
    (r"^api/", (OURS % "cli|tests|bench",), None),
    (r"^cli/", (OURS % "tests|bench",), None),
    (r"^node/member/", (UV, NNG, CURL, OURS % "runtime/uv"), None),
    (r"^(examples|python)/",
     (NNG, CURL, CJSON, MSGPACK,
      OURS % "runtime|actors|transport|resolver|node|api|cli|tests"), None),
]

# Not a member (x.time, x->time), and not the end of a longer name.
CALL = r"(?<![\w.])(?<!->)(?:%s)\s*\("
IMPURE = re.compile(
    CALL % r"time|clock_gettime|gettimeofday|clock|rand|srand|random|srandom|rand_r"
           r"|getrandom|getenv|setenv|fopen|open|socket|sleep|usleep|nanosleep"
           r"|printf|vprintf|puts|putchar"
    + r"|\bpthread_\w+|\bstdout\b")
UNSAFE = re.compile(CALL % r"sprintf|vsprintf|strcpy|strcat|gets")
MARKER = re.compile(r"\b(%s)\b" % "|".join(("TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK")))
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(?:work|root|home)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
ASSERTION = re.compile(
    r"\b(?:assert_\w+|fail|fail_msg|\w*(?:check|expect|assert)\w*)\s*\(")
TEST_FUNCTION = re.compile(r"^static void (test_\w+)\s*\(")
COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


class Source:
    """One file: its path inside the tree and its lines, as they are and without
    comments (`plain`) or also without what is in quotes (`code`)."""

    def __init__(self, path, text):
        self.path = path
        self.is_c = path.endswith(C_SUFFIXES)
        self.lines = text.split("\n")
        self.plain = self.code = self.lines
        if self.is_c:
            self.plain = blank(text, ("/",)).split("\n")
            self.code = blank(text, ("/", '"', "'")).split("\n")

    def in_folder(self, *folders):
        return self.path.split("/")[0] in folders

    def is_pure(self):
        if self.path.startswith("node/member/"):
            return True
        return self.in_folder(*PURE_FOLDERS) and not OUTER.search(self.path)


def blank(text, openers):
    """The same text without comments or quoted parts; lines stay where they are."""

    def replace(match):
        part = match.group(0)
        if not part.startswith(openers):
            return part
        if part[0] in "\"'":
            return part[0] * 2
        return "\n" * part.count("\n") or " "

    return COMMENT_OR_STRING.sub(replace, text)


def functions(source):
    """(first line, number of lines, body) of each function: a brace alone at the
    beginning of a line opens it, the next such brace closes it."""
    start = None
    for number, line in enumerate(source.code, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            yield start, number - start + 1, source.code[start:number - 1]
            start = None


def rule_wall(source):
    for number, line in enumerate(source.plain, 1):
        match = INCLUDE.match(line) if source.is_c else None
        if not match:
            continue
        for files, headers, excepted in WALLS:
            if not re.search(files, source.path):
                continue
            if excepted and re.search(excepted, source.path):
                continue
            if any(re.search(header, match.group(1)) for header in headers):
                yield number, f"{source.path} must not include {match.group(1)}"
                break


def rule_impure(source):
    if not source.is_c or not source.is_pure():
        return
    for number, line in enumerate(source.code, 1):
        for match in IMPURE.finditer(line):
            name = match.group(0).rstrip("( ")
            yield number, f"{name} asks the system: go through runtime/kernel/world.h"


def rule_unsafe(source):
    if not source.is_c:
        return
    for number, line in enumerate(source.code, 1):
        for match in UNSAFE.finditer(line):
            yield number, f"{match.group(0).rstrip('( ')} knows no bounds"


def rule_function_lines(source):
    if not source.is_c:
        return
    for start, count, _ in functions(source):
        if count > FUNCTION_LINES_MAX:
            yield start, f"function of {count} lines, at most {FUNCTION_LINES_MAX}"


def rule_brace(source):
    if not source.is_c:
        return
    for number, line in enumerate(source.code, 1):
        if re.match(r"\w[^=]*\)\s*\{\s*$", line):
            yield number, "a function's brace stands on its own line"


def rule_test_asserts(source):
    if not source.is_c or not source.in_folder("tests"):
        return
    for start, _, body in functions(source):
        first = start - 1
        while first > 0 and re.match(r"[\w\s]", source.code[first - 1]) \
                and source.code[first - 1].strip():
            first -= 1
        for line in source.code[first:start]:
            match = TEST_FUNCTION.match(line)
            if match and not any(ASSERTION.search(part) for part in body):
                yield start, f"{match.group(1)} asserts nothing"


def rule_columns(source):
    if source.path.endswith(WIDE_SUFFIXES):
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns, at most {COLUMNS_MAX}"


def rule_tab(source):
    for number, line in enumerate(source.lines, 1):
        if "\t" in line:
            yield number, "a tab"


def rule_trailing_blank(source):
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            yield number, "blanks at the end of the line"


def rule_last_line(source):
    if len(source.lines) < 2 or source.lines[-1] != "":
        yield len(source.lines), "the last line has no end"
    elif source.lines[-2] == "":
        yield len(source.lines) - 1, "an empty line at the end"


def rule_marker(source):
    if source.path.endswith(".md"):
        return
    for number, line in enumerate(source.lines, 1):
        match = MARKER.search(line)
        if match:
            yield number, f"{match.group(0)}: do it, or write it down elsewhere"


def rule_machine_path(source):
    for number, line in enumerate(source.lines, 1):
        match = MACHINE_PATH.search(line)
        if match:
            yield number, f"{match.group(0)} is a path of one machine"


RULES = {
    "wall": rule_wall,
    "impure": rule_impure,
    "unsafe": rule_unsafe,
    "function-lines": rule_function_lines,
    "brace": rule_brace,
    "test-asserts": rule_test_asserts,
    "columns": rule_columns,
    "tab": rule_tab,
    "trailing-blank": rule_trailing_blank,
    "last-line": rule_last_line,
    "marker": rule_marker,
    "machine-path": rule_machine_path,
}


# All that the repository's first folder has.
TOP_LEVEL = frozenset("""
    runtime actors transport resolver include node api cli python tests bench examples
    docs scripts CMakeLists.txt CMakePresets.json README.md CHANGELOG.md LICENSE
""".split())


def stray_entries(root):
    """What is at the top level and should not be; hidden names and builds aside."""
    for name in sorted(os.listdir(root)):
        if name not in TOP_LEVEL and not name.startswith((".", "build")):
            yield name, 1, "top-level", "not one of the names that belong here"


def is_text(folder, name):
    if name.endswith(TEXT_SUFFIXES):
        return True
    return os.path.basename(folder) in ("scripts", ".ci") and "." not in name


def files_of(root):
    """Text files of the tree, as paths inside it."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name for name in subfolders
            if not name.startswith(("build", "__pycache__"))
            and (not name.startswith(".") or name == ".ci") and name != "corpus")
        for name in sorted(names):
            if is_text(folder, name):
                yield os.path.relpath(os.path.join(folder, name), root)


def check(root):
    """All findings in the tree: (path, line, rule, words)."""
    findings = list(stray_entries(root))
    for path in files_of(root):
        try:
            with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
                source = Source(path.replace(os.sep, "/"), file.read())
        except UnicodeDecodeError as error:
            findings.append((path, 1, "utf-8", str(error)))
            continue
        for rule, function in RULES.items():
            findings += [(path, line, rule, words) for line, words in function(source)]
    return findings


def long_function(lines):
    return "static void f(void)\n{\n" + "    g();\n" * (lines - 2) + "}\n"


# (rule or None when nothing may be found, path, text)
CASES = [
    ("wall", "include/muster/a.h", "#include <uv.h>\n"),
    ("wall", "include/muster/a.h", '#include "runtime/kernel/pid.h"\n'),
    ("wall", "runtime/a.c", "#include <uv.h>\n"),
    ("wall", "runtime/a.c", "#  include <nng/nng.h>\n"),
    ("wall", "runtime/a.c", "#include <curl/curl.h>\n"),
    ("wall", "runtime/a.c", "#include <msgpack.h>\n"),
    ("wall", "runtime/uv/a.c", '#include "actors/chief.h"\n'),
    ("wall", "runtime/a.c", '#include "../transport/link.h"\n'),
    ("wall", "runtime/a.c", '#include "resolver/env.h"\n'),
    ("wall", "runtime/a.c", '#include "node/node.h"\n'),
    ("wall", "runtime/a_uv.c", "#include <uv.h>\n"),
    ("wall", "runtime/base/a.h", '#include "runtime/message/message.h"\n'),
    ("wall", "runtime/kernel/a.c", '#include "runtime/uv/thread.h"\n'),
    ("wall", "transport/link/a.c", '#include "transport/wire/uv/in.h"\n'),
    ("wall", "resolver/spec/a.c", '#include "resolver/engine/requests.h"\n'),
    ("wall", "resolver/engine/a.c", '#include "resolver/source/mpi.h"\n'),
    ("wall", "resolver/source/a.c", '#include "resolver/cloud/google/gce.h"\n'),
    ("wall", "node/a.c", '#include "api/coordinator.h"\n'),
    ("wall", "api/a.c", '#include "cli/verbs.h"\n'),
    ("wall", "runtime/kernel/a.c", "#include <nng/nng.h>\n"),
    ("wall", "runtime/uv/a.c", "#include <curl/curl.h>\n#include <uv.h>\n"),
    (None, "runtime/uv/a.c", "#include <uv.h>\n"),
    ("wall", "runtime/kernel/a.c", "#include <uv.h>\n"),
    ("impure", "actors/supervisor/a.c", "    now = time(NULL);\n"),
    (None, "runtime/message/codec.c", "#include <msgpack.h>\n"),
    (None, "runtime/message/value_pack.c", "#include <msgpack/pack.h>\n"),
    (None, "runtime/message/pack.h", "#include <msgpack.h>\n"),
    (None, "runtime/a.c", "/*\n#include <uv.h>\n*/\n"),
    ("wall", "actors/a.c", "#include <uv.h>\n"),
    ("wall", "actors/a.c", "#include <nng/nng.h>\n"),
    ("wall", "actors/a.c", "#include <curl/curl.h>\n"),
    ("wall", "actors/a.c", "#include <cjson/cJSON.h>\n"),
    ("wall", "actors/a.c", "#include <cJSON.h>\n"),
    ("wall", "actors/a.h", "#include <msgpack.h>\n"),
    ("wall", "actors/a.c", "#include <time.h>\n"),
    ("wall", "actors/a.c", '#include "transport/frame.h"\n'),
    ("wall", "actors/a.c", '#include "resolver/env.h"\n'),
    (None, "actors/a.c",
     '#include "runtime/kernel/kernel.h"\n#include <muster/uv_time.h>\n'),
    ("wall", "transport/a.c", "#include <curl/curl.h>\n"),
    ("wall", "transport/a.c", "#include <cjson/cJSON.h>\n"),
    ("wall", "transport/wire/uv/a.c", '#include "actors/chief.h"\n'),
    ("wall", "transport/a.c", '#include "resolver/env.h"\n'),
    ("wall", "transport/a.c", '#include "node/node.h"\n'),
    ("wall", "transport/a.c", "#include <nng/nng.h>\n"),
    ("wall", "transport/a.c", "#include <uv.h>\n"),
    ("wall", "transport/wire/uv/a.c", "#include <nng/nng.h>\n"),
    (None, "transport/wire/uv/a.c", "#include <uv.h>\n"),
    ("wall", "resolver/a.c", "#include <nng/nng.h>\n"),
    ("wall", "resolver/a.c", "#include <msgpack.h>\n"),
    ("wall", "resolver/a.c", '#include "actors/chief.h"\n'),
    ("wall", "resolver/a.c", '#include "transport/link.h"\n'),
    ("wall", "resolver/a.c", "#include <curl/curl.h>\n"),
    ("wall", "resolver/a.c", "#include <uv.h>\n"),
    ("wall", "resolver/engine/uv/a.c", "#include <curl/curl.h>\n#include <uv.h>\n"),
    (None, "resolver/cloud/uv/a.c", "#include <curl/curl.h>\n#include <uv.h>\n"),
    ("wall", "resolver/cloud/google/a.c", "#include <openssl/evp.h>\n"),
    ("wall", "runtime/base/a.c", "#include <yaml.h>\n"),
    (None, "resolver/a.c", "#include <cjson/cJSON.h>\n"),
    ("wall", "node/a.c", '#include "tests/sim/sim.h"\n'),
    ("wall", "node/member/member.c", "#include <uv.h>\n"),
    ("wall", "node/member/a.c", "#include <curl/curl.h>\n"),
    (None, "node/a.c", '#include <uv.h>\n#include "transport/link.h"\n'),
    ("wall", "examples/a/plugin_a.c", '#include "runtime/kernel/kernel.h"\n'),
    ("wall", "python/a.c", '#include "actors/chief.h"\n'),
    (None, "examples/a/program_a.c", "#include <uv.h>\n#include <muster.h>\n"),
    ("impure", "actors/a.c", "    now = time(NULL);\n"),
    ("impure", "runtime/a.c", "    clock_gettime(CLOCK_MONOTONIC, &t);\n"),
    ("impure", "transport/a.c", "    gettimeofday(&t, NULL);\n"),
    ("impure", "resolver/a.c", "    x = getenv(\"A\");\n"),
    ("impure", "actors/a.c", "    x = rand();\n"),
    ("impure", "actors/a.c", "    x = random ();\n"),
    ("impure", "actors/a.c", "    f = fopen(path, \"r\");\n"),
    ("impure", "actors/a.c", "    s = socket(1, 2, 3);\n"),
    ("impure", "actors/a.c", "    pthread_mutex_t lock;\n"),
    ("impure", "runtime/a.h", "    sleep(1);\n"),
    ("impure", "runtime/a.c", "    usleep(1);\n"),
    ("impure", "actors/a.c", "    printf(\"hello\");\n"),
    ("impure", "actors/a.c", "    puts(\"hello\");\n"),
    ("impure", "actors/a.c", "    fprintf(stdout, \"hello\");\n"),
    ("impure", "node/member/member.c", "    x = getenv(\"A\");\n"),
    ("impure", "node/member/b.c", "    x = time(NULL);\n"),
    (None, "runtime/uv/a.c", "    x = getenv(\"A\");\n    sleep(1);\n"),
    (None, "cli/main.c", "    printf(\"%s\", getenv(\"A\"));\n"),
    (None, "actors/a.c", "    snprintf(s, n, \"time(0) %d\", 1); /* rand() */\n"),
    (None, "actors/a.c", "    w->ops->random(w);\n    w.time(w);\n    runtime(3);\n"),
    (None, "runtime/a.h", "    uint64_t (*random)(struct mu__world *w);\n"),
    ("unsafe", "node/a.c", "    sprintf(s, \"a\");\n"),
    ("unsafe", "tests/test_a.c", "    strcpy(a, b);\n"),
    ("unsafe", "examples/a/plugin_a.c", "    strcat(a, b);\n"),
    ("unsafe", "bench/bench_a.c", "    gets(a);\n"),
    (None, "node/a.c", "    snprintf(a, n, \"strcpy(\");\n    targets(a);\n"),
    ("function-lines", "node/a.c", long_function(FUNCTION_LINES_MAX + 1)),
    (None, "node/a.c", long_function(FUNCTION_LINES_MAX)),
    (None, "node/a.c", "static const int a[] = {\n" + "    1,\n" * 99 + "};\n"),
    ("brace", "node/a.c", "static void f(void) {\n}\n"),
    (None, "node/a.c", "static const int a[] = {\n};\nextern \"C\" {\n}\n"),
    ("test-asserts", "tests/test_a.c",
     "static void test_a(void **state)\n{\n    (void)state;\n}\n"),
    ("test-asserts", "tests/real/test_a.c",
     "static void test_a(void **state)\n{\n    /* assert_true(1); */\n    f(\"fail(\");\n"
     "}\n"),
    (None, "tests/test_a.c",
     "static void test_a(void **state);\n\n"
     "static void test_a(void **state)\n{\n    assert_int_equal(f(), 1);\n}\n\n"
     "static void test_b(void **state)\n{\n    run_and_expect(\"a\", 2);\n}\n\n"
     "static void test_c(void **state)\n{\n    if (f())\n        fail_msg(\"no\");\n}\n\n"
     "static void run(void)\n{\n    f();\n}\n"),
    ("columns", "node/a.c", "/* " + "a" * 90 + " */\n"),
    ("columns", "CMakeLists.txt", "# " + "a" * 90 + "\n"),
    (None, "README.md", "a" * 200 + "\n"),
    ("tab", "scripts/a", "if true; then\n\techo\nfi\n"),
    ("trailing-blank", "docs/a.md", "a \n"),
    ("trailing-blank", "node/a.c", "int a;\r\n"),
    ("last-line", "node/a.c", "int a;"),
    ("last-line", "node/a.c", "int a;\n\n"),
    ("marker", "node/a.c", "/* TO" "DO: more */\n"),
    ("marker", "python/a.py", "# FIX" "ME\n"),
    ("marker", "scripts/a", "# XX" "X\n"),
    ("marker", "tests/a.cmake", "# HA" "CK\n"),
    (None, "node/a.c", "char name[] = \"muster-XXXXXX\";\n"),
    ("machine-path", "docs/a.md", "see /" "work/a\n"),
    ("machine-path", "tests/test_a.c", "char *a = \"/" "root/b\";\n"),
    (None, "docs/a.md", "see docs/" "work/a and /usr/" "lib and file://" "/path\n"),
    ("top-level", "(null).new", "a\n"),
    ("utf-8", "node/a.c", b"/* \xff */\n"),
    (None, "build/dev/a.c", "\tprintf(\n"),
    (None, "tests/fuzz/corpus/a/b.json", "\t"),
]


def self_test():
    failures = 0
    for rule, path, text in CASES:
        with tempfile.TemporaryDirectory() as root:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
            found = sorted({finding[2] for finding in check(root)})
        if found != ([rule] if rule else []):
            failures += 1
            print(f"self-test: {path}: {text!r}: expected {rule}, found {found}")
    for rule in sorted(set(RULES) - {case[0] for case in CASES}):
        failures += 1
        print(f"self-test: no case for the rule {rule}")
    print(f"self-test: {len(CASES)} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = arguments[0] if arguments else os.path.join(os.path.dirname(__file__), "..")
    findings = check(os.path.abspath(root))
    for path, line, rule, words in findings:
        print(f"{path}:{line}: {rule}: {words}")
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
