"""Every error that geoopt raises. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

from . import remedies
from .callers import is_of_libraries, scipy_remedy, user_line


class GeooptError(Exception):
    """Base class of every error that is caused by the input or the traced code.

    Examples
    --------
    >>> try:
    ...     geoopt.meshes.load("nothing.obj")
    ... except geoopt.GeooptError as error:
    ...     print(error)
    nothing.obj: no such file
    """


class TracingError(GeooptError):
    """The traced code asked for something that has no meaning on unknown values.

    Examples
    --------
    >>> geoopt.compile(lambda x: np.empty(3) * x, np.ones(3))
    Traceback (most recent call last):
        ...
    geoopt.errors.TracingError: numbers are read that nobody has set, of the array made at <doctest ...
    """

    def __init__(self, what: str, remedy: str = "", cause: BaseException | None = None, line: str | None = None):
        """remedy : unless a function of SciPy asks, which has its own;  cause : what was raised instead, by a line

        Code may also make an error of another one's whole text.
        """
        if cause is None and line is None and not isinstance(self, ShapeError):
            remedy = scipy_remedy() or remedy
        is_whole = "\n  at " in what
        super().__init__(what if is_whole else f"{what}\n  at {line or user_line(cause)}\n  {remedy}")
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
    """The traced code branches on values that are unknown while tracing, in a way that leaves no choice to be made.

    Examples
    --------
    >>> geoopt.compile(lambda x: np.stack([v for v in x if v > 0]), np.ones(42))
    Traceback (most recent call last):
        ...
    geoopt.errors.BranchError: cannot branch on more than 32 symbolic values one after another...
    """

    def __init__(self, what: str, line: str | None = None, remedy: str = remedies.CHOOSE, code: CodeType | None = None):
        """code : that asks for the branch, if it may be rewritten to run both sides"""
        super().__init__(what if what.startswith("cannot ") else f"cannot {what}", remedy, line=line)
        self.code = code


class UnsupportedError(TracingError, TypeError):
    """A NumPy function or argument that the symbolic array does not answer.

    Examples
    --------
    >>> geoopt.compile(np.unique, np.ones(3))
    Traceback (most recent call last):
        ...
    geoopt.errors.UnsupportedError: np.unique is not supported on symbolic arrays: its result depends ...
    """


class MissingAttributeError(UnsupportedError, AttributeError):
    """An attribute of NumPy's arrays that the symbolic array has not; `hasattr` says so.

    Examples
    --------
    >>> geoopt.compile(lambda x: x.tobytes(), np.ones(3))
    Traceback (most recent call last):
        ...
    geoopt.errors.MissingAttributeError: x.tobytes() is not supported on symbolic arrays: its result ...
    """


def unsupported(
    called: str, kind: type[UnsupportedError] = UnsupportedError, cause: BaseException | None = None
) -> UnsupportedError:
    """The error for a function or an attribute of NumPy, as the user calls it, that has no answer here."""
    depends = remedies.own_name(called) in remedies.BY_VALUES
    why = ": its result depends on values, which are unknown while tracing" if depends else ""
    return kind(f"{called} is not supported on symbolic arrays{why}", remedies.of_numpy(called), cause)


class ShapeError(TracingError, ValueError):
    """Shapes that do not fit together.

    Examples
    --------
    >>> geoopt.compile(lambda x: x + np.ones(3), np.ones(5))
    Traceback (most recent call last):
        ...
    geoopt.errors.ShapeError: cannot add arrays of shapes (5,) and (3,): they do not broadcast...
    """


class AxisError(ShapeError, IndexError):
    """An axis that the array has not; like NumPy's, it is a ValueError and an IndexError.

    Examples
    --------
    >>> geoopt.compile(lambda x: x.sum(axis=2), np.ones((5, 3)))
    Traceback (most recent call last):
        ...
    geoopt.errors.AxisError: np.sum: axis 2 is out of bounds for array of dimension 2...
    """


class ArgumentError(GeooptError, ValueError):
    """A program or a function of geoopt was called with something it cannot take.

    Examples
    --------
    >>> geoopt.compile(lambda x: 2 * x, np.ones(5))(np.ones(3))
    Traceback (most recent call last):
        ...
    geoopt.errors.ArgumentError: variable 'x' has shape (3,); the program was compiled for (5,)
    """


class DeviceError(GeooptError):
    """A device that this machine lacks, or something that programs for it need; the message says what to install.

    Examples
    --------
    >>> try:
    ...     half = geoopt.compile(lambda x: x / 2, np.ones(3), device="cuda")
    ... except geoopt.DeviceError:
    ...     half = geoopt.compile(lambda x: x / 2, np.ones(3))
    >>> print(half(np.ones(3)).sum())
    1.5
    """


class MeshError(GeooptError, ValueError):
    """A mesh, or a file that should hold one, is not usable; the message names the first bad element.

    Examples
    --------
    >>> geoopt.meshes.check(np.eye(3), np.array([[0, 1, 1]]))
    Traceback (most recent call last):
        ...
    geoopt.errors.MeshError: face 0 repeats a vertex: [0, 1, 1]; leave such faces out
    """


class MeshWarning(UserWarning):
    """What was merged or left out of a mesh file.

    Examples
    --------
    >>> import warnings
    >>> geoopt.meshes.save("sphere.stl", *geoopt.meshes.icosphere(42))
    >>> with warnings.catch_warnings(action="error"):
    ...     geoopt.meshes.load("sphere.stl")
    Traceback (most recent call last):
        ...
    geoopt.errors.MeshWarning: sphere.stl: 240 corners became 42 vertices; give merge=False for the ...
    """


class SolverError(GeooptError):
    """A matrix could not be factored; it is singular or, where it must be, not positive definite.

    Examples
    --------
    >>> geoopt.solve(sp.csr_array([[1.0, -1.0], [-1.0, 1.0]]), np.ones(2))
    Traceback (most recent call last):
        ...
    geoopt.errors.SolverError: geoopt: the matrix is singular, or not positive definite: nothing is ...
    """

    @classmethod
    def of_matrix(cls, what: str) -> SolverError:
        """what : shows that the matrix is singular, or not positive definite"""
        return cls(f"{what}; {remedies.HOLD}")


class PictureError(GeooptError):
    """No picture could be rendered; the message says what is missing.

    Examples
    --------
    >>> issubclass(geoopt.errors.PictureError, geoopt.GeooptError)  # apps catch it, and go on without pictures
    True
    """


class InternalError(Exception):
    """A fault of geoopt itself; the message names the stage. Please report it.

    Examples
    --------
    >>> issubclass(geoopt.errors.InternalError, geoopt.GeooptError)  # which nobody catches by mistake
    False
    """

    def __init__(self, stage: str, what: str):
        super().__init__(f"internal error in stage {stage!r}: {what}\n  this is a fault of geoopt, please report it")
