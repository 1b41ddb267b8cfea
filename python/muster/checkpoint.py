"""Checkpoints of variables and tables: ``tf.train.Checkpoint`` and its manager."""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import (Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type,
                    Union)

from . import _muster, _scope, errors
from .table import Table, ids_of

__all__ = ["Checkpoint", "CheckpointManager", "RestoreStatus", "TableReader",
           "latest_checkpoint",
           "read_checkpoint"]

_Path = Union[str, "os.PathLike[str]"]


_Saved = Union[_muster.BaseVariable, Table]


def _variables(tracked: Any, path: str) -> Iterator[Tuple[str, _Saved]]:
    if isinstance(tracked, (_muster.BaseVariable, Table)):
        yield path, tracked
    elif isinstance(tracked, Mapping):
        for key, item in tracked.items():
            yield from _variables(item, f"{path}/{key}")
    elif isinstance(tracked, (list, tuple)):
        for number, item in enumerate(tracked):
            yield from _variables(item, f"{path}/{number}")
    else:
        raise TypeError(f"{path} is {tracked!r}, expected a Variable or a Table, or a "
                        "dict or a list of them; plain values go to save(values=...)")


def _names_in(directory: str) -> List[str]:
    """What the checkpoints of a directory are called."""
    try:
        files = os.listdir(directory)
    except OSError:
        return []
    found = (re.fullmatch(r"(.+)-\d+", file) for file in files
             if _is_checkpoint(os.path.join(directory, file)))
    return sorted({match[1] for match in found if match})


def _is_checkpoint(path: str) -> bool:
    """Whether it is a directory with a manifest."""
    return os.path.isfile(os.path.join(path, "manifest.json"))


def latest_checkpoint(checkpoint_dir: _Path, latest_filename: Optional[str] = None
                      ) -> Optional[str]:
    """The path of the newest checkpoint of a name, or of all names (None), that is whole:
    all its bytes are read and checked, damaged ones are passed over. None when there is
    none (nor perhaps a directory). DataLossError: there are some, and all are damaged."""
    directory = os.fspath(checkpoint_dir)
    names = _names_in(directory) if latest_filename is None else [latest_filename]
    found: List[Tuple[int, str]] = []
    damaged: Optional[errors.MusterError] = None
    for name in names:
        try:
            path = _muster.checkpoint_latest(directory, name)[0]
            found.append((os.stat(path).st_mtime_ns, path))
        except (errors.NotFoundError, FileNotFoundError):
            continue
        except errors.DataLossError as error:
            damaged = error
    if not found and damaged is not None:
        raise damaged
    return max(found)[1] if found else None


def read_checkpoint(path: _Path) -> Dict[str, Any]:
    """What is in a checkpoint: step, values (what was saved with it, or None), variables
    (a list of dicts: name, dtype, shape, shards, bytes), tables (name, dim, initializer,
    initial, optimizer, rows). DataLossError says where it is
    damaged; NotFoundError: there is no such checkpoint. Safetensors files of other
    programs are read, too: one, or a directory of them; their step is 0."""
    return _muster.checkpoint_read(os.fspath(path))


class RestoreStatus:
    """What a restore did.

    path: of the checkpoint, None when there was none. step: of it. values: what was saved
    with it. names: the variables that were restored.
    """

    def __init__(self, path: Optional[str], step: int, values: Any, names: List[str],
                 missing: List[str], unused: List[str]) -> None:
        self.path = path
        self.step = step
        self.values = values
        self.names = names
        self._missing = missing
        self._unused = unused

    def assert_existing_objects_matched(self) -> RestoreStatus:
        """AssertionError: a tracked variable is not in the checkpoint."""
        if self._missing:
            raise AssertionError(f"not in the checkpoint: {', '.join(self._missing)}")
        return self

    def assert_consumed(self) -> RestoreStatus:
        """The same, and nothing in the checkpoint is left over."""
        self.assert_existing_objects_matched()
        if self._unused:
            raise AssertionError("in the checkpoint, and not tracked: "
                                 f"{', '.join(self._unused)}")
        return self

    def expect_partial(self) -> RestoreStatus:
        """Does nothing: what does not match is no warning here."""
        return self


