"""What callers know of the class of an actor."""

from __future__ import annotations

import inspect
import weakref
from typing import Any, Dict, NamedTuple, Tuple


class Method(NamedTuple):
    """What callers know of a method."""

    is_stream: bool
    doc: str
    signature: str


class About(NamedTuple):
    """What callers know of a class."""

    name: str
    doc: str
    methods: Dict[str, Method]


_described: "weakref.WeakKeyDictionary[type, About]" = weakref.WeakKeyDictionary()


def _signature_of(function: Any) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    parts = list(signature.parameters.values())
    is_bound = bool(parts) and not isinstance(function, (staticmethod, classmethod))
    return str(signature.replace(parameters=parts[1:] if is_bound else parts))


def describe(cls: type) -> About:
    """What a class has for callers."""
    known = _described.get(cls)
    if known is not None:
        return known
    methods: Dict[str, Method] = {}
    for name in dir(cls):
        function = getattr(cls, name, None)
        if name.startswith("_") or not callable(function):
            continue
        is_stream = inspect.isgeneratorfunction(function) or \
            inspect.isasyncgenfunction(function)
        methods[name] = Method(is_stream, inspect.getdoc(function) or "",
                               _signature_of(function))
    about = About(cls.__qualname__, inspect.getdoc(cls) or "", methods)
    _described[cls] = about
    return about


def pack_about(about: About) -> Tuple[Any, ...]:
    """As plain tuples, for pickles."""
    return (about.name, about.doc,
            {name: tuple(method) for name, method in about.methods.items()})


def read_about(packed: Tuple[Any, ...]) -> About:
    """The opposite of pack_about()."""
    name, doc, methods = packed
    return About(name, doc, {key: Method(*value) for key, value in methods.items()})
