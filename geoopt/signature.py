"""What `trace` gives besides the graph: how arguments become variables, and arrays of outputs the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Matrix = Callable[[Any, Any], Any]  # of a matrix without values, and values
Rebuild = Callable[..., Any]  # of arrays, and of a `Matrix` where it is not `with_values`
Collect = Callable[[Any], list[np.ndarray]]


@dataclass(frozen=True)
class Argument:
    """One variable of the program, as its caller passes it."""

    name: str
    shape: tuple[int, ...]
    pattern: sp.csr_array | None = None  # of a sparse matrix; its values are the variable


@dataclass(frozen=True, eq=False)
class Signature:
    """How calls of the program map to the graph's variables and back to results."""

    function: str
    arguments: tuple[Argument, ...]
    rebuild: Rebuild
    collect: Collect
    has_numbers: bool  # the last output holds the result's numbers and comparisons
    has_comparisons: bool
    paths: int  # through branches of the function, between whose results the program chooses


def with_values(pattern: Any, values: Any) -> Any:
    """A matrix that shares a pattern's index arrays; checking them again would cost more than small kernels."""
    matrix = object.__new__(type(pattern))
    matrix.__dict__.update(pattern.__dict__)
    matrix.data = values
    return matrix