class Checkpoint:
    """Variables and tables that are saved and restored together.

        checkpoint = muster.Checkpoint(model={"w": w, "b": b}, step=counter)
        path = checkpoint.save("/data/run1/model", values={"epoch": 3})
        checkpoint.restore(muster.latest_checkpoint("/data/run1"))

    root, kwargs: Variables and Tables, or dicts and lists of them, at any depth. Each is
    found in a checkpoint by its own name. There is no one moment of all: each is read as
    Variable.read() does.

    TypeError: something else is among them. ValueError: two variables of one name.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._tracked: Dict[str, _Saved] = {}
        named = dict(kwargs) if root is None else {"root": root, **kwargs}
        for key, value in named.items():
            for path, variable in _variables(value, key):
                other = self._tracked.get(variable.name)
                if other is not None and other is not variable:
                    raise ValueError(f"{path}: there is another variable or table with "
                                     f"the name {variable.name!r}")
                self._tracked[variable.name] = variable
        self._counter = 0

    @property
    def variables(self) -> List[_muster.BaseVariable]:
        """All variables."""
        return [item for item in self._tracked.values() if not isinstance(item, Table)]

    @property
    def tables(self) -> List[Table]:
        """All tables."""
        return [item for item in self._tracked.values() if isinstance(item, Table)]

    @property
    def save_counter(self) -> int:
        """The step of the last save, or of what was restored."""
        return self._counter

    def save(self, file_prefix: _Path, step: Optional[int] = None, values: Any = None,
             max_to_keep: int = 0, timeout: Optional[float] = None,
             base: Optional[_Path] = None) -> str:
        """Write a checkpoint, the directory "DIRECTORY/NAME-STEP" for the prefix
        "DIRECTORY/NAME", and return its path. It is there as a whole or not at all. Its
        tensors are in safetensors files, which other programs read.

        step: by default one more than the last one. values: kept with it: None, bool,
        int, float, str, bytes, arrays, lists, dicts. max_to_keep: the newest of this
        name that stay; 0: all. timeout: seconds for reading all variables.

        ResourceExhaustedError (the disk is full), PermissionDeniedError, and the errors
        of reading variables: then the checkpoints are as before.

        base: the path of a checkpoint with tables: of these only what has changed since
        is written, for a TableReader. Such an increment is not restored.
        """
        directory, name = os.path.split(os.fspath(file_prefix))
        number = self._counter + 1 if step is None else step
        path = _muster.checkpoint_save(directory or ".", name or "model", max_to_keep,
                                       number, self.variables, self.tables,
                                       None if base is None else os.fspath(base),
                                       values, timeout)
        self._counter = number
        return path

    write = save

    def restore(self, save_path: Optional[_Path], timeout: Optional[float] = None
                ) -> RestoreStatus:
        """Give the variables the content that they have in a checkpoint; those that are
        not in it stay as they are. None: nothing is done.

        save_path: also a safetensors file of another program, or a directory of them.

        All of it is checked before anything is written: DataLossError. NotFoundError:
        there is no such checkpoint. FailedPreconditionError: a variable has another dtype
        or shape there. UnimplementedError: a tensor in it cannot be a variable (bfloat16,
        say).
        """
        if save_path is None:
            return RestoreStatus(None, 0, None, [], [], [])
        path = os.fspath(save_path)
        content = _muster.checkpoint_read(path)
        saved = [str(item["name"])
                 for item in [*content["variables"], *content["tables"]]]
        names = [name for name in saved if name in self._tracked]
        if names:
            node = self._tracked[names[0]].node
            _muster.checkpoint_restore(node, path, names, timeout)
        self._counter = int(content["step"])
        return RestoreStatus(path, self._counter, content["values"], names,
                             [name for name in self._tracked if name not in saved],
                             [name for name in saved if name not in self._tracked])

    read = restore


def restore_all(path: _Path, node: Any = None, timeout: Optional[float] = None) -> None:
    """Give all variables of a checkpoint their content, creating those that are not on
    the servers. node: as of Variable()."""
    owner = _scope.current_node() if node is None else _scope.node_of(node)
    _muster.checkpoint_restore(owner, os.fspath(path), None, timeout)


class CheckpointManager:
    """Keeps the newest checkpoints of a directory.

    checkpoint: a Checkpoint. directory: made when it is not there. max_to_keep: how many
    stay (None: all). checkpoint_name: what their names begin with.
    """

    def __init__(self, checkpoint: Checkpoint, directory: _Path,
                 max_to_keep: Optional[int] = 5, checkpoint_name: str = "ckpt") -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"max_to_keep is {max_to_keep}, expected at least 1, or "
                             "None")
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._keep = 0 if max_to_keep is None else max_to_keep
        self._name = checkpoint_name

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """Where."""
        return self._directory

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The newest one that is whole, None when there is none."""
        return latest_checkpoint(self._directory, self._name)

    @property
    def checkpoints(self) -> List[str]:
        """The paths of all that are there, the oldest first."""
        pattern = re.compile(re.escape(self._name) + r"-(\d+)")
        found = []
        for file in (os.listdir(self._directory) if os.path.isdir(self._directory)
                     else ()):
            match = pattern.fullmatch(file)
            path = os.path.join(self._directory, file)
            if match and _is_checkpoint(path):
                found.append((int(match[1]), path))
        return [path for _, path in sorted(found)]

    def save(self, checkpoint_number: Optional[int] = None, values: Any = None,
             timeout: Optional[float] = None) -> str:
        """Write one, see Checkpoint.save(), and remove the oldest."""
        return self._checkpoint.save(os.path.join(self._directory, self._name),
                                     checkpoint_number, values, self._keep, timeout)

    def restore_or_initialize(self, timeout: Optional[float] = None) -> Optional[str]:
        """Restore the newest one, and return its path; None when there is none: the
        variables are as they were created."""
        path = self.latest_checkpoint
        if path is not None:
            self._checkpoint.restore(path, timeout)
        return path


