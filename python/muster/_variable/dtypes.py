"""NumPy's dtypes, and bfloat16, which the package ml_dtypes adds to them."""

from __future__ import annotations

import importlib
from typing import Any


def dtype_of(name: Any) -> Any:
    """numpy.dtype(name). TypeError: bfloat16 without ml_dtypes. Called by the extension,
    too."""
    import numpy as np

    if name == "bfloat16" and isinstance(name, str):
        try:
            ml_dtypes: Any = importlib.import_module("ml_dtypes")
        except ImportError:
            raise TypeError("dtype bfloat16 needs the package ml_dtypes, which is not "
                            "installed") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def kind_of(dtype: Any) -> str:
    """dtype.kind, and "f" for bfloat16."""
    return "f" if dtype.name == "bfloat16" else str(dtype.kind)
