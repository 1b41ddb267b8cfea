"""Support for Python functions on a worker: loading, per-worker values, errors."""

from __future__ import annotations

import collections
import pickle
import sys
import threading
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from . import _muster, _pickling, errors

_DETAIL_BYTES = 1023
_MESSAGE_BYTES = 511


class Shard(NamedTuple):
    """A shard of a dataset: its number, from 0, the number of shards, and the epoch, from
    1."""

    number: int
    shards: int
    epoch: int


def load_function(data: bytes, name: str) -> Any:
    """Unpickle a function."""
    return _pickling.loads(data)


class WorkerIterator(Iterator[Any]):
    """An iterator that is a per-worker value, used by one thread at a time."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._lock = threading.Lock()

    def __iter__(self) -> "WorkerIterator":
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._iterator)


def build(data: bytes, name: str, mode: str) -> Any:
    """Make a per-worker value on this worker."""
    function, args, kwargs = _pickling.loads(data)
    value = function(*args, **kwargs)
    return WorkerIterator(iter(value)) if mode == "iterator" else value


def _cut(text: str, room: int) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\0", b"?")[:room].decode(
        "utf-8", "ignore").encode("utf-8")


def _words(exception: BaseException) -> str:
    try:
        words = str(exception)
    except Exception:
        words = "<its words raise an exception>"
    if isinstance(exception, errors.MusterError) and not _must_be_final(exception):
        return words
    return f"{type(exception).__name__}: {words}" if words else type(exception).__name__


def _code(exception: BaseException) -> int:
    if isinstance(exception, errors.MusterError):
        return -exception.code
    if isinstance(exception, MemoryError):
        return -17
    if isinstance(exception, NotImplementedError):
        return -12
    return -2


# Codes after which the chief runs a closure again: a call that it made was cancelled, or
# timed out.
_PASSING = (errors.CancelledError.code, errors.DeadlineExceededError.code)


def _must_be_final(exception: BaseException) -> bool:
    """Whether an error must not be retried although its code is of a transient error: the
    function itself raised it, and not a call, nor a cancelled run."""
    if not isinstance(exception, errors.MusterError) or exception._of_call or \
            exception.code not in _PASSING:
        return False
    return exception.code != errors.CancelledError.code or not _is_told_to_stop()


def _is_told_to_stop() -> bool:
    try:
        return _muster.current_run().cancelled()
    except errors.MusterError:
        return False


def failure(exception: BaseException
            ) -> Tuple[int, int, bytes, bytes, bytes, bytes]:
    """The parts of an exception that are sent: code, kind, message, detail, task, and the
    whole of it for Python."""
    text = _traceback_of(exception)
    kind, task = 1, ""
    if isinstance(exception, errors.MusterError) and exception._of_call and \
            exception.kind == "server":
        kind, task = 4, exception.task
    stripped = exception.with_traceback(None)
    detail = errors.pack_exception(text, stripped, _DETAIL_BYTES)
    whole = _failed(stripped, text)
    code = -2 if _must_be_final(exception) else _code(exception)
    return (code, kind, _cut(_words(exception), _MESSAGE_BYTES),
            detail.encode("utf-8"), task.encode("utf-8"),
            pickle.dumps((whole.data, whole.words, whole.text, whole.code), 4))


class Failed:
    """An exception as the result of a closure whose error only its future reports: its
    pickle (None when it cannot be pickled), its class and message, and its traceback as
    text."""

    __slots__ = ("data", "words", "text", "code")

    def __init__(self, data: Optional[bytes], words: str, text: str, code: int) -> None:
        self.data = data
        self.words = words
        self.text = text
        self.code = code

    def __reduce__(self) -> Any:
        return (_failed_again, (self.data, self.words, self.text, self.code))

    def exception(self) -> BaseException:
        """The exception, with the worker's traceback as its cause."""
        exception, refused = _pickling.loads_exception(self.data)
        if exception is None:
            exception = errors.class_of(self.code)(self.words + refused, kind="function",
                                                   detail=self.text)
        else:
            exception = _of_this_program(exception)
        exception.__cause__ = errors.cause_of(exception, self.text)
        return exception


def _of_this_program(exception: BaseException) -> BaseException:
    """Give an exception the class of this name that the program has: it was sent by
    content, perhaps by a worker that had it from an earlier process of the program."""
    cls: Any = type(exception)
    own: Any = sys.modules.get("__main__") if cls.__module__ == "__main__" else None
    for name in cls.__qualname__.split("."):
        own = getattr(own, name, None)
    if isinstance(own, type) and own is not cls and issubclass(own, BaseException):
        try:
            exception.__class__ = own
        except TypeError:   # their objects differ
            pass
    return exception


