"""Every error that geoopt raises. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy

_PACKAGE = str(Path(__file__).parent) + os.sep
_NUMPY, _SCIPY = (str(Path(str(library.__file__)).parent) + os.sep for library in (np, scipy))


def user_line(error: BaseException | None = None) -> str:
    """``file:line: source`` of the innermost caller that is not geoopt's own compiler code, or a library's: of this
    function, or of what raised an error."""
    import linecache

    frames = traceback.walk_stack(sys._getframe(1))
    if error is not None:
        frames = reversed(list(traceback.walk_tb(error.__traceback__)))
    for frame, line in frames:
        name = frame.f_code.co_filename
        if not is_of_libraries(name):
            source = linecache.getline(name, line).strip()
            return f"{name}:{line}: {source}" if source else f"{name}:{line}"
    return "<unknown line>"


def is_of_libraries(file: str) -> bool:
    """Whether a file is of geoopt's compiler, NumPy or SciPy, or none: of what Cython makes."""
    return file.startswith(("<__array_function__", "<stringsource>", _PACKAGE, _NUMPY, _SCIPY))


def scipy_remedy(error: BaseException) -> str | None:
    """What to do instead, if SciPy raised the error, or NumPy when SciPy called it; else None."""
    names = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    # ours stand in for NumPy's functions, and Cython names files by its own
    while names and (names[-1].startswith((_NUMPY, _PACKAGE)) or not os.path.isabs(names[-1])):
        names.pop()
    if not names or not names[-1].startswith(_SCIPY):
        return None
    solves = any(name.startswith(_SCIPY) and "linalg" in name for name in names)
    return SOLVE_OUTSIDE if solves else SCIPY[1]


class GeooptError(Exception):
    """Base class of every error that is caused by the input or the traced code."""


class TracingError(GeooptError):
    """The traced code asked for something that has no meaning on unknown values."""

    def __init__(self, what: str, remedy: str, cause: BaseException | None = None, line: str | None = None):
        super().__init__(f"{what}\n  at {line or user_line(cause)}\n  {remedy}")
        getattr(_TRACE, "refusals", []).append(self)


_TRACE = threading.local()  # with the refusals of the trace that a thread is in


@contextmanager
def none_swallowed() -> Iterator[None]:
    """Raises at its end the first refusal within that the traced code caught: with NumPy's arrays it would have taken
    another path. That an attribute is missing is no refusal to code which asks for it."""
    before, _TRACE.refusals = getattr(_TRACE, "refusals", []), []
    try:
        yield
        caught = [e for e in _TRACE.refusals if not isinstance(e, MissingAttributeError) and _was_caught_by_user(e)]
    finally:
        _TRACE.refusals = before
    if caught:
        caught[0].add_note("the traced code caught this error and went on without what it had asked for")
        raise caught[0]


def _was_caught_by_user(error: BaseException) -> bool:
    """Whether it went up to code that is neither geoopt's nor NumPy's or SciPy's."""
    return error.__traceback__ is not None and not is_of_libraries(error.__traceback__.tb_frame.f_code.co_filename)


class BranchError(TracingError):
    """The traced code branches on values that are unknown while tracing, in a way that leaves no choice to be made."""

    def __init__(self, what: str, line: str | None = None):
        super().__init__(
            f"cannot {what}",
            "write np.where(condition, a, b); both sides are kept and chosen per element",
            line=line,
        )


class UnsupportedError(TracingError, TypeError):
    """A NumPy function or argument that the symbolic array does not answer."""


class MissingAttributeError(UnsupportedError, AttributeError):
    """An attribute of NumPy's arrays that the symbolic array has not; `hasattr` says so."""


