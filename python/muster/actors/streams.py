"""The items of generator methods of actors, for their callers."""

from __future__ import annotations

import collections
from typing import Deque, Generic, List, Optional, Tuple, TypeVar

from .. import _muster
from .hosting import ITEMS_MAX
from .reaching import method_of

T = TypeVar("T")

_ONE_WAY = 1        # as in src/hosting/hosting.h


class Stream(Generic[T]):
    """The items of a generator method, also for `async for`: each once, in order, and the
    exception of the method after those before it. At most 64 items are made ahead."""

    def __init__(self, opened: "_muster.RemoteValue[int]", actor: "_muster.Actor",
                 label: str, timeout: Optional[float]) -> None:
        self._opened = opened
        self._next = method_of(actor, "muster.next", label, None, timeout, 0)
        self._close = method_of(actor, "muster.close", label, None, None,
                                          _ONE_WAY)
        self._items: Deque[T] = collections.deque()
        self._ahead: Optional["_muster.RemoteValue[Tuple[List[T], bool]]"] = None
        self._number = 0
        self._is_over = False

    def _ask(self) -> "_muster.RemoteValue[Tuple[List[T], bool]]":
        ahead = self._ahead
        if ahead is None:
            ahead = self._ahead = self._next(self._number, ITEMS_MAX)
        return ahead

    def _take(self, answer: Tuple[List[T], bool]) -> None:
        items, self._is_over = answer
        self._items.extend(items)
        self._ahead = None
        if not self._is_over:
            self._ask()

    def __iter__(self) -> "Stream[T]":
        return self

    def __next__(self) -> T:
        while not self._items:
            if self._is_over:
                raise StopIteration
            try:
                self._number = self._number or self._opened.fetch()
                self._take(self._ask().fetch())
            except BaseException:
                self._fail()
                raise
        return self._items.popleft()

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._is_over:
                raise StopAsyncIteration
            try:
                self._number = self._number or await self._opened
                self._take(await self._ask())
            except BaseException:
                self._fail()
                raise
        return self._items.popleft()

    def _fail(self) -> None:
        """Of an iterator that has raised, the next item is its end."""
        self.close()

    def close(self) -> None:
        """No more items are wanted: end the generator."""
        number, is_over = self._number, self._is_over
        self._is_over = True
        if number and not is_over:
            self._close(number)

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:   # the node was closed
            pass
