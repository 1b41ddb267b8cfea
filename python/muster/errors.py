"""Errors: one class for each code of the library, with TensorFlow's names.

Every error of muster is a :class:`MusterError`. Decide by its class and attributes, never
by the message.
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
    "OutOfMemoryError", "WouldBlockError", "ClosedError", "ActorError",
    "ActorTimeoutError",
]

KINDS = ("other", "function", "input", "worker", "server", "limit", "chief", "actor")

# In the detail of an error, precedes a pickled exception.
_MARK = "\n\x1f"

# Precedes a pickled name of the exception's class: the exception was too large.
_CLASS_MARK = "\n\x1e"


class RemoteTraceback(Exception):
    """The traceback of an exception on a worker, as text: the cause of the exception that
    is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return "\n" + self.text


class MusterError(Exception):
    """An error of the library.

    code: number of the error, 5 for NotFoundError; name: "ENOTFOUND".
    message: one sentence: what, where, what was expected.
    kind: what it is about: "function", "input", "worker", "server", "limit", "chief",
    "actor" or "other".
    task: where the error arose, "/job:worker/task:1"; "" when unknown.
    function: name of the closure's function; "" without a closure.
    closure, attempt: id of the closure, and number of its run; 0 without a closure.
    detail: the worker's traceback, or the last lines of its log; "".
    """

    code: int = 2

    # Whether a call of the library raised it here, and not the program or a pickle.
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
        """The same as code, under TensorFlow's name."""
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
    """The closure was cancelled, by the program or after an error of another closure."""

    code = 1


class UnknownError(MusterError):
    """A function raised an exception that is not a MusterError."""

    code = 2


class InvalidArgumentError(MusterError, ValueError):
    """An argument is not what was expected."""

    code = 3


class DeadlineExceededError(MusterError, TimeoutError):
    """The timeout has passed; the message names what is missing."""

    code = 4


class NotFoundError(MusterError, LookupError):
    """There is no such task, key, file, closure and so on."""

    code = 5


class AlreadyExistsError(MusterError):
    """It exists already."""

    code = 6


class PermissionDeniedError(MusterError):
    """This task may not do that."""

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
    """The operation is unknown to the peer, or not supported."""

    code = 12


class InternalError(MusterError):
    """A defect of muster itself, or a task that was lost."""

    code = 13


class UnavailableError(MusterError):
    """A task is away; `task` names it."""

    code = 14


class DataLossError(MusterError):
    """Data was lost, or is damaged."""

    code = 15


class UnauthenticatedError(MusterError):
    """The caller could not be authenticated."""

    code = 16


class OutOfMemoryError(MusterError, MemoryError):
    """Out of memory."""

    code = 17


class WouldBlockError(MusterError):
    """The call would have to wait, and its timeout is 0."""

    code = 18


class ClosedError(MusterError):
    """The node, coordinator or variable was closed, or belongs to another process."""

    code = 19


class InputError(MusterError):
    """An input of the closure failed, or could not be computed; see its cause."""

    code = 3
    _input: Any = None      # of one that was sent here: the fields of a _worker.Failed


class ActorError(MusterError):
    """A call to an actor has no answer: the actor has ended, its process was lost, there
    is no such method and so on. An exception of the method itself is raised as it is.

    ran: whether the method ran: "no": surely not, and the call may be made again;
    "maybe": it was begun, or its process was lost meanwhile; "yes": to its end.
    actor: the actor's address. task: where it is. reason: what has happened.
    """

    ran = "maybe"
    actor = ""

    @property
    def reason(self) -> str:
        """What has happened, in one sentence."""
        return self.message


class ActorTimeoutError(ActorError, DeadlineExceededError):
    """A call to an actor was not answered within its timeout."""

    code = 4


_RAN = ("maybe", "no", "maybe", "yes")      # enum mu_ran
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
    """Rebuild an exception without calling its __init__, which may take other arguments
    than those in args."""
    exception = cls.__new__(cls)
    exception.args = args
    exception.__dict__.update(state)
    return exception


def _revive_named(module: str, name: str, args: Tuple[Any, ...],
                  state: Dict[str, Any]) -> BaseException:
    """The same for a class given by name, which need not be importable where the
    exception was pickled: a class of the program itself, for instance."""
    return revive(_find_class(module, name), args, state)


