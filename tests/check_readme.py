#!/usr/bin/env python3
"""The README shows examples/hello whole, and parts of other examples: they must not drift
apart.

Also looks that every relative link of the README leads somewhere."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def flat(text):
    """Without indentation, by which a part may differ."""
    return "\n".join(line.strip() for line in text.splitlines())


def main():
    readme = (ROOT / "README.md").read_text()
    program = (ROOT / "examples/hello/program_hello.c").read_text()
    problems = []
    if f"```c\n{program}```" not in readme:
        problems.append("README.md: the C example is not examples/hello/program_hello.c")
    sources = [flat(path.read_text()) for path in sorted(ROOT.glob("examples/*/*.c"))]
    for block in re.findall(r"```c\n(.*?)```", readme, re.DOTALL):
        if not any(flat(block) in source for source in sources):
            problems.append(f"README.md: in no example: {block.splitlines()[0]}")
    for target in re.findall(r"\]\(([^)#:]+)\)", readme):
        if not (ROOT / target).exists():
            problems.append(f"README.md: nothing at {target}")
    print("\n".join(problems) if problems else "README.md: 0 problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
