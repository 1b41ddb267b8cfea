#!/usr/bin/env python3
"""The guide shows examples/hello whole, and it and the README show parts of other
examples: they must not drift apart.

Also looks that every relative link of the pages leads somewhere, and that the README
stays short."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def flat(text):
    """Without indentation, by which a part may differ."""
    return "\n".join(line.strip() for line in text.splitlines())


README_LINES_MAX = 150


def problems_of_examples(page, text, sources):
    for block in re.findall(r"```c\n(.*?)```", text, re.DOTALL):
        if not any(flat(block) in source for source in sources):
            yield f"{page}: in no example: {block.splitlines()[0]}"


def problems_of_links(page, text):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        if not (folder / target).exists():
            yield f"{page}: nothing at {target}"


def main():
    readme = (ROOT / "README.md").read_text()
    guide = (ROOT / "docs/guide.md").read_text()
    program = (ROOT / "examples/hello/program_hello.c").read_text()
    sources = [flat(path.read_text()) for path in sorted(ROOT.glob("examples/*/*.c"))]
    problems = []
    if f"```c\n{program}```" not in guide:
        problems.append("docs/guide.md: does not show examples/hello/program_hello.c")
    if len(readme.splitlines()) > README_LINES_MAX:
        problems.append(f"README.md: over {README_LINES_MAX} lines: move parts to docs/")
    problems += problems_of_examples("README.md", readme, sources)
    for page in ("docs/guide.md", "docs/tutorial-ctr.md"):
        problems += problems_of_examples(page, (ROOT / page).read_text(), sources)
    for path in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]:
        problems += problems_of_links(path.relative_to(ROOT), path.read_text())
    print("\n".join(problems) if problems else "pages: 0 problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
