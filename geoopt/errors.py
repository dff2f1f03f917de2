"""Every error that geoopt raises. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

_PACKAGE = str(Path(__file__).parent) + os.sep
_NUMPY = str(Path(np.__file__).parent) + os.sep


def user_line() -> str:
    """``file:line: source`` of the innermost caller that is not geoopt's own compiler code."""
    import linecache

    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        foreign = name.startswith(("<__array_function__", _NUMPY))
        if not name.startswith(_PACKAGE) and not foreign:
            source = linecache.getline(name, frame.f_lineno).strip()
            return f"{name}:{frame.f_lineno}: {source}" if source else f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "<unknown line>"


class GeooptError(Exception):
    """Base class of every error that is caused by the input or the traced code."""


class TracingError(GeooptError):
    """The traced code asked for something that has no meaning on unknown values."""

    def __init__(self, what: str, remedy: str):
        super().__init__(f"{what}\n  at {user_line()}\n  {remedy}")


class BranchError(TracingError):
    """The traced code branches on a value that is unknown while tracing."""

    def __init__(self, what: str):
        super().__init__(
            f"cannot {what}: its value is unknown while tracing",
            "write np.where(condition, a, b); both sides are kept and chosen per element",
        )


class UnsupportedError(TracingError, TypeError):
    """A NumPy function or argument that the symbolic array does not answer."""


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


class InternalError(Exception):
    """A fault of geoopt itself; the message names the stage. Please report it."""

    def __init__(self, stage: str, what: str):
        super().__init__(f"internal error in stage {stage!r}: {what}\n  this is a fault of geoopt, please report it")
