"""Sparse matrices of JAX's: their values as a program takes them, and results with a program's pattern."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.core import Tracer
from jax.experimental.sparse import BCOO, BCSR

from ..differentiable.checks import coordinates, other_entries, other_pattern
from ..errors import ArgumentError
from ..signature import Argument

FORMATS = ("bcsr", "bcoo")


def as_scipy(value: BCSR | BCOO) -> Any:
    """An example as a matrix of SciPy's."""
    if value.n_batch or value.n_dense:
        raise ArgumentError("a matrix with batch or dense axes is no example; give one with two sparse axes")
    data, index = np.asarray(value.data), np.asarray(value.indices)
    if isinstance(value, BCSR):
        return sp.csr_array((data, index, np.asarray(value.indptr)), shape=value.shape)
    return sp.coo_array((data, tuple(index.T)), shape=value.shape)


def result(pattern: Any, values: Any, format: str) -> Any:
    """A matrix whose pattern is known. pattern : of SciPy's, in rows"""
    if format == "bcsr":
        index = jnp.asarray(pattern.indices), jnp.asarray(pattern.indptr)
        return BCSR((values, *index), shape=pattern.shape, indices_sorted=True, unique_indices=True)
    index = jnp.asarray(_coordinates(pattern))
    return BCOO((values, index), shape=pattern.shape, indices_sorted=True, unique_indices=True)


def _coordinates(pattern: Any) -> np.ndarray:
    return np.stack(coordinates(pattern), axis=1)


def values_of(argument: Argument, value: Any) -> Any:
    """The values of a variable that is a matrix, row by row.

    value : BCSR or BCOO of the pattern, with sorted entries; a matrix of SciPy's; or the values themselves

    ArgumentError where it has another pattern. Where indices are unknown, as inside of `jax.jit`, only their number is:
    there another pattern gives NaN.
    """
    pattern: Any = argument.pattern
    if sp.issparse(value):
        value = sp.csr_array(value, copy=True)
        value.sum_duplicates()
        value = BCSR((value.data, value.indices, value.indptr), shape=value.shape)
    if not isinstance(value, BCSR | BCOO):
        if np.shape(value) != argument.shape:
            raise other_pattern(argument, f"has shape {np.shape(value)}", "give BCSR or BCOO, or its values")
        return value
    if value.shape != pattern.shape or value.n_batch or value.n_dense or value.nse != pattern.nnz:
        raise other_pattern(argument, f"is {value!r}", "make another function for it")
    found: list[Any] = [value.indices, value.indptr] if isinstance(value, BCSR) else [value.indices]
    wanted = [pattern.indices, pattern.indptr] if isinstance(value, BCSR) else [_coordinates(pattern)]
    if not any(isinstance(a, Tracer) for a in found):
        if not all(map(np.array_equal, found, wanted)):
            raise other_entries(argument)
        return value.data
    are_equal = jnp.all(jnp.stack([jnp.all(a == b) for a, b in zip(found, wanted, strict=True)]))
    return jnp.where(are_equal, value.data, jnp.nan)
