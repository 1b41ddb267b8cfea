"""Errors: one class for each code of the library, with TensorFlow's names.

Every error of muster is a :class:`MusterError`. Its attributes say what it is about;
decide from them and from the class, never from words.
"""

from __future__ import annotations

import binascii
import pickle
import sys
from typing import Any, Callable, Dict, Optional, Tuple, Type

from . import _muster

__all__ = [
    "MusterError", "OpError", "InputError", "RemoteTraceback", "CancelledError",
    "UnknownError", "InvalidArgumentError", "DeadlineExceededError", "NotFoundError",
    "AlreadyExistsError", "PermissionDeniedError", "ResourceExhaustedError",
    "FailedPreconditionError", "AbortedError", "OutOfRangeError", "UnimplementedError",
    "InternalError", "UnavailableError", "DataLossError", "UnauthenticatedError",
    "OutOfMemoryError", "WouldBlockError", "ClosedError",
]

KINDS = ("other", "function", "input", "worker", "server", "limit", "chief")

# What a pickled exception stands behind in the detail of an error.
_MARK = "\n\x1f"

# The same of its class alone: the exception was too large.
_CLASS_MARK = "\n\x1e"


class RemoteTraceback(Exception):
    """The traceback of an exception on a worker, as text; the cause of the exception
    that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return "\n" + self.text


class MusterError(Exception):
    """An error of the library.

    code: number of the error, 5 for NotFoundError; name: "ENOTFOUND".
    message: one sentence: what, where, what was expected.
    kind: what it is about: "function", "input", "worker", "server", "limit", "chief" or
    "other".
    task: where it comes from, "/job:worker/task:1"; "" when unknown.
    function: name of the closure's function; "" when there was none.
    closure, attempt: number of the closure and of its run; 0 when there was none.
    detail: the worker's traceback, or the last lines of its log; "".
    """

    code = 2

    # Whether a call of the library raised it here: what a program has made itself, or a
    # pickle has brought, is not.
    _of_call = False

    def __init__(self, message: str = "", *, kind: str = "other", task: str = "",
                 function: str = "", closure: int = 0, attempt: int = 0,
                 detail: str = "", code: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.task = task
        self.function = function
        self.closure = closure
        self.attempt = attempt
        self.detail = detail
        if code is not None:
            self.code = code

    @property
    def error_code(self) -> int:
        """The same as code, as TensorFlow calls it."""
        return self.code

    @property
    def name(self) -> str:
        """The code's name, "ENOTFOUND"."""
        return _NAMES.get(self.code, "EUNKNOWN")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        fields = {name: value for name, value in self.__dict__.items()
                  if name != "_of_call"}
        return (_rebuild, (type(self), self.message, fields))


def _rebuild(cls: Type[MusterError], message: str, fields: Dict[str, Any]) -> MusterError:
    error = cls(message)
    error.__dict__.update(fields)
    return error


OpError = MusterError


class CancelledError(MusterError):
    """The closure was cancelled, or thrown away after another one's error."""

    code = 1


class UnknownError(MusterError):
    """A function raised something that is no error of muster."""

    code = 2


class InvalidArgumentError(MusterError, ValueError):
    """An argument is not what was expected."""

    code = 3


class DeadlineExceededError(MusterError, TimeoutError):
    """The time is over; the words name what is missing."""

    code = 4


class NotFoundError(MusterError, LookupError):
    """There is no such thing."""

    code = 5


class AlreadyExistsError(MusterError):
    """There is one already."""

    code = 6


class PermissionDeniedError(MusterError):
    """It may not be done."""

    code = 7


class ResourceExhaustedError(MusterError):
    """A bound was reached."""

    code = 8


class FailedPreconditionError(MusterError):
    """It cannot be done now, or here."""

    code = 9


class AbortedError(MusterError):
    """Workers were lost while it ran."""

    code = 10


class OutOfRangeError(MusterError):
    """Past the end: of a dataset, for instance."""

    code = 11


class UnimplementedError(MusterError, NotImplementedError):
    """This is not there."""

    code = 12


class InternalError(MusterError):
    """A mistake of muster itself."""

    code = 13


class UnavailableError(MusterError):
    """A task is away; `task` names it."""

    code = 14


class DataLossError(MusterError):
    """Something was lost, or is damaged."""

    code = 15


class UnauthenticatedError(MusterError):
    """Nobody knows who asks."""

    code = 16


class OutOfMemoryError(MusterError, MemoryError):
    """There was no memory."""

    code = 17


class WouldBlockError(MusterError):
    """It would have to wait, and was told not to."""

    code = 18


class ClosedError(MusterError):
    """The node, coordinator or variable was closed, or belongs to another process."""

    code = 19


class InputError(MusterError):
    """An input of the closure failed, or could not be built; the cause says how."""

    code = 3


_NAMES: Dict[int, str] = {number: name for name, number, _ in _muster.ERROR_CODES}
_CLASSES: Dict[int, Type[MusterError]] = {
    cls.code: cls for cls in (
        CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError,
        NotFoundError, AlreadyExistsError, PermissionDeniedError, ResourceExhaustedError,
        FailedPreconditionError, AbortedError, OutOfRangeError, UnimplementedError,
        InternalError, UnavailableError, DataLossError, UnauthenticatedError,
        OutOfMemoryError, WouldBlockError, ClosedError)
}


