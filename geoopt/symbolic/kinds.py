"""``type(x)`` of symbolic values, which Python alone answers.

A trace that fails begins again, with a substitute for the name ``type`` in the modules that the failure came through,
if they ask ``type(x)`` and do nothing else with that name.
"""

from __future__ import annotations

import ast
import functools
import itertools
from traceback import walk_tb
from typing import Any

import numpy as np

from ..errors import GeooptError
from ..sources import parts_of, source_of
from . import FILLABLE, Symbolic, numpy_classes, subclass
from .floats import want

# what code raises that was told another type than it takes
OF_TYPES = (TypeError, ValueError, AttributeError, AssertionError, NotImplementedError, GeooptError)
_OTHERS = ("numpy", "scipy", __name__.partition(".")[0])


def ask(error: Exception) -> None:
    """Let the modules that an error, or what caused it, came through have the substitute."""
    failures = error.__traceback__, getattr(error.__cause__, "__traceback__", None)
    for frame, _ in itertools.chain(*map(walk_tb, failures)):
        is_other = str(frame.f_globals.get("__name__", "")).partition(".")[0] in _OTHERS
        if is_other:
            continue
        numpy_classes.ask(frame.f_globals, frame.f_code.co_filename)
        subclass.ask(frame.f_globals, frame.f_code.co_filename)
        if _asks(source_of(frame.f_code.co_filename)):
            want(frame.f_globals, "type", kind)


@functools.lru_cache(maxsize=64)
def _asks(source: str) -> bool:
    """Whether a file has ``type(x)``, and the name in no other use; Numba would compile it as it stands."""
    nodes = parts_of(source)
    named = [n for n in nodes if isinstance(n, ast.Name) and n.id == "type"]
    called = [n.func for n in nodes if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords]
    return bool(named) and "numba" not in source and {*map(id, named)} <= {*map(id, called)}


def kind(value: Any) -> type:
    """Stands in for ``type``."""
    if isinstance(value, (Symbolic, *FILLABLE)):
        return np.ndarray if np.ndim(value) else np.float64
    return type(value)
