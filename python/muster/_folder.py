"""The folder of a LocalCluster's sockets.

A program that is killed leaves its folder. Each is locked by who uses it, so that the
next cluster finds those that nobody uses, and deletes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile

_PREFIX = "muster-"
_LOCK = "in-use"


def _lock(path: str, flags: int = 0) -> int:
    """Open and lock a file. OSError: it does not exist, or another process has locked
    it."""
    number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(number)
        raise
    return number


def _delete_if_left(path: str) -> None:
    try:
        number = _lock(os.path.join(path, _LOCK))
    except OSError:
        return
    shutil.rmtree(path, ignore_errors=True)
    os.close(number)


def _delete_left(parent: str) -> None:
    with os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False) \
                    and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                _delete_if_left(entry.path)


class Folder:
    """A new temporary directory."""

    def __init__(self) -> None:
        try:
            _delete_left(tempfile.gettempdir())
        except OSError:     # another process deletes the same one
            pass
        while True:
            self.path = tempfile.mkdtemp(prefix=_PREFIX)
            try:
                self._number = _lock(os.path.join(self.path, _LOCK), os.O_CREAT)
                return
            except (BlockingIOError, FileNotFoundError):
                pass        # another program deleted it as a leftover

    def close(self) -> None:
        """Delete it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._number)