def class_of(code: int) -> Type[MusterError]:
    """The class of a code, positive or negative."""
    return _CLASSES.get(abs(code), UnknownError)


def revive(cls: Type[BaseException], args: Tuple[Any, ...],
           state: Dict[str, Any]) -> BaseException:
    """An exception as it was, without its __init__: that may take other arguments than
    those that it has left in args."""
    exception = cls.__new__(cls)
    exception.args = args
    exception.__dict__.update(state)
    return exception


def _revive_named(module: str, name: str, args: Tuple[Any, ...],
                  state: Dict[str, Any]) -> BaseException:
    """The same, of a class that is found by name here and perhaps not where it was
    raised: in the program itself, for instance."""
    return revive(_find_class(module, name), args, state)


def _find_class(module: str, name: str) -> Type[BaseException]:
    import importlib

    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not issubclass(found, BaseException):
        raise TypeError(f"{module}.{name} is no class of exceptions")
    return found  # type: ignore[no-any-return]


def _words_of(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def parts_of(exception: BaseException, dumps: Callable[[Any], bytes]
             ) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Arguments and attributes of an exception that can be pickled: words stand for other
    arguments (a lock, an open file), other attributes are left out."""
    def travels(value: Any) -> bool:
        try:
            pickle.loads(dumps(value))
            return True
        except Exception:
            return False

    return (tuple(value if travels(value) else _words_of(value)
                  for value in exception.args),
            {name: value for name, value in exception.__dict__.items()
             if travels(value)})


class _Named:
    """Stands for an exception in a pickle."""

    def __init__(self, exception: BaseException) -> None:
        cls = type(exception)
        args, state = parts_of(exception, _dumps)
        self._fields = (cls.__module__, cls.__qualname__, args, state)

    def __reduce__(self) -> Any:
        return (_revive_named, self._fields)


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, 4)


def _dump_exception(exception: BaseException) -> Optional[bytes]:
    """The pickle of an exception; None when it has none that can be read again."""
    try:
        data = _dumps(exception)
        pickle.loads(data)
        return data
    except Exception:
        pass
    if "<" in type(exception).__qualname__:     # local to a function
        return None
    try:
        return _dumps(_Named(exception))
    except Exception:  # what cannot be pickled travels as words
        return None


def _marked(mark: str, data: Optional[bytes]) -> str:
    if data is None:
        return ""
    return mark + binascii.b2a_base64(data, newline=False).decode("ascii")


def pack_exception(text: str, exception: BaseException, room: int) -> str:
    """A traceback's end and the exception itself, or where it does not fit, its class,
    in `room` bytes."""
    cls = type(exception)
    mark = _marked(_MARK, _dump_exception(exception))
    if len(mark) > room * 2 // 3:
        mark = _marked(_CLASS_MARK, pickle.dumps((cls.__module__, cls.__qualname__), 4))
    if len(mark) > room * 2 // 3:
        mark = ""
    left = text.encode("utf-8", "replace").replace(b"\0", b"?")[-(room - len(mark)):]
    return left.decode("utf-8", "ignore") + mark


def _of_class(module: str, name: str, message: str) -> BaseException:
    """An exception of a class with the words that came."""
    found = _find_class(module, name)
    start = found.__name__ + ": "
    words = message[len(start):] if message.startswith(start) else message
    if issubclass(found, MusterError):
        return found(words)
    return revive(found, (words,), {})


def _unpack_exception(detail: str, message: str) -> Tuple[str, Optional[BaseException]]:
    at = max(detail.rfind(_MARK), detail.rfind(_CLASS_MARK))
    if at < 0:
        return detail, None
    text, mark, packed = detail[:at], detail[at:at + 2], detail[at + 2:]
    try:
        value = pickle.loads(binascii.a2b_base64(packed))
        if mark == _CLASS_MARK:
            module, name = value
            value = _of_class(module, name, message)
    except Exception:  # its class is not importable here
        return text, None
    return text, value if isinstance(value, BaseException) else None


def _from_fields(code: int, message: str, kind: int, task: str, function: str,
                 closure: int, attempt: int, detail: str) -> BaseException:
    """The exception of an error of the library: called by the extension."""
    text, original = _unpack_exception(detail, message)
    cls: Type[MusterError] = InputError if kind == 2 else class_of(code)
    error = cls(message, kind=KINDS[kind] if kind < len(KINDS) else "other", task=task,
                function=function, closure=closure, attempt=attempt, detail=text,
                code=code)
    error._of_call = True
    cause = RemoteTraceback(text) if original is not None or "Traceback" in text else None
    if original is None:
        error.__cause__ = cause
        return error
    original.__cause__ = cause
    if kind == 2:
        error.__cause__ = original
        return error
    if isinstance(original, MusterError):
        original.task, original.function = original.task or task, function
        original.closure, original.attempt, original.detail = closure, attempt, text
        return original
    try:
        original.muster_error = error  # type: ignore[attr-defined]
    except AttributeError:
        pass
    return original
