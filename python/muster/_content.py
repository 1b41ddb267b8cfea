"""What a function consists of: what a pickle of it by value would contain.

content_of() lists it as checks (python/src/coordinator/content.c), which tell cheaply
whether any of it has changed since.
"""

from __future__ import annotations

import abc
import copyreg
import dis
import enum
import functools
import gc
import logging
import operator
import re
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from . import _muster

# A function that consists of more is pickled whenever it is scheduled.
_THINGS_MAX = 200_000

_HEAP_TYPE = 1 << 9     # Py_TPFLAGS_HEAPTYPE

_FUNCTION, _CELL, _ATTRIBUTE, _ITEM, _LIST, _DICT, _SET, _ARRAY = range(8)

_Check = Tuple[int, Any, Any, Tuple[Any, ...], bool]


class _Unknown(Exception):
    """There is something in it whose changes cannot be seen."""


def content_of(function: types.FunctionType) -> Optional["_muster.Content"]:
    """What a function consists of now; None when changes of it could not be seen."""
    walk = _Walk()
    try:
        walk.add(function)
        return _muster.Content(walk.checks)
    except _Unknown:
        return None


# ---- what never changes ----

_CONSTANTS = {
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",), "fractions": ("Fraction",), "uuid": ("UUID",),
    "pathlib": ("PosixPath", "PurePosixPath"), "numpy": ("dtype", "ufunc"),
}


def _constant_types() -> Set[type]:
    found: Set[type] = {type(None), bool, int, float, complex, str, bytes, range, slice,
             type(...), type(NotImplemented), types.BuiltinFunctionType, types.CodeType,
             types.GetSetDescriptorType, types.MemberDescriptorType,
             types.WrapperDescriptorType, types.MethodDescriptorType,
             types.ClassMethodDescriptorType, types.MethodWrapperType, re.Pattern,
             operator.itemgetter, operator.attrgetter, logging.Logger,
             _muster.RemoteValue, _muster.PerWorkerValues}
    found.add(type(vars(abc.ABC)["_abc_impl"]))
    for module, names in _CONSTANTS.items():
        have = sys.modules.get(module)
        found.update(getattr(have, name) for name in names if hasattr(have, name))
    return found


_constants: Set[type] = set()


def _is_constant(value: Any) -> bool:
    kind = type(value)
    if kind in _constants:
        return True
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return not isinstance(value, numpy.void)
    return kind.__module__ == "typing"


def _by_value(module: Any) -> bool:
    """Whether cloudpickle was told to pickle a module by value."""
    cloudpickle = sys.modules.get("cloudpickle")
    while module and cloudpickle is not None:
        if module in cloudpickle.list_registry_pickle_by_value():
            return True
        module = module.rpartition(".")[0]
    return False


def _named_in(value: Any) -> Optional[Tuple[Dict[str, Any], str]]:
    """The globals in which a function or a class is pickled by name, and the first part
    of its name; None: it is pickled by value."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    have = sys.modules.get(module) if isinstance(module, str) else None
    if have is None or module == "__main__" or not isinstance(name, str) or \
            _by_value(module):
        return None
    found: Any = have
    for part in name.split("."):
        found = getattr(found, part, None)
    return (vars(have), name.partition(".")[0]) if found is value else None


_NAMES: "weakref.WeakKeyDictionary[types.CodeType, Tuple[str, ...]]" = \
    weakref.WeakKeyDictionary()


def _globals_of(code: types.CodeType) -> Tuple[str, ...]:
    """The globals that code names, and code inside of it."""
    known = _NAMES.get(code)
    if known is None:
        names = {step.argval for step in dis.get_instructions(code)
                 if step.opname.endswith("_GLOBAL")}
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                names.update(_globals_of(const))
        known = _NAMES[code] = tuple(sorted(names))
    return known


def _is_plain(kind: Any) -> bool:
    """Whether the state of a class's objects is in their __dict__ and __slots__ alone."""
    if kind.__reduce_ex__ is not object.__reduce_ex__ or \
            kind.__reduce__ is not object.__reduce__ or kind in copyreg.dispatch_table:
        return False
    for base in kind.__mro__[:-1]:
        own = vars(base)
        if not base.__flags__ & _HEAP_TYPE or "__module__" not in own:
            return False
        if base.__base__ is object and "__slots__" not in own and "__dict__" not in own:
            return False
    return True


# ---- walking ----

