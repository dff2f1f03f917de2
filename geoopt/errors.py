"""Every error that geoopt raises. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy

from . import remedies

_PACKAGE = str(Path(__file__).parent) + os.sep
_NUMPY, _SCIPY = (str(Path(str(library.__file__)).parent) + os.sep for library in (np, scipy))
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_CYTHON = (".pyx", ".pxd", ".pxi")  # what it makes has these names, from the root of a library's sources


def user_line(error: BaseException | None = None) -> str:
    """``file:line: source`` of the innermost caller that is nobody's library: of this function, or of what raised an
    error. Where a library that traced code calls is in between, its line comes after."""
    inner = ""
    for frame, number in _frames(error):
        name = frame.f_code.co_filename
        if not is_installed(name):
            return _line(frame, number) + inner
        if not inner and not _is_unnamed(name):
            inner = f"\n  in {_line(frame, number)}"
    return inner.removeprefix("\n  in ") or "<unknown line>"


def line_of(function: Any) -> str | None:
    """Where a function of the user's begins; None of what has no code."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code and _source(code.co_filename, code.co_firstlineno)


def user_frame() -> FrameType:
    """Of the innermost caller that is nobody's library; the outermost where all are."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _frames(error: BaseException | None) -> Iterable[tuple[FrameType, int]]:
    """With their lines, the innermost first: of the callers of the caller, or of what raised an error."""
    if error is None:
        return traceback.walk_stack(sys._getframe(2))
    return reversed(list(traceback.walk_tb(error.__traceback__)))


def _line(frame: FrameType, line: int) -> str:
    return _source(frame.f_code.co_filename, line)


def _source(name: str, line: int) -> str:
    source = linecache.getline(name, line).strip()
    return f"{name}:{line}: {source}" if source else f"{name}:{line}"


def is_of_libraries(file: str) -> bool:
    """Whether a file is of geoopt's compiler, NumPy or SciPy, or none: of what Cython makes."""
    return _is_compiled(file) or file.startswith((_PACKAGE, _NUMPY, _SCIPY))


def _is_compiled(file: str) -> bool:
    return file.startswith(("<__array_function__", "<stringsource>", "<frozen ")) or file.endswith(_CYTHON)


def is_installed(file: str) -> bool:
    """Whether a file is of any library, Python's own as well."""
    return is_of_libraries(file) or file.startswith(_INSTALLED)


def _is_unnamed(file: str) -> bool:
    """Whether it is of a library whose lines say nothing to its users."""
    of_python = file.startswith(_INSTALLED[:2]) and not file.startswith(_INSTALLED[2:])
    return is_of_libraries(file) or of_python


def scipy_remedy(error: BaseException | None = None) -> str | None:
    """What to do instead, if SciPy raised an error, or called who calls this, or NumPy when SciPy called it; else None.
    It is that of the module whose function the user called."""
    module = None
    for frame, _ in _frames(error):
        name = frame.f_code.co_filename
        if found := _module_of_scipy(name):
            module = module if module and found.startswith("scipy._lib") else found
        elif not is_of_libraries(name):
            break
    return module and remedies.of_scipy(module)


def _module_of_scipy(file: str) -> str | None:
    is_scipy = file.startswith(_SCIPY) or (file.startswith("scipy/") and file.endswith(_CYTHON))
    return file.removeprefix(str(Path(_SCIPY).parent) + os.sep).replace(os.sep, ".") if is_scipy else None


class GeooptError(Exception):
    """Base class of every error that is caused by the input or the traced code."""


class TracingError(GeooptError):
    """The traced code asked for something that has no meaning on unknown values."""

    def __init__(self, what: str, remedy: str, cause: BaseException | None = None, line: str | None = None):
        """remedy : unless a function of SciPy asks, which has its own;  cause : what was raised instead, by a line"""
        if cause is None and line is None and not isinstance(self, ShapeError):
            remedy = scipy_remedy() or remedy
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

    def __init__(self, what: str, line: str | None = None, remedy: str = remedies.CHOOSE):
        super().__init__(f"cannot {what}", remedy, line=line)


class UnsupportedError(TracingError, TypeError):
    """A NumPy function or argument that the symbolic array does not answer."""


class MissingAttributeError(UnsupportedError, AttributeError):
    """An attribute of NumPy's arrays that the symbolic array has not; `hasattr` says so."""


def unsupported(
    called: str, kind: type[UnsupportedError] = UnsupportedError, cause: BaseException | None = None
) -> UnsupportedError:
    """The error for a function or an attribute of NumPy, as the user calls it, that has no answer here."""
    depends = remedies.own_name(called) in remedies.BY_VALUES
    why = ": its result depends on values, which are unknown while tracing" if depends else ""
    return kind(f"{called} is not supported on symbolic arrays{why}", remedies.of_numpy(called), cause)


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

    @classmethod
    def of_matrix(cls, what: str) -> SolverError:
        """what : shows that the matrix is singular, or not positive definite"""
        return cls(f"{what}; {remedies.HOLD}")


class PictureError(GeooptError):
    """No picture could be rendered; the message says what is missing."""


class InternalError(Exception):
    """A fault of geoopt itself; the message names the stage. Please report it."""

    def __init__(self, stage: str, what: str):
        super().__init__(f"internal error in stage {stage!r}: {what}\n  this is a fault of geoopt, please report it")
