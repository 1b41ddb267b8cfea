#!/usr/bin/env python3
"""Layers hold for calls: no object uses a symbol that a higher layer defines.

    check_layers.py BUILD_FOLDER
    check_layers.py --self-test

What is defined and used is what nm says of the library's objects. A table of functions
that a caller hands down is no call up; a prototype that is declared again below is.
"""

import os
import re
import subprocess
import sys

# Folders from the lowest layer up; those in one row may call each other.
LAYERS = [
    ["runtime/base"],
    ["runtime/kernel", "runtime/message", "runtime/document"],
    ["runtime/uv"],
    ["transport", "resolver/spec"],
    ["actors", "resolver/engine"],
    ["resolver/source", "resolver/cloud"],
    ["resolver"],
    ["node"],
    ["api"],
    ["cli"],
]
RANKS = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}

# The program uses public functions, its own, and what knows nothing of muster; but for
# the table of flags.
PROGRAM = re.compile(r"cli/(?!options/)")
OF_PROGRAM = re.compile(r"(cli|runtime/base)/|runtime/message/arguments\.c$")
OBJECT = re.compile(r"(?:core_objects|outer_objects|muster_cloud\w*)\.dir/(.*\.c)\.o$")


def rank_of(source):
    """By the longest folder that is named; None: it is of no layer."""
    folder = source.rpartition("/")[0]
    while folder and folder not in RANKS:
        folder = folder.rpartition("/")[0]
    return RANKS.get(folder)


def objects_of(build):
    """The first object of each source: those of the cloud library are compiled twice."""
    found = {}
    for folder, _, names in os.walk(os.path.join(build, "CMakeFiles")):
        for name in names:
            path = os.path.join(folder, name)
            match = OBJECT.search(path)
            if match and os.path.exists(match.group(1)):
                found.setdefault(match.group(1), path)
    return found


def symbols_of(path):
    """Names that an object defines, and those that it uses."""
    lines = subprocess.run(["nm", path], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    words = [line.split() for line in lines]
    return ({word[2] for word in words if len(word) == 3 and word[1] in "TDBRVW"},
            {word[1] for word in words if len(word) == 2 and word[0] == "U"})


def compare(objects):
    """Findings, a line each; {source: (names that it defines, names that it uses)}."""
    home = {name: source for source, (defined, _) in objects.items() for name in defined}
    findings = [f"{source}: is in no layer" for source in sorted(objects)
                if rank_of(source) is None]
    for source in sorted(objects):
        for name in sorted(objects[source][1]):
            other = home.get(name)
            if other is None or rank_of(source) is None or rank_of(other) is None:
                continue
            if rank_of(other) > rank_of(source):
                findings.append(f"{source}: uses {name} of {other}, a higher layer")
            if (PROGRAM.match(source) and not OF_PROGRAM.match(other)
                    and (name.startswith("mu__") or not name.startswith("mu_"))):
                findings.append(f"{source}: uses {name} of {other}, which is not public")
    return findings


def self_test():
    rows = [
        ({"runtime/base/a.c": ({"a"}, {"malloc"}), "node/b.c": ({"b"}, {"a"})}, 0),
        ({"runtime/base/a.c": ({"a"}, {"b"}), "node/b.c": ({"b"}, {"a"})}, 1),
        ({"node/member/a.c": ({"a"}, {"b", "c"}), "api/x/b.c": ({"b", "c"}, set())}, 2),
        ({"resolver/source/a.c": ({"a"}, set()), "resolver/kinds.c": ({"k"}, {"a"})}, 0),
        ({"resolver/engine/a.c": ({"a"}, {"k"}), "resolver/kinds.c": ({"k"}, set())}, 1),
        ({"elsewhere/a.c": (set(), set())}, 1),
        ({"cli/a.c": (set(), {"mu_x", "mu__y", "z"}), "cli/b.c": ({"z"}, set()),
          "api/a.c": ({"mu_x"}, set()), "runtime/base/a.c": ({"mu__y"}, set())}, 0),
        ({"cli/a.c": (set(), {"mu__x"}), "api/a.c": ({"mu__x"}, set())}, 1),
        ({"cli/options/a.c": (set(), {"mu__x"}), "api/a.c": ({"mu__x"}, set())}, 0),
    ]
    failures = sum(len(compare(objects)) != count for objects, count in rows)
    print(f"self-test: {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    build = os.path.abspath(arguments[0])
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    objects = {source: symbols_of(path) for source, path in objects_of(build).items()}
    findings = compare(objects)
    for finding in findings:
        print(finding)
    print(f"layers: {len(objects)} objects, {len(findings)} findings")
    return 1 if findings or not objects else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
