"""The rules of tidy.py: of one file (RULES), and of the tree."""

import os
import re

COLUMNS_MAX = 90
PROSE_COLUMNS_MAX = 120
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 700
PRIVATE_HEADER_LINES_MAX = 250
FOLDER_FILES_MAX = 35
RING_FILES_MAX = 3
STRUCT_MEMBERS_MAX = 25

C_SUFFIXES = (".c", ".h", ".cpp")
TEXT_SUFFIXES = C_SUFFIXES + (
    ".py", ".sh", ".md", ".cmake", ".in", ".supp", ".json", "CMakeLists.txt")
# Data is as wide as it is; prose has a limit of its own.
WIDE_SUFFIXES = (".md", ".json")

# What is installed, or linked into it.
LIBRARY = ("runtime", "actors", "transport", "resolver", "node", "api", "cli")

# Tables, one row a line: as long as they are.
TABLES = ("actors/messages.h", "cli/options/flag_rows.h")

# Folders of data, one file an item.
DATA_FOLDERS = re.compile(r"^tests/(mutants|golden|fuzz/corpus/[^/]+)$")

# Structs that are a list of settings, filled in by name and handed on.
SETTINGS_STRUCT = re.compile(r"(_options|_config)$")

# Words that were retired, by the word for it (docs/glossary.md has those in use). The
# first ones are refused in code and comments, the next, which prose needs, as parts of
# names alone, the last as whole names. Strings are free: messages are sentences.
RETIRED = {
    "asker": "requester", "askers": "requesters",
    "dealer": "shard dispenser", "dealers": "shard dispensers",
    "errand": "blocking job", "errands": "blocking jobs",
    "famine": "out-of-memory injection",
    "finder": "discovery", "finders": "discovery",
    "mores": "closure_extra",
    "picky": "constrained",
    "starved": "allocation failure", "starves": "allocation failure",
    "stranger": "unlisted worker", "strangers": "unlisted workers",
}
RETIRED_NAMES = {
    "ask": "request", "asks": "requests", "asked": "requested", "asking": "request",
    "bury": "defer_free",
    "deal": "dataset", "deals": "datasets",
    "debts": "retry_abandons",
    "ender": "job_owner",
    "finding": "discovery", "resolving": "discovery",
    "gone": "closed, lost, removed",
    "knows": "what it is: has, contains, is_known",
    "lane": "pool", "lanes": "pools",
    "lives": "epochs", "life": "epoch, lifecycle",
    "nobody": "sentinel",
    "place": "slot, index, path, address", "places": "slots, indices",
    "question": "request", "questions": "requests",
    "says": "advertised, reported",
    "station": "worker_state", "stations": "worker_states",
    "suspects": "quarantined",
    "told": "reported", "tells": "reports", "tell": "report",
    "usual": "default",
    "wants": "requested, needs", "wanted": "requested, needed",
}
RETIRED_WHOLE = {"limit_ms": "timeout_ms"}
# Names that have such a part and are right: those of libraries, and those that say it as
# everybody does.
RETIRED_EXCEPT = re.compile(
    r"^((uv|ares|curl|CURL\w*|half_life|as_usual)_\w+|\w+_in_place)$")

# Files in such a folder may touch the loop, sockets or HTTP; all others are pure.
OUTER = re.compile(r"/(uv|nng|tls)/[^/]*$")
PURE_FOLDERS = ("actors", "runtime", "transport", "resolver")

OURS = r"^(\.\./)*(%s)/"
UV, NNG, CURL = r"^uv(\.h|/)", r"^nng/", r"^curl/"
CJSON, MSGPACK, CRYPTO, YAML = r"(?i:cjson)", r"msgpack", r"^openssl/", r"^yaml\.h$"

