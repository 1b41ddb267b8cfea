"""What each rule of tidy.py catches, and what it leaves alone."""

import os
import tempfile

from tidy_rules import (FILE_LINES_MAX, FOLDER_FILES_MAX, FUNCTION_LINES_MAX,
                        PRIVATE_HEADER_LINES_MAX, STRUCT_MEMBERS_MAX)


def long_function(lines):
    return "static void f(void)\n{\n" + "    g();\n" * (lines - 2) + "}\n"


def struct_of(members, last="", name="a"):
    return (f"struct {name} {{\n" + "    int m;    /* a, b; c */\n" * members + last
            + "};\n")


# The same with several files.
TREE_CASES = [
    ("file-names", {"actors/a/x.c": "int a;\n", "node/x.c": "int b;\n"}),
    ("file-names", {"actors/a/x_inner.h": "int a;\n"}),
    (None, {"actors/a/internal.h": "int a;\n", "actors/b/internal.h": "int a;\n",
            "actors/a/actions.h": "int a;\n", "actors/b/actions.h": "int a;\n",
            "tests/x.c": "int a;\n", "node/x.c": "int a;\n"}),
    ("struct-names", {"actors/a.c": "struct x {\n    int a;\n};\n",
                      "node/b.h": "struct x {\n    int a;\n};\n"}),
    (None, {"actors/a.c": "struct x {\n    int a;\n};\n", "node/b.h": "struct x;\n",
            "tests/c.c": "struct x {\n    int a;\n};\n"}),
    ("static-names", {"resolver/a.c": "static int f(int a,\n             int b)\n{\n}\n",
                      "transport/b.h": "static inline bool f(void)\n{\n}\n"}),
    (None, {"resolver/a.c": "static int f(void);\n\nstatic int f(void)\n{\n}\n",
            "transport/b.c": "static int f;\nint g(void)\n{\n    f();\n}\n",
            "tests/c.c": "static int f(void)\n{\n}\n"}),
    ("include-rings",
     {f"node/{a}.{end}": f'#include "node/{b}.h"\n'
      for a, b, end in (("a", "b", "h"), ("b", "c", "c"), ("c", "d", "h"),
                        ("d", "a", "c"))}),
    (None, {f"node/{a}.c": f'#include "node/{b}.h"\n'
            for a, b in ("ab", "bc", "ca", "da")}),
    ("page-paths", {"docs/a.md": "Read `docs/b.md`.\n"}),
    ("page-paths", {"docs/a.md": "see node/c_*.c\n", "node/a_b.c": "int a;\n"}),
    (None, {"docs/a.md": "[text](python/b.md), node/*_b.c, node/a_b.c:30, node/, "
                         "node/<name>, not/node/a, node/a_b, docs/python.\n",
            "docs/python/b.md": "node/a_b.c\n", "node/a_b.c": "int a;\n"}),
    ("page-tests", {"docs/coverage-a.md": "| a | b | file: some, other |\n",
                    "tests/test_b.c": "void test_something(void);\n"}),
    (None, {"docs/coverage-a.md": "| a | b | file: some, thing; b; real: b; "
                                  "x: in words |\n",
            "tests/test_b.c": "void test_something(void);\n"}),
    ("folder-files", {f"node/a/f{i}.md": "a\n" for i in range(FOLDER_FILES_MAX + 1)}),
    (None, {f"tests/mutants/f{i}.patch": "a\n" for i in range(FOLDER_FILES_MAX + 1)}),
]

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
    ("wall", "resolver/spec/a.c", '#include "resolver/engine/request_table.h"\n'),
    ("wall", "resolver/engine/a.c", '#include "resolver/source/mpi.h"\n'),
    ("wall", "resolver/source/a.c", '#include "resolver/cloud/google/gce.h"\n'),
    ("wall", "node/a.c", '#include "api/coordinator.h"\n'),
    ("wall", "api/a.c", '#include "cli/verbs.h"\n'),
    ("wall", "cli/a.c", '#include "node/node.h"\n'),
    ("wall", "cli/run/a.c", '#include "runtime/uv/thread.h"\n'),
    (None, "cli/a.c", '#include "runtime/base/text.h"\n#include "muster/node.h"\n'),
    (None, "cli/options/a.c", '#include "node/options.h"\n'),
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
    (None, "transport/wire/nng/a.c", "#include <nng/nng.h>\n"),
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
    ("wall", "node/a.c", '#include "sim/world/sim.h"\n'),
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
    ("test-asserts", "tests/test_a.c", "TEST(test_a)\n{\n}\n\nTEST_PROGRAM()\n"),
    ("test-asserts", "tests/real/test_a.c",
     "TEST(test_a)\n{\n    /* assert_true(1); */\n    f(\"fail(\");\n}\n\n"
     "int main(void)\n{\n    return tests_run(NULL, NULL);\n}\n"),
    (None, "tests/test_a.c",
     "TEST(test_a)\n{\n    assert_int_equal(f(), 1);\n}\n\n"
     "TEST_ON(test_b, struct f *f, set_up, NULL)\n{\n    run_and_expect(\"a\", 2);\n}\n\n"
     "TEST(test_c)\n{\n    if (f())\n        fail_msg(\"no\");\n}\n\n"
     "static void run(void)\n{\n    f();\n}\n\nTEST_PROGRAM()\n"),
    ("test-macro", "tests/test_a.c",
     "static void test_a(void **state)\n{\n    assert_true(f());\n}\n"),
    ("test-macro", "tests/test_a.c",
     "TEST(test_a)\n{\n    assert_true(f());\n}\n\nint main(void)\n{\n}\n"),
    ("test-macro", "tests/real/a.h", "#include <cmocka.h>\n"),
    (None, "tests/support/test.h", "#include <cmocka.h>\n"),
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
    (None, "docs/a.md", "see a/" "work/a and /usr/" "lib and file://" "/path\n"),
    ("prose-columns", "docs/a.md", "a " * 60 + "b\n"),
    (None, "docs/a.md", "a " * 59 + "b\n| " + "a " * 99 + "|\n- https://" + "a" * 200
     + "\n"),
    ("file-lines", "node/a.c", "int a;\n" * (FILE_LINES_MAX + 1)),
    ("file-lines", "tests/test_a.c", "int a;\n" * (FILE_LINES_MAX + 1)),
    ("file-lines", "python/muster/a.py", "a = 1\n" * (FILE_LINES_MAX + 1)),
    (None, "node/a.c", "int a;\n" * FILE_LINES_MAX),
    (None, "actors/messages.h", "int a;\n" * (FILE_LINES_MAX + 1)),
    ("private-header", "node/a.h", "int a;\n" * (PRIVATE_HEADER_LINES_MAX + 1)),
    (None, "node/a.h", "int a;\n" * PRIVATE_HEADER_LINES_MAX),
    (None, "include/muster/a.h", "int a;\n" * (PRIVATE_HEADER_LINES_MAX + 1)),
    (None, "tests/support/a.h", "int a;\n" * (PRIVATE_HEADER_LINES_MAX + 1)),
    ("struct-members", "actors/a.h", struct_of(STRUCT_MEMBERS_MAX + 1)),
    ("struct-members", "node/a.c", struct_of(STRUCT_MEMBERS_MAX - 1, "    int x, y;\n")),
    (None, "actors/a.h", struct_of(STRUCT_MEMBERS_MAX)),
    (None, "actors/a.h", struct_of(STRUCT_MEMBERS_MAX - 1,
                                   "    int (*f)(int a,\n             int b, int c);\n")),
    (None, "actors/a.h", struct_of(STRUCT_MEMBERS_MAX + 1, name="mu__a_config")),
    (None, "tests/sim/a.h", struct_of(STRUCT_MEMBERS_MAX + 1)),
    (None, "actors/a.h",
     struct_of(1, "    struct {\n" + "        int a;\n" * 30 + "    } b;\n"
               "    int (*f)(int a, int b, int c);\n")),
    ("retired-words", "actors/a.c", "int was_told;\n"),
    ("retired-words", "actors/a.c", "enum { MU_A_USUAL };\n"),
    ("retired-words", "include/muster/a.h", "int mu_ask_node(void);\n"),
    ("retired-words", "node/a.c", "int wait_for(int limit_ms);\n"),
    ("retired-words", "node/a.c", "/* After `limit_ms`. */\n"),
    ("retired-words", "node/a.c", "/* A famine. */\n"),
    ("retired-words", "node/a.c", "/* The\n * finders\n */\n"),
    (None, "node/a.c", "/* It was told so. */\nf(\"told the finder\");\nint task;\n"),
    (None, "tests/test_a.c", "int told; /* A famine. */\n"),
    ("top-level", "(null).new", "a\n"),
    ("utf-8", "node/a.c", b"/* \xff */\n"),
    (None, "build/dev/a.c", "\tprintf(\n"),
    (None, "tests/fuzz/corpus/a/b.json", "\t"),
]


def self_test(check, rules):
    failures = 0
    cases = [(rule, {path: text}) for rule, path, text in CASES] + TREE_CASES
    for rule, files in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "wb") as file:
                    file.write(text if isinstance(text, bytes) else text.encode())
            found = sorted({finding[2] for finding in check(root)})
        if found != ([rule] if rule else []):
            failures += 1
            print(f"self-test: {str(files)[:400]}: expected {rule}, found {found}")
    for rule in sorted(set(rules) - {case[0] for case in cases}):
        failures += 1
        print(f"self-test: no case for the rule {rule}")
    print(f"self-test: {len(cases)} cases, {failures} failures")
    return 1 if failures else 0
