"""The classes that symbolic values seem to be of, to tests of types."""

from __future__ import annotations

import numpy as np


class Look:
    """The class that ``x.__class__``, ``isinstance`` and `functools.singledispatch` see of what is symbolic."""


class ArrayLook(Look, np.ndarray):
    """One of NumPy's arrays; not ``np.ndarray`` itself, which SciPy takes for an array with memory."""