# Who may see what: (files, headers they must not include, except in these files).
WALLS = [
    (r"^include/", (UV, NNG, CURL, CJSON, MSGPACK,
                    OURS % "runtime|actors|transport|resolver|node|api|cli|sim|tests"),
     None),
    (r"^runtime/", (UV, NNG), r"^runtime/uv/"),
    (r"^runtime/", (MSGPACK,), r"^runtime/message/(pack\.h|codec\.c|value_pack\.c)$"),
    (r"^runtime/", (OURS % "actors|transport|resolver|node|api|cli|sim|tests",), None),
    (r"^runtime/base/", (OURS % "runtime/(kernel|message|document|uv)",), None),
    (r"^runtime/(kernel|message|document)/", (OURS % "runtime/uv",), None),
    (r"^actors/", (UV, NNG, CURL, CJSON, MSGPACK, r"^time\.h$",
                   OURS % "runtime/uv|transport|resolver|node|api|cli|sim|tests"), None),
    (r"^transport/", (CURL, CJSON, OURS % "actors|resolver|node|api|cli|sim|tests"),
     None),
    (r"^transport/", (NNG,), r"^transport/wire/nng/"),
    (r"^transport/", (UV, OURS % "runtime/uv"), r"^transport/wire/(uv|nng)/"),
    (r"^transport/link/", (OURS % "transport/wire/(uv|nng)",), None),
    (r"^resolver/", (NNG, MSGPACK, OURS % "actors|transport|node|api|cli|sim|tests"),
     None),
    (r"^resolver/", (UV, OURS % "runtime/uv"), r"/uv/[^/]*$"),
    (r"^resolver/spec/", (OURS % "resolver/(engine|source|cloud)",), None),
    (r"^resolver/engine/", (OURS % "resolver/(source|cloud)",), None),
    (r"^resolver/source/", (OURS % "resolver/cloud",), None),
    # What is in libmuster-cloud, which is loaded when it is needed, is nowhere else.
    (r"^(runtime|actors|transport|resolver|node|api|cli|include)/", (CURL,),
     r"^resolver/cloud/uv/"),
    (r"^(runtime|actors|transport|resolver|node|api|cli|include)/", (CRYPTO,),
     r"^(resolver/cloud/uv|transport/wire/tls)/"),
    (r"^(runtime|actors|transport|resolver|node|api|cli|include)/", (YAML,),
     r"^resolver/cloud/kubernetes/yaml\.c$"),
    (r"^node/", (OURS % "api|cli|sim|tests|bench",), None),
    (r"^api/", (OURS % "cli|sim|tests|bench",), None),
    # The program is the first user of the public headers: of the library's own it has
    # what knows nothing of muster, and how public calls, as mu_main, read arguments.
    (r"^cli/", (OURS % "runtime/(kernel|document|uv)|actors|transport|resolver|node|api"
                       "|sim|tests|bench", r"^runtime/message/(?!arguments\.h$)"),
     r"^cli/options/"),
    (r"^node/member/", (UV, NNG, CURL, OURS % "runtime/uv"), None),
    # The simulated world has the core, and nothing of the real one.
    (r"^sim/", (UV, NNG, CURL, OURS % "runtime/uv|api|cli|tests|bench"), None),
    (r"^(examples|python)/",
     (NNG, CURL, CJSON, MSGPACK,
      OURS % "runtime|actors|transport|resolver|node|api|cli|sim|tests"), None),
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
TEST_FUNCTION = re.compile(r"^(?:LISTED_)?TEST(?:_WITH|_ON)?\((test_\w+)\b")
LISTS_ITSELF = re.compile(r"^TEST(?:_WITH|_ON)?\((\w+)", re.MULTILINE)
RUNS_LISTED = re.compile(r"^[A-Z]+_PROGRAM|\btests_run\(", re.MULTILINE)
OLD_TEST = re.compile(r"^static void test_\w+\(void \*\*|^#include <cmocka\.h>")
COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


class Source:
    """One file: its path inside the tree and its lines, as they are and without
    comments (`plain`) or also without what is in quotes (`code`)."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
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


def rule_test_macro(source):
    if not source.is_c or source.path == "tests/support/test.h":
        return
    for number, line in enumerate(source.plain, 1):
        if OLD_TEST.match(line):
            yield number, "a test is TEST(name), of tests/support/test.h"
    text = "\n".join(source.code)
    listed = LISTS_ITSELF.search(text)
    if listed and not RUNS_LISTED.search(text):
        yield text.count("\n", 0, listed.start()) + 1, \
            f"{listed.group(1)} lists itself, and nothing here runs what does"


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


def rule_prose_columns(source):
    """Tables and lines of one word (a link) are as wide as they are."""
    if not source.path.endswith(".md"):
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > PROSE_COLUMNS_MAX and not line.lstrip().startswith("|") \
                and " " in line.strip("-*> "):
            yield number, f"{len(line)} columns, at most {PROSE_COLUMNS_MAX}: wrap it"


def rule_file_lines(source):
    if not (source.is_c or source.path.endswith(".py")) or source.path in TABLES:
        return
    if len(source.lines) - 1 > FILE_LINES_MAX:
        yield 1, (f"{len(source.lines) - 1} lines, at most {FILE_LINES_MAX}: split it "
                  "by what its parts do")


def rule_private_header(source):
    if not source.path.endswith(".h") or not source.in_folder(*LIBRARY) \
            or source.path in TABLES:
        return
    if len(source.lines) - 1 > PRIVATE_HEADER_LINES_MAX:
        yield 1, (f"header of {len(source.lines) - 1} lines, at most "
                  f"{PRIVATE_HEADER_LINES_MAX}: give each part a header of its own")


STRUCT = re.compile(r"^(?:typedef )?struct (\w+) \{\s*$")


def structs(source):
    """(line, name, number of members) of each struct that begins a line. What is nested
    in it counts once, parameters of a pointer to a function not."""
    start, name, members, depth, parens = None, None, 0, 0, 0
    for number, line in enumerate(source.code, 1):
        match = STRUCT.match(line)
        if match and start is None:
            start, name, members, depth, parens = number, match.group(1), 0, 0, 0
        if start is None:
            continue
        for part in re.findall(r"[(){};,]", line):
            parens += (part == "(") - (part == ")")
            depth += (part == "{") - (part == "}")
            members += depth == 1 and parens == 0 and part in ";,"
        if depth == 0 and "}" in line:
            yield start, name, members
            start = None


def rule_struct_members(source):
    if not source.is_c or not source.in_folder(*LIBRARY):
        return
    for line, name, members in structs(source):
        if members > STRUCT_MEMBERS_MAX and not SETTINGS_STRUCT.search(name):
            yield line, (f"struct {name} has {members} members, at most "
                         f"{STRUCT_MEMBERS_MAX}: make parts of it, each a struct with "
                         "a file of its own")


COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def rule_retired_words(source):
    if not source.is_c or not source.in_folder("include", *LIBRARY):
        return
    for number, line in enumerate(source.code, 1):
        if INCLUDE.match(source.plain[number - 1]):
            continue
        for name in re.findall(r"[A-Za-z_]\w*", line):
            for part in name.lower().split("_"):
                word = RETIRED.get(part) or RETIRED_NAMES.get(part)
                if word and not RETIRED_EXCEPT.match(name):
                    yield number, f"{name}: \"{part}\" was retired; say {word}"
            if name in RETIRED_WHOLE:
                yield number, f"{name} was retired; say {RETIRED_WHOLE[name]}"
    text = "\n".join(source.lines)
    for comment in COMMENT.finditer(text):
        for match in re.finditer(r"[a-z]+", comment.group(0).lower()):
            if match.group(0) in RETIRED:
                number = text.count("\n", 0, comment.start() + match.start()) + 1
                yield number, (f"\"{match.group(0)}\" was retired; say "
                               f"{RETIRED[match.group(0)]}")
        for match in re.finditer(r"\w+", comment.group(0)):
            if match.group(0) in RETIRED_WHOLE:
                number = text.count("\n", 0, comment.start() + match.start()) + 1
                yield number, (f"{match.group(0)} was retired; say "
                               f"{RETIRED_WHOLE[match.group(0)]}")


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
    "test-macro": rule_test_macro,
    "columns": rule_columns,
    "tab": rule_tab,
    "trailing-blank": rule_trailing_blank,
    "last-line": rule_last_line,
    "marker": rule_marker,
    "machine-path": rule_machine_path,
    "prose-columns": rule_prose_columns,
    "file-lines": rule_file_lines,
    "private-header": rule_private_header,
    "struct-members": rule_struct_members,
    "retired-words": rule_retired_words,
}


# ---- rules of the tree: what no file shows alone ----

def library_files(sources):
    return [source for source in sources if source.is_c and source.in_folder(*LIBRARY)]


# One of each in a folder: what its files share, and what they call on the whole actor.
FOLDER_HEADERS = ("internal.h", "actions.h")


def tree_file_names(sources):
    first = {}
    for source in library_files(sources):
        name = os.path.basename(source.path)
        if re.search(r"_(inner|parts|internal)\.h$", name):
            yield source.path, 1, ("one header is what the files of a folder share: "
                                   "internal.h")
        if name in FOLDER_HEADERS:
            continue
        if name in first:
            yield source.path, 1, (f"the name of {first[name]}, too: name it after what "
                                   "it holds")
        first.setdefault(name, source.path)


def tree_struct_names(sources):
    first = {}
    for source in library_files(sources):
        for line, name, _ in structs(source):
            if name in first:
                yield source.path, line, (f"struct {name} is in {first[name]}, too: name "
                                          "it after what it is here")
            first.setdefault(name, source.path)


STATIC_FUNCTION = re.compile(r"^static [^;{}=()]*\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)


def tree_static_names(sources):
    first = {}
    for source in library_files(sources):
        code = "\n".join(source.code)
        for match in STATIC_FUNCTION.finditer(code):
            name, line = match.group(1), code.count("\n", 0, match.start()) + 1
            if first.get(name, source.path) != source.path:
                yield source.path, line, (f"{name}() is in {first[name]}, too: say in "
                                          "its name what it does, and to what")
            first.setdefault(name, source.path)


def rings(edges):
    """The strongly connected components with several nodes (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def tree_include_rings(sources):
    """x.c and x.h are one file here: who includes x.h is bound to both."""
    stems = {os.path.splitext(source.path)[0] for source in library_files(sources)}
    edges = {stem: set() for stem in stems}
    for source in library_files(sources):
        stem = os.path.splitext(source.path)[0]
        for line in source.plain:
            match = INCLUDE.match(line)
            other = os.path.splitext(match.group(1))[0] if match else None
            if other in stems and other != stem \
                    and os.path.dirname(other) == os.path.dirname(stem):
                edges[stem].add(other)
    for ring in rings(edges):
        if len(ring) > RING_FILES_MAX:
            names = ", ".join(os.path.basename(stem) for stem in ring)
            yield ring[0] + ".c", 1, (f"a ring of includes over {len(ring)} files, at "
                                      f"most {RING_FILES_MAX}: {names}; let parts be "
                                      "given what they call back")


TREE_RULES = {
    "file-names": tree_file_names,
    "struct-names": tree_struct_names,
    "static-names": tree_static_names,
    "include-rings": tree_include_rings,
}


def crowded_folders(root):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name for name in subfolders
            if not name.startswith((".", "build", "__pycache__")))
        path = os.path.relpath(folder, root).replace(os.sep, "/")
        names = [name for name in names if not name.startswith(".")
                 and not name.endswith((".so", ".pyc"))]
        if len(names) > FOLDER_FILES_MAX and not DATA_FOLDERS.match(path):
            yield path, 1, "folder-files", (
                f"{len(names)} files, at most {FOLDER_FILES_MAX}: make folders of what "
                "belongs together")
