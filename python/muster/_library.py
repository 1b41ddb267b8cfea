"""Loads the library so that plugins in C find its symbols."""

from __future__ import annotations

import os
import sys

_flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
try:
    from . import _muster  # noqa: F401
finally:
    sys.setdlopenflags(_flags)
