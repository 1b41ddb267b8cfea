"""Sphinx: the API reference, from the docstrings of the package that is installed.

    sphinx-build -W docs/python/reference build/python/reference

A page for each public module is written into the folder modules/ beside the output.
"""

import importlib
import pathlib
import pkgutil
import re

import muster

project = "muster"
release = version = muster.__version__
copyright = "the authors of muster"
extensions = ["sphinx.ext.autodoc"]
html_theme = "alabaster"
html_show_sourcelink = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
exclude_patterns = []
add_module_names = False

# What classes of Python itself say about their methods is not repeated.
_PLAIN = ("object,BaseException,Exception,ValueError,TypeError,RuntimeError,LookupError,"
          "TimeoutError,MemoryError,NotImplementedError,Future,Executor,tuple,dict,list,"
          "ABC,Iterator,Generic,BrokenExecutor,NamedTuple")
autodoc_default_options = {"members": True, "inherited-members": _PLAIN,
                           "show-inheritance": False}

# A paragraph that begins so says what arguments or attributes are: "workers, ps: how".
_FIELD = re.compile(r"^([a-z_][\w]*(?:, [a-z_*][\w]*)*|[A-Z]\w*Error): (.*)$")


def _escape(line):
    """Docstrings are plain text: stars and bars mean themselves."""
    return re.sub(r"(?<!\\)([*|])", r"\\\1", re.sub(r"(\w)_(?!\w)", r"\1\\_", line))


def _paragraphs(lines):
    paragraph = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _fields(paragraph):
    """Lines of a paragraph as a list: an item where a field begins."""
    items = []
    for line in paragraph:
        match = _FIELD.match(line)
        if match:
            items.append([f"* **{_escape(match.group(1))}**: {_escape(match.group(2))}"])
        elif items:
            items[-1].append("  " + _escape(line.strip()))
        else:
            return None
    return [line for item in items for line in item]


def _to_rst(app, what, name, obj, options, lines):
    result = []
    for paragraph in _paragraphs(lines):
        if all(line.startswith("    ") for line in paragraph):
            result += ["::", "", *paragraph, ""]
            continue
        fields = _fields(paragraph)
        result += [*(fields or [_escape(line) for line in paragraph]), ""]
    lines[:] = result


def _modules():
    for found in pkgutil.iter_modules(muster.__path__):
        if found.name.startswith("_"):
            continue
        try:
            yield importlib.import_module(f"muster.{found.name}")
        except ImportError as error:    # what it is for is not installed here
            if (error.name or "").startswith("muster"):
                raise


def _write_pages(app):
    folder = pathlib.Path(app.srcdir) / "modules"
    folder.mkdir(exist_ok=True)
    for module in _modules():
        title = module.__name__
        text = (f"{title}\n{'=' * len(title)}\n\n.. automodule:: {title}\n")
        page = folder / f"{title}.rst"
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def setup(app):
    app.connect("builder-inited", _write_pages)
    app.connect("autodoc-process-docstring", _to_rst)
