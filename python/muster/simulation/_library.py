"""The simulator's library, libmuster-sim: its structs and functions (muster/sim.h)."""

from __future__ import annotations

import ctypes as c
import os
from typing import Any


class Address(c.Structure):
    """mu_address"""

    _fields_ = [("type", c.c_char * 16), ("index", c.c_uint32), ("number", c.c_uint32),
                ("incarnation", c.c_uint64), ("name", c.c_char * 64)]


class Error(c.Structure):
    """mu_error"""

    _fields_ = [("code", c.c_int), ("attempt", c.c_uint32), ("kind", c.c_int),
                ("data", c.c_uint32), ("closure", c.c_uint64), ("task", c.c_char * 64),
                ("function", c.c_char * 64), ("message", c.c_char * 512),
                ("detail", c.c_char * 1024), ("ran", c.c_int)]


class Notice(c.Structure):
    """mu_notice"""

    _fields_ = [("kind", c.c_int), ("code", c.c_int), ("token", c.c_uint64),
                ("address", Address), ("value", c.c_void_p),
                ("error", c.POINTER(Error))]


TURN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p)
NOTICE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.POINTER(Notice))
STOP = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.POINTER(Error))
CHECK = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
SAVE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_void_p))
LOAD = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_uint)
REPLAY = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p)


class Method(c.Structure):
    """mu_actor_method"""

    _fields_ = [("name", c.c_char_p), ("call", TURN)]


class Type(c.Structure):
    """mu_actor_type"""

    _fields_ = [("name", c.c_char_p), ("state_size", c.c_size_t),
                ("methods", c.POINTER(Method)), ("start", TURN), ("notice", NOTICE),
                ("stop", STOP), ("save", SAVE), ("load", LOAD), ("replay", REPLAY),
                ("version", c.c_uint)]


class Options(c.Structure):
    """mu_actor_options"""

    _fields_ = [("size", c.c_size_t), ("task_type", c.c_char_p), ("task_index", c.c_int),
                ("flags", c.c_uint), ("mailbox_max", c.c_uint),
                ("mailbox_bytes_max", c.c_uint64), ("name", c.c_char_p),
                ("restart", c.c_int), ("restarts", c.c_uint),
                ("restarts_within_ms", c.c_uint)]


class _Libraries:
    """The simulator's functions, and the library's own."""

    def __init__(self) -> None:
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self._own = c.CDLL(os.path.join(folder, "libmuster.so.0"))
        self._sim = c.CDLL(os.path.join(folder, "libmuster-sim.so.0"))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._sim if name.startswith("mu_sim_") else self._own, name)
        self.__dict__[name] = found
        return found


def load_library() -> Any:
    """Both, from the package's folder."""
    library = _Libraries()
    library.mu_sim_new.argtypes, library.mu_sim_new.restype = [c.c_uint64], c.c_void_p
    library.mu_value_bytes.argtypes = [c.c_char_p, c.c_size_t]
    library.mu_sim_now_ms.restype = c.c_uint64
    library.mu_sim_random.restype = c.c_uint64
    for name in ("mu_value_bytes", "mu_actor_put_off", "mu_actor_args", "mu_sim_state"):
        getattr(library, name).restype = c.c_void_p
    for name in ("mu_sim_trace", "mu_sim_failure"):
        getattr(library, name).restype = c.c_char_p
    return library
