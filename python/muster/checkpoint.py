"""Checkpoints of variables in a directory."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Optional, Tuple, Union

from . import _muster, _scope, errors

Path = Union[str, "os.PathLike[str]"]


def latest_checkpoint(directory: Path, name: str = "model") -> Optional[str]:
    """Path of the newest checkpoint of a name that is whole; None: there is none.

    DataLossError: all that there are are damaged.
    """
    try:
        return _muster.checkpoint_latest(os.fspath(directory), name)[0]
    except errors.NotFoundError:
        return None


class Checkpoint:
    """Saves variables to a directory, and gives them their content back.

    directory: made when it is not there. variables: those to save. name: of the files;
    max_to_keep: the newest that stay, 0: all. node: where restore() writes, by default
    that of the variables.
    """

    def __init__(self, directory: Path, variables: Iterable[_muster.BaseVariable] = (),
                 name: str = "model", max_to_keep: int = 5, node: Any = None) -> None:
        self.directory = os.fspath(directory)
        self.variables = list(variables)
        self.name = name
        self.max_to_keep = max_to_keep
        self._node = node

    def save(self, step: int, values: Any = None,
             timeout: Optional[float] = None) -> str:
        """Write the checkpoint of a step; values (plain, or arrays) are kept with it.
        Returns its path. The one before stays whole whatever happens."""
        return _muster.checkpoint_save(self.directory, self.name, self.max_to_keep, step,
                                       self.variables, values, timeout)

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """Path of the newest one that is whole."""
        return latest_checkpoint(self.directory, self.name)

    def read(self, path: Optional[Path] = None) -> Dict[str, Any]:
        """What is in a checkpoint, the newest by default: step, values, variables."""
        return _muster.checkpoint_read(self._path(path))

    def restore(self, path: Optional[Path] = None,
                timeout: Optional[float] = None) -> Tuple[int, Any]:
        """Give the variables the content of a checkpoint, the newest by default: those
        of this object, or all that are in it if it has none. Those that are not on the
        servers are created. Returns its step and its values.

        NotFoundError: there is none, or a variable is not in it. DataLossError: damaged.
        """
        where = self._path(path)
        names = [variable.name for variable in self.variables] or None
        owner = self._node or (self.variables[0].node if self.variables else None)
        node = _scope.current_node() if owner is None else _scope.node_of(owner)
        content = _muster.checkpoint_read(where)
        _muster.checkpoint_restore(node, where, names, timeout)
        return content["step"], content["values"]

    def _path(self, path: Optional[Path]) -> str:
        if path is not None:
            return os.fspath(path)
        return _muster.checkpoint_latest(self.directory, self.name)[0]
