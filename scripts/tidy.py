#!/usr/bin/env python3
"""House rules, as a test.

    scripts/tidy.py [ROOT]       check a tree (by default the one this file is in)
    scripts/tidy.py --self-test  show that every rule catches what it is for

Each finding is one line: file:line: rule: what is wrong.
"""

import os
import sys

import tidy_cases
from tidy_pages import PAGE_RULES
from tidy_rules import RULES, Source, TEXT_SUFFIXES, TREE_RULES, crowded_folders

# All that the repository's first folder has.
TOP_LEVEL = frozenset("""
    runtime actors transport resolver include node api cli sim python tests bench examples
    docs scripts CMakeLists.txt CMakePresets.json README.md CHANGELOG.md CONTRIBUTING.md
    SECURITY.md LICENSE
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


def names_of(root):
    """Every file of the tree, as a path inside it."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders
                         if not name.startswith((".", "build", "__pycache__"))]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


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
    findings = list(stray_entries(root)) + list(crowded_folders(root))
    sources = []
    for path in files_of(root):
        try:
            with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
                source = Source(path.replace(os.sep, "/"), file.read())
        except UnicodeDecodeError as error:
            findings.append((path, 1, "utf-8", str(error)))
            continue
        for rule, function in RULES.items():
            findings += [(path, line, rule, words) for line, words in function(source)]
        sources.append(source)
    for rule, function in TREE_RULES.items():
        findings += [(path, line, rule, words) for path, line, words in function(sources)]
    names = list(names_of(root))
    for rule, function in PAGE_RULES.items():
        findings += [(path, line, rule, words)
                     for path, line, words in function(sources, names)]
    return findings


def main(arguments):
    if arguments == ["--self-test"]:
        return tidy_cases.self_test(
            check, [*RULES, *TREE_RULES, *PAGE_RULES,
                    "top-level", "utf-8", "folder-files"])
    root = arguments[0] if arguments else os.path.join(os.path.dirname(__file__), "..")
    findings = check(os.path.abspath(root))
    for path, line, rule, words in findings:
        print(f"{path}:{line}: {rule}: {words}")
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
