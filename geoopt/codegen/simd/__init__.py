"""Kernels for vectors: the functions of a kernel in the kernel language, one vector lane per member."""

from __future__ import annotations

from ...plan import Plan
from ..code_text import function_listing
from ..vectors import Vectors
from .kernels import MAIN, Compiled, functions_of
from .outlines import Outline, outline

__all__ = ["MAIN", "Compiled", "Outline", "code", "functions_of", "outline"]


def code(plan: Plan, vectors: Vectors) -> str:
    """All functions of all kernels in the kernel language."""
    parts = []
    for number, kernel in enumerate(plan.kernels):
        made = functions_of(outline(plan, kernel, vectors.dtype), vectors)
        head = f"kernel {number}, by vectors of {made.lanes}:"
        parts.append("\n".join([head, *map(function_listing, made.functions)]))
    return "\n\n".join(parts)
