#!/usr/bin/env python3
"""Exported symbols are what the public headers declare, no less and no more.

    check_symbols.py INCLUDE_FOLDER LIBRARY [PROGRAM]
    check_symbols.py --self-test

The program must have every public symbol too: its plugins link nothing of muster.
"""

import glob
import os
import re
import subprocess
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DIRECTIVE = re.compile(r"^[ ]*#(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)
DECLARATION = re.compile(r"\bMU_EXPORT\b([^;{]*)[;{]")
FUNCTION_NAME = re.compile(r"\b(\w+)\s*\(")
OBJECT_NAME = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*$")


def declared(text):
    """Names that a header's text declares with MU_EXPORT."""
    text = DIRECTIVE.sub("", COMMENT.sub(" ", text))
    names = set()
    for part in DECLARATION.findall(text):
        match = FUNCTION_NAME.search(part) or OBJECT_NAME.search(part.strip())
        names.add(match.group(1))
    return names


def declared_in(folder):
    names = set()
    for path in glob.glob(os.path.join(folder, "**", "*.h"), recursive=True):
        with open(path, encoding="utf-8") as file:
            names |= declared(file.read())
    return names


def exported_by(path):
    """Names that the dynamic linker can find in a library or program, with `@@version`
    where they have one; versions themselves are absolute symbols."""
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1] for line in lines if line.split()[-2] != "A"}


def compare(names, library, program):
    """Findings, one line each; `program` is None where there is none."""
    findings = [f"the library exports {name} without a version"
                for name in sorted(library) if "@@MUSTER_" not in name]
    library = {name.split("@")[0] for name in library}
    for name in sorted(library):
        if not name.startswith("mu_") or name.startswith("mu__"):
            findings.append(f"the library exports {name}: not a public name")
        elif name not in names:
            findings.append(f"the library exports {name}: no public header declares it")
    for name in sorted(names):
        if name not in library:
            findings.append(f"the library does not export {name}, which is declared")
        if program is not None and name not in program:
            findings.append(f"the program does not have {name} for its plugins")
    return findings


def self_test():
    header = """
        #define MU_EXPORT __attribute__((visibility("default")))
        /* MU_EXPORT int mu_commented(void); */
        MU_EXPORT const mu_value *mu_at(const mu_value *value,
                                        size_t (*count)(void));
        MU_EXPORT int mu_set(int code, ...) MU_PRINTF(3, 4);
        MU_EXPORT extern const struct mu_behavior mu_table[2];
    """
    names = {"mu_at", "mu_set", "mu_table"}
    library = {name + "@@MUSTER_0.1" for name in names}
    rows = [
        (library, None, 0), (library, names, 0),
        (library | {"mu__inside@@MUSTER_0.1"}, None, 1),
        (library | {"helper@@MUSTER_0.1"}, None, 1),
        (library | {"mu_secret@@MUSTER_0.1"}, None, 1),
        (library - {"mu_set@@MUSTER_0.1"}, None, 1), (library, names - {"mu_set"}, 1),
        (library - {"mu_at@@MUSTER_0.1"} | {"mu_at"}, None, 1),
    ]
    failures = 0 if declared(header) == names else 1
    failures += sum(len(compare(names, library, program)) != count
                    for library, program, count in rows)
    print(f"self-test: {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    names = declared_in(arguments[0])
    program = exported_by(arguments[2]) if len(arguments) > 2 else None
    findings = compare(names, exported_by(arguments[1]), program)
    for finding in findings:
        print(finding)
    print(f"symbols: {len(names)} declared, {len(findings)} findings")
    return 1 if findings or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