class TableReader(_muster.BaseTableReader):
    """A table of a checkpoint, and of the increments after it, without a cluster.

        reader = muster.TableReader(["serving-0", "serving-1", "serving-2"], "emb")
        rows = reader.lookup(ids)

    paths: a checkpoint with the table, then increments in their order
    (Checkpoint.save(base=...)). All bytes are checked, then the files are mapped; they
    may be removed meanwhile. What a reader shows never changes. Any thread may call.

    FailedPreconditionError: one is no increment of the one before. DataLossError: one is
    damaged. NotFoundError: there is no such checkpoint, or no such table in it.
    """

    def __init__(self, paths: Union[_Path, Sequence[_Path]], table: str) -> None:
        listed: List[_Path] = []
        if isinstance(paths, (str, os.PathLike)):
            listed.append(paths)
        else:
            listed.extend(paths)
        super().__init__([os.fspath(path) for path in listed], table)
        self.name = table
        self.dim, self.rows, self.step = self.describe()

    def lookup(self, ids: Any) -> Any:
        """The rows of ids, an array of any shape: one more dimension, of `dim`. An id
        without a row has its initial row, as on the servers."""
        import numpy as np

        array = ids_of(ids)
        rows = np.empty((*array.shape, self.dim), np.float32)
        if array.size > 0:
            self.lookup_into(array, rows)
        return rows

    def __len__(self) -> int:
        return self.rows

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> TableReader:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<muster.TableReader {self.name!r} dim={self.dim} rows={self.rows}>"