SOLVE_OUTSIDE = (
    "systems are solved by geoopt.solve and SciPy's spsolve, factorized, splu and cg; do all else outside: compile a "
    "function that returns the matrix, and give SciPy what the program returns"
)
SCIPY = (
    "this function of SciPy does not take symbolic values",
    "make matrices of values with rows and columns, sp.csr_array((values, (rows, cols)), shape), or of diagonals, "
    "scipy.sparse.diags(values); call methods of the symbolic operand: A.multiply(B) where B is known",
)
# what to write instead of the functions of NumPy whose results depend on values, by their names
_BY_VALUES = {
    "argsort partition argpartition lexsort sort_complex percentile quantile nanmedian nanpercentile "
    "nanquantile": "order what is known before, as structure; np.sort and np.median take axes of up to 16 entries",
    "nanargmax nanargmin": "np.max and np.min give the value; choose what belongs to it with np.where",
    "nonzero flatnonzero argwhere unique unique_all unique_counts unique_inverse unique_values trim_zeros isin "
    "union1d intersect1d setdiff1d setxor1d": "keep all entries and choose with np.where(condition, a, b)",
    "count_nonzero": "write np.sum(np.where(x != 0, 1.0, 0.0))",
    "searchsorted digitize histogram histogram2d histogramdd histogram_bin_edges": "choose between known "
    "intervals with np.where or np.select",
    "tobytes tofile dump dumps": "compute with the symbolic array itself, and return it",
}
BY_VALUES = {name: remedy for names, remedy in _BY_VALUES.items() for name in names.split()}
# and instead of others
_REMEDIES = {
    "matrix_rank": "compare np.linalg.svdvals(A) with what counts as nothing",
    "eig eigvals": "np.linalg.eigh decomposes symmetric matrices up to 4x4; solve other systems outside",
    "lstsq": "solve the normal equations, np.linalg.solve(A.mT @ A, A.mT @ b), up to 6x6",
    "qr": "orthogonalise columns by products and norms",
    "choose": "choose with np.where or np.select",
    "put_along_axis place putmask": "assign to an index, x[indices] = values, or choose with np.where",
}
REMEDIES = BY_VALUES | {name: remedy for names, remedy in _REMEDIES.items() for name in names.split()}
_ELSE = "write it with indexing, arithmetic, sums and np.where; `geoopt coverage` lists what is supported"


def remedy_of(called: str) -> str:
    """What to write instead of a function or an attribute of NumPy that has no answer here."""
    return REMEDIES.get(_own_name(called), _ELSE)


def _own_name(called: str) -> str:
    return called.split(".")[-1].rstrip("()")


def unsupported(called: str, kind: type[UnsupportedError] = UnsupportedError) -> UnsupportedError:
    """The error for a function or an attribute of NumPy, as the user calls it, that has no answer here."""
    name = _own_name(called)
    why = ": its result depends on values, which are unknown while tracing" if name in BY_VALUES else ""
    return kind(f"{called} is not supported on symbolic arrays{why}", remedy_of(called))


class ShapeError(TracingError, ValueError):
    """Shapes that do not fit together."""


class AxisError(ShapeError, IndexError):
    """An axis that the array has not; like NumPy's, it is a ValueError and an IndexError."""


class ArgumentError(GeooptError, ValueError):
    """A program or a function of geoopt was called with something it cannot take."""


class DeviceError(GeooptError):
    """A device that this machine lacks, or something that programs for it need; the message says what to install."""


class MeshError(GeooptError, ValueError):
    """A mesh, or a file that should hold one, is not usable; the message names the first bad element."""


class MeshWarning(UserWarning):
    """What was merged or left out of a mesh file."""


class SolverError(GeooptError):
    """A matrix could not be factored; it is singular or, where it must be, not positive definite."""


class PictureError(GeooptError):
    """No picture could be rendered; the message says what is missing."""


class InternalError(Exception):
    """A fault of geoopt itself; the message names the stage. Please report it."""

    def __init__(self, stage: str, what: str):
        super().__init__(f"internal error in stage {stage!r}: {what}\n  this is a fault of geoopt, please report it")
