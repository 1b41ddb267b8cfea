"""Actors: objects that live on workers, whose methods are called from anywhere.

    class Counter:
        def __init__(self, n=0):
            self.n = n

        def add(self, k):
            self.n += k
            return self.n

    counter = coordinator.spawn(Counter, (5,))
    counter.add(1).fetch()      # 6
    counter.stop()

An actor takes one call at a time, in the order in which a caller makes them, unless it
was made with concurrency=n.
"""

from __future__ import annotations

from .handles import Handle
from .hosting import die
from .keeping import record
from .making import actor, spawn
from .streams import Stream

__all__ = ["Handle", "Stream", "actor", "die", "record", "spawn"]
