"""Rules of the pages: what they name is there."""

import fnmatch
import re

# What a page calls a path: a name behind one of these folders.
PATH = re.compile(r"(?<![\w/.<-])((?:runtime|actors|transport|resolver|include|node|api|"
                  r"cli|python|tests|bench|examples|docs|scripts)/[\w./*-]*)(<?)")
TEST = re.compile(r"\b(?:test|contract)_\w+")
COVERAGE = re.compile(r"docs/(python/)?coverage[\w-]*\.md$")
HISTORY = re.compile(r"CHANGELOG\.md$|docs/decisions/")


def pages(sources):
    return [source for source in sources
            if source.path.endswith(".md") and not HISTORY.match(source.path)]


def tree_page_paths(sources, files):
    """What a page names by a path is a file or a folder, beside the page or from the
    top; `*` stands for any name, and what ends in `<` for a pattern."""
    paths = set(files)
    paths |= {path[:at] for path in files
              for at in (place.start() for place in re.finditer("/", path))}
    paths |= {path.rpartition(".")[0] for path in files}
    for page in pages(sources):
        folder = page.path.rpartition("/")[0]
        for line, text in enumerate(page.lines, 1):
            for name, pattern in PATH.findall(text):
                name = name.rstrip("./")
                places = [name, f"{folder}/{name}"]
                if not pattern and not any(
                        place in paths or fnmatch.filter(paths, place)
                        for place in places):
                    yield page.path, line, f"{name} is not there"


def tree_page_tests(sources, _):
    """The last column of a coverage page has `file: test, test; file: test`: a test's
    name, or a part of it that says enough, without `test_`, or a row of a contract."""
    names = set()
    for source in sources:
        if source.path.startswith(("tests/", "python/tests/")):
            names.update(TEST.findall(source.text))
            names.add(source.path.rpartition("/")[2].partition(".")[0])
    names = "\n".join(sorted(names))
    for page in pages(sources):
        if not COVERAGE.match(page.path):
            continue
        for line, text in enumerate(page.lines, 1):
            cells = text.split("|")
            groups = cells[-2].split(";") if len(cells) > 4 else []
            for group in groups:
                tests = group.partition(":")[2].split(",")
                for test in (test.strip() for test in tests):
                    if re.fullmatch(r"[a-z][a-z0-9_]*", test) and test not in names:
                        yield page.path, line, f"no test has {test} in its name"


PAGE_RULES = {
    "page-paths": tree_page_paths,
    "page-tests": tree_page_tests,
}
