"""Actors and their methods, for callers in a node's process or in one of its children."""

from __future__ import annotations

from typing import Any, Optional

from .. import _muster


def reach(node: Any, coordinator: Any, address: str) -> Any:
    """An actor, seen from a node."""
    if isinstance(node, _muster.Node):
        return _muster.Actor(node, coordinator, address)
    from . import far

    return far.Actor(node, address)


def method_of(actor: Any, name: str, label: str, doc: Optional[str],
              timeout: Optional[float], flags: int) -> Any:
    """A method of it: calling it gives a RemoteValue."""
    if isinstance(actor, _muster.Actor):
        return _muster.ActorMethod(actor, name, label, doc, timeout, flags)
    from . import far

    return far.Method(actor, name, label, doc, timeout, flags)
