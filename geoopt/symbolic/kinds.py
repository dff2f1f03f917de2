"""``type(x)`` of symbolic values, which Python alone answers.

A trace that fails begins again, with a substitute for the name ``type`` in the modules that the failure came through,
if they ask ``type(x)`` and do nothing else with that name.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from ..errors import GeooptError
from . import FILLABLE, Symbolic
from .checks import source_of
from .floats import WANTED

# what code raises that was told another type than it takes
OF_TYPES = (TypeError, ValueError, AttributeError, AssertionError, NotImplementedError, GeooptError)
_OTHERS = ("numpy", "scipy", __name__.partition(".")[0])


def ask(error: Exception) -> None:
    """Let the modules that an error, or what caused it, came through have the substitute."""
    for frame in (*_frames(error.__traceback__), *_frames(getattr(error.__cause__, "__traceback__", None))):
        names = frame.f_globals
        is_new = "type" not in names and not any(n is names and name == "type" for n, name, _ in WANTED)
        is_other = str(names.get("__name__", "")).partition(".")[0] in _OTHERS
        if is_new and not is_other and _asks(source_of(frame.f_code.co_filename)):
            WANTED.append((names, "type", kind))


def _frames(failure: TracebackType | None) -> Iterator[FrameType]:
    while failure is not None:
        yield failure.tb_frame
        failure = failure.tb_next


@functools.lru_cache(maxsize=64)
def _asks(source: str) -> bool:
    """Whether a file has ``type(x)``, and the name in no other use; Numba would compile it as it stands."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return False
    named = [n for n in nodes if isinstance(n, ast.Name) and n.id == "type"]
    called = [n.func for n in nodes if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords]
    return bool(named) and "numba" not in source and {*map(id, named)} <= {*map(id, called)}


def kind(value: Any) -> type:
    """Stands in for ``type``."""
    if isinstance(value, (Symbolic, *FILLABLE)):
        return np.ndarray if np.ndim(value) else np.float64
    return type(value)