def _failed_again(data: Optional[bytes], words: str, text: str, code: int) -> Failed:
    """Unpickle a Failed; among the arguments of a closure it is an input error."""
    failed = Failed(data, words, text, code)
    if _muster.is_fetching() or _muster.find_run() is None:
        return failed
    error = errors.InputError(f"an input failed: {words}", kind="input")
    error._input = (data, words, text, code)    # its cause, which pickles do not have
    raise error from failed.exception()


def _dump(exception: BaseException) -> Optional[bytes]:
    """The pickle of an exception, None when only its text can be sent."""
    try:
        data = _pickling.dumps_function(exception)
        _pickling.loads(data)
        return data
    except Exception:
        pass
    try:
        data = _pickling.dumps_function(_Revived(exception))
        _pickling.loads(data)
        return data
    except Exception:
        return None


class _Revived:
    """Pickles an exception that calling its class would not rebuild."""

    def __init__(self, exception: BaseException) -> None:
        self._fields = (type(exception),
                        *errors.parts_of(exception, _pickling.dumps_function))

    def __reduce__(self) -> Any:
        return (errors.revive, self._fields)


# Of an exception that is sent, in all and of its parts.
_WHOLE_BYTES = 1 << 20
_TEXT_BYTES = 256 << 10
_WORDS_BYTES = 64 << 10


def _traceback_of(exception: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(type(exception), exception,
                                              exception.__traceback__)).rstrip()


def _end_of(text: str, room: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= room:
        return text
    return (f"[the first {len(data) - room} bytes of the traceback were cut]\n"
            + data[-room:].decode("utf-8", "ignore"))


def _start_of(words: str, room: int) -> str:
    data = words.encode("utf-8", "replace")
    if len(data) <= room:
        return words
    return (data[:room].decode("utf-8", "ignore")
            + f" [the last {len(data) - room} bytes of the message were cut]")


class _OfClass:
    """Pickles an exception that is too large as one of its class, with its message."""

    def __init__(self, exception: BaseException, words: str) -> None:
        cls = type(exception)
        self._fields = (cls.__module__, cls.__qualname__, words)

    def __reduce__(self) -> Any:
        return (errors._of_class, self._fields)


def _failed(exception: BaseException, text: str) -> Failed:
    text = _end_of(text, _TEXT_BYTES)
    words = _start_of(_words(exception), _WORDS_BYTES)
    data = _dump(exception)
    room = _WHOLE_BYTES - _TEXT_BYTES - _WORDS_BYTES
    if data is not None and len(data) > room:
        words += (f" [cut: the exception has {len(data)} bytes, and at most {room} are "
                  "sent]")
        data = _pickling.dumps_function(_OfClass(exception, words))
    return Failed(data, words, text, -_code(exception))


def failed(exception: BaseException) -> Failed:
    """The result of a closure whose error only its future reports."""
    text = _traceback_of(exception)
    return _failed(exception.with_traceback(None), text)


# Open variables by _key(), the last used one at the end.
_variables: "collections.OrderedDict[Tuple[Any, ...], Any]" = collections.OrderedDict()
_variables_lock = threading.Lock()
_VARIABLES_MAX = 1024


def _key(node: Any, name: str, same: bool) -> Tuple[Any, ...]:
    """A variable that is for one content is opened by each run anew."""
    if not same:
        return id(node), name
    run = _muster.current_run()
    return id(node), name, run.closure, run.attempt


def keep_variable(variable: Any) -> None:
    """Keep a variable that was opened on the run's node, for later runs."""
    key = _key(variable.node, variable.name, variable.same)
    dropped = []    # freed outside of the lock, unless a run uses them
    with _variables_lock:
        for other in [key for key, at in _variables.items() if at.node.closed]:
            dropped.append(_variables.pop(other))
        _variables[key] = variable
        while len(_variables) > _VARIABLES_MAX:
            dropped.append(_variables.popitem(last=False)[1])


def open_variable(name: str, dtype: str, shape: Tuple[int, ...],
                  same: bool = False) -> Any:
    """Unpickle a variable: open it on the run's node, and keep it for later runs."""
    from .variable import Variable

    node = _muster.current_run().node
    if not isinstance(node, _muster.Node):  # in an executor process
        from . import _process

        return _process.Variable.known(name, dtype, shape, same)
    key = _key(node, name, same)
    with _variables_lock:
        known = _variables.get(key)
        if known is not None and known.node is node and known.shape == shape and \
                str(known.dtype) == dtype:
            _variables.move_to_end(key)
            return known
    opened = Variable(name=name, shape=shape, dtype=dtype, existing=True, node=node,
                      timeout=60.0, same=same)
    keep_variable(opened)
    return opened