class _Walk:
    """Makes the checks of everything that can be reached from a function."""

    def __init__(self) -> None:
        if not _constants:
            _constants.update(_constant_types())
        self.checks: List[_Check] = []
        self._seen: Dict[int, Any] = {}     # holds what was seen, whose ids are the keys
        self._things = 0

    def _check(self, kind: int, holder: Any, key: Any = None, *expected: Any) -> None:
        is_weak = False
        if expected and kind in (_CELL, _ATTRIBUTE, _ITEM) and _is_array(expected[0]):
            # It may be large, and the program may let go of it.
            expected, is_weak = (weakref.ref(expected[0]),), True
        self.checks.append((kind, holder, key, expected, is_weak))

    def _attribute(self, holder: Any, name: str) -> Any:
        value = object.__getattribute__(holder, name)
        self._check(_ATTRIBUTE, holder, name, value)
        return value

    def add(self, value: Any) -> None:
        """Add the checks of a value, unless it cannot change or was seen."""
        self._things += 1
        if self._things > _THINGS_MAX:
            raise _Unknown
        if _is_constant(value) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        add = _KINDS.get(type(value))
        if add is not None:
            add(self, value)
        elif isinstance(value, type):
            self._class(value)
        elif _is_array(value):
            self._array(value)
        else:
            self._object(value)

    def _all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def _function(self, function: Any) -> None:
        place = _named_in(function)
        if place is not None:
            # By name, unless the name comes to mean something else.
            self._check(_ITEM, place[0], place[1], place[0].get(place[1]))
            return
        code = function.__code__
        parts = (function.__defaults__, function.__kwdefaults__, function.__dict__)
        self._check(_FUNCTION, function, None, (code, *parts))
        self._all(parts)
        self._all(function.__closure__ or ())
        space = function.__globals__
        for name in _globals_of(code):
            if name in space:
                value = space[name]
                self._check(_ITEM, space, name, value)
                self.add(value)
            else:
                self._check(_ITEM, space, name)

    def _cell(self, cell: Any) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            self._check(_CELL, cell)
            return
        self._check(_CELL, cell, None, value)
        self.add(value)

    def _class(self, kind: Any) -> None:
        place = _named_in(kind)
        if place is not None:
            if kind.__flags__ & _HEAP_TYPE:
                self._check(_ITEM, place[0], place[1], place[0].get(place[1]))
            return
        self._proxy(vars(kind))
        self._all(kind.__bases__)
        self.add(type(kind))

    def _proxy(self, proxy: Any) -> None:
        of = gc.get_referents(proxy)
        if len(of) != 1 or type(of[0]) is not dict:
            raise _Unknown
        self._dict(of[0])

    def _method(self, method: Any) -> None:
        self.add(method.__func__)
        self.add(method.__self__)

    def _static(self, method: Any) -> None:
        self.add(method.__func__)

    def _property(self, each: Any) -> None:
        self._all((each.fget, each.fset, each.fdel))

    def _partial(self, partial: Any) -> None:
        self._all((partial.func, partial.args, partial.keywords))
        self.add(self._attribute(partial, "__dict__"))

    def _module(self, module: Any) -> None:
        name = str(module.__name__)
        if sys.modules.get(name) is not module or _by_value(name):
            raise _Unknown

    def _tuple(self, items: Any) -> None:
        self._all(items)

    def _list(self, items: List[Any]) -> None:
        now = tuple(items)
        self._check(_LIST, items, None, now)
        self._all(now)

    def _dict(self, items: Dict[Any, Any]) -> None:
        now = tuple(each for pair in list(items.items()) for each in pair)
        self._check(_DICT, items, None, now)
        self._all(now)

    def _set(self, items: Any) -> None:
        now = tuple(items)
        self._check(_SET, items, None, now)
        self._all(now)

    def _array(self, array: Any) -> None:
        if array.dtype.hasobject or not (array.flags.c_contiguous or
                                         array.flags.f_contiguous):
            raise _Unknown
        if not _is_read_only(array):
            self._check(_ARRAY, weakref.ref(array), None, array.__array_interface__)

    def _object(self, value: Any) -> None:
        kind = type(value)
        if isinstance(value, enum.Enum):
            self.add(kind)
            return
        if isinstance(value, _by_reference()):
            return
        if not _is_plain(kind):
            raise _Unknown
        slots = copyreg._slotnames(kind)  # type: ignore[attr-defined]
        self._attribute(value, "__class__")
        self.add(kind)
        if hasattr(value, "__dict__"):
            self.add(self._attribute(value, "__dict__"))
        for name in slots:
            try:
                self.add(self._attribute(value, name))
            except AttributeError:
                self._check(_ATTRIBUTE, value, name)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray


def _is_read_only(array: Any) -> bool:
    """Whether nobody can write to an array: not to those either that it is a part of."""
    while _is_array(array):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or type(array) is bytes


def _by_reference() -> Tuple[type, ...]:
    """Objects that are sent as a reference to what is elsewhere."""
    from .variable import Variable

    return (Variable,)


_KINDS: Dict[type, Callable[[_Walk, Any], None]] = {
    types.FunctionType: _Walk._function,
    types.CellType: _Walk._cell,
    types.MethodType: _Walk._method,
    types.ModuleType: _Walk._module,
    staticmethod: _Walk._static,
    classmethod: _Walk._static,
    property: _Walk._property,
    functools.partial: _Walk._partial,
    types.MappingProxyType: _Walk._proxy,
    tuple: _Walk._tuple,
    frozenset: _Walk._tuple,
    list: _Walk._list,
    dict: _Walk._dict,
    set: _Walk._set,
}
