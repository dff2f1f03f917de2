"""Names of functions that wrap others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any


def name_of(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def named(traced: Callable, wrapped: Callable, name: str, arguments: Sequence[str] = ()) -> Callable:
    """A function of arrays as one that wraps the user's, so that tracing finds that one's module. arguments : their
    names, for messages"""

    def called(*arrays: Any) -> Any:
        return traced(*arrays)

    called.__name__, called.__wrapped__ = name, wrapped  # type: ignore[attr-defined]
    kind, names = inspect.Parameter.POSITIONAL_OR_KEYWORD, arguments
    if not names or not all(map(str.isidentifier, names)):
        kind, names = inspect.Parameter.VAR_POSITIONAL, ["arrays"]
    called.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return called
