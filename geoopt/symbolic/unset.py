"""Numbers that nobody has set: what ``np.empty`` gives while a function is traced, and who reads it.

They are NaN, of bits that no arithmetic makes, which tell the line that made the array.
"""

from __future__ import annotations

import threading

import numpy as np

from ..callers import user_line
from ..errors import TracingError
from ..graph import Traced
from ..graph.references import reachable

_TRACE = threading.local()  # lines : of the arrays that the function which is traced in this thread has made
_BITS = 0x7FF8_756E_7365_0000  # of the first such number; the others follow
_MOST = 1 << 16


def begin() -> None:
    """Forget the arrays of earlier functions."""
    _TRACE.lines = []


def number() -> float:
    """That of an array which the traced code makes now."""
    lines = _TRACE.lines
    if len(lines) < _MOST:
        lines.append(user_line())
    return float(np.uint64(_BITS + len(lines) - 1).view(np.float64))


def reject_reads(traced: Traced) -> None:
    """Refuse programs that compute with such numbers. What chooses between values may be given them, and results that
    have them are NaN there."""
    if not getattr(_TRACE, "lines", None):
        return
    graph = traced.graph
    unset = {n.index: places for n in graph.nodes if n.op == "constant" and (places := _places(n.values)).any()}
    for node in reachable(traced) if unset else ():
        for operand in node.operands if node.op not in ("where", "join") else ():
            for owner in graph.nodes_of(operand):
                if owner.index in unset:
                    ids = operand.to_array().ravel()
                    read = ids[owner.places_in(ids)] - owner.first
                    read = read[unset[owner.index][read]]
                    if len(read):
                        raise _error(float(owner.values.ravel()[read[0]]))


def _places(values: np.ndarray) -> np.ndarray:
    """Which numbers are such."""
    bits = np.ascontiguousarray(values).reshape(-1).view(np.uint64)
    return (bits >= _BITS) & (bits < _BITS + _MOST)


def _error(value: float) -> TracingError:
    place = int(np.float64(value).view(np.uint64)) - _BITS
    what = f"numbers are read that nobody has set, of the array made at {_TRACE.lines[place]}"
    return TracingError(what, "NumPy gives whatever is in memory there; start from np.zeros, or set them before")
