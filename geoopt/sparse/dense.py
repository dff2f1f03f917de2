"""Arrays that hold the values of sparse matrices among zeros."""

from __future__ import annotations

import numpy as np

from ..integers.ids import Ids
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic


def with_zeros(values: Symbolic, picked: np.ndarray, places: np.ndarray, length: int) -> Symbolic:
    """An array of zeros with some values in some places."""
    if len(picked) == length and (np.diff(places) == 1).all():
        return values[picked]
    zero = as_symbolic(values.graph, 0.0).ids
    ids = np.full(length, zero.offset, np.int64)
    ids[places] = values.ids[picked].to_array()
    return values.reading(Ids.explicit(ids))