def _find_class(module: str, name: str) -> Type[BaseException]:
    import importlib

    from ._pickling import plain

    if plain.is_plain():
        return plain.find_exception(module, name)  # type: ignore[no-any-return]
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
    """Arguments and attributes of an exception that can be pickled. Other arguments (a
    lock, an open file) are replaced by their repr(), other attributes are left out."""
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
    """Pickles an exception by the name of its class."""

    def __init__(self, exception: BaseException) -> None:
        cls = type(exception)
        args, state = parts_of(exception, _dumps)
        self._fields = (cls.__module__, cls.__qualname__, args, state)

    def __reduce__(self) -> Any:
        return (_revive_named, self._fields)


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, 4)


def _dump_exception(exception: BaseException) -> Optional[bytes]:
    """The pickle of an exception; None when it cannot be pickled or unpickled."""
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
    except Exception:  # then only its text is sent
        return None


def _marked(mark: str, data: Optional[bytes]) -> str:
    if data is None:
        return ""
    return mark + binascii.b2a_base64(data, newline=False).decode("ascii")


def pack_exception(text: str, exception: BaseException, room: int) -> str:
    """The end of a traceback and the pickled exception, or if that is too large its
    class, in at most `room` bytes."""
    cls = type(exception)
    mark = _marked(_MARK, _dump_exception(exception))
    if len(mark) > room * 2 // 3:
        mark = _marked(_CLASS_MARK, pickle.dumps((cls.__module__, cls.__qualname__), 4))
    if len(mark) > room * 2 // 3:
        mark = ""
    left = text.encode("utf-8", "replace").replace(b"\0", b"?")[-(room - len(mark)):]
    return left.decode("utf-8", "ignore") + mark


def _of_class(module: str, name: str, message: str) -> BaseException:
    """An exception of a named class with a message."""
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
    from . import _pickling

    text, mark, packed = detail[:at], detail[at:at + 2], detail[at + 2:]
    try:
        data = binascii.a2b_base64(packed)
        if mark == _CLASS_MARK:
            module, name = _pickling.loads_result(data)
            return text, _of_class(module, name, message)
    except Exception:  # its class is not importable or not allowed here
        return text, None
    return text, _pickling.loads_exception(data)[0]


def _unpack_whole(data: bytes) -> Optional[Tuple[str, str, Optional[BaseException]]]:
    """Message, traceback and exception of muster._worker.failure(); None: the bytes are
    of a function in another language."""
    from . import _pickling

    try:
        packed, words, text, _ = _pickling.loads_result(data)
    except Exception:
        return None
    if type(words) is not str or type(text) is not str:
        return None
    original, refused = _pickling.loads_exception(packed)
    return words + refused, text, original


def cause_of(exception: BaseException, text: str) -> BaseException:
    """The cause of an exception that was sent here: the worker's traceback, or of an
    InputError the exception of the input."""
    from . import _worker

    packed = exception.__dict__.pop("_input", None) \
        if isinstance(exception, InputError) else None
    if isinstance(packed, tuple) and len(packed) == len(_worker.Failed.__slots__):
        return _worker.Failed(*packed).exception()
    return RemoteTraceback(text)


# How the process of a task was lost: set by muster.cluster, which sees the ends of those
# that it has started.
_how_lost: Callable[[str], str] = lambda task: ""


def _from_fields(code: int, message: str, kind: int, task: str, function: str,
                 closure: int, attempt: int, detail: str,
                 data: Optional[bytes] = None, ran: int = 0) -> BaseException:
    """The exception of an error of the library: called by the extension."""
    text, original = _unpack_exception(detail, message)
    whole = None if data is None else _unpack_whole(data)
    if whole is not None:
        words, text, of_whole = whole
        original = of_whole or original
        if kind != 2:
            message = words
    if kind == 3 and code == AbortedError.code:
        message += _how_lost(task)
    cls: Type[MusterError] = InputError if kind == 2 else class_of(code)
    if kind == 7:
        cls = ActorTimeoutError if code == DeadlineExceededError.code else ActorError
    error = cls(message, kind=KINDS[kind] if kind < len(KINDS) else "other", task=task,
                function=function, closure=closure, attempt=attempt, detail=text,
                code=code)
    error._of_call = True
    if isinstance(error, ActorError):
        error.ran = _RAN[ran] if ran < len(_RAN) else "maybe"
    if original is None:
        error.__cause__ = RemoteTraceback(text) if "Traceback" in text else None
        return error
    original.__cause__ = cause_of(original, text)
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
