"""The API reference: built from the docstrings without a warning, and complete."""

import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import shutil
import subprocess
import sys

import pytest

import muster

ROOT = pathlib.Path(__file__).resolve().parents[3]


def public_modules():
    yield muster
    for found in pkgutil.iter_modules(muster.__path__):
        if not found.name.startswith("_"):
            try:
                yield importlib.import_module(f"muster.{found.name}")
            except ImportError as error:    # of what it is for
                assert not (error.name or "").startswith("muster")


def own_members(cls):
    """Those that no class of others has, which it derives from."""
    ours, theirs = set(), set()
    for base in cls.__mro__:
        (ours if base.__module__.startswith("muster") else theirs).update(vars(base))
    return sorted(ours - theirs)


def test_each_public_thing_has_a_docstring():
    bare = []
    for module in public_modules():
        assert module.__doc__, module.__name__
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not callable(thing) or getattr(thing, "__origin__", None) is not None:
                continue
            if not (thing.__doc__ or "").strip():
                bare.append(f"{module.__name__}.{name}")
            if not isinstance(thing, type) or not thing.__module__.startswith("muster"):
                continue
            bare += [f"{module.__name__}.{name}.{member}"
                     for member in own_members(thing) if not member.startswith("_")
                     and not inspect.getdoc(getattr(thing, member, None))]
    assert not bare


@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None,
                    reason="Sphinx is not installed")
def test_the_reference_is_built_without_warnings_and_has_everything(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT / "docs" / "python" / "reference", source,
                    ignore=shutil.ignore_patterns("modules"))
    built = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going",
                            str(source), str(tmp_path / "html")], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert built.returncode == 0, built.stdout
    pages = "".join(page.read_text() for page in (tmp_path / "html").rglob("*.html"))
    public = set(muster.__all__) | set(muster._LAZY)
    missing = [name for name in public if name not in ("__version__", "errors")
               and f".{name}\"" not in pages]
    assert not missing
