"""What frameworks have in common where they take values: which are refused, and how a pattern lists its entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..signature import Argument


def check(argument: Argument, shape: Sequence[int], dtype: Any, is_float: bool, batches: str) -> None:
    """ArgumentError where a variable cannot have a value. batches : what computes many values"""
    if tuple(shape) != argument.shape:
        raise ArgumentError(
            f"variable {argument.name!r} has shape {tuple(shape)}; the function was made for {argument.shape}; more of "
            f"them go through {batches}"
        )
    if not is_float:
        raise ArgumentError(f"variable {argument.name!r} has dtype {dtype}; give floating-point numbers, e.g. x * 1.0")


def coordinates(pattern: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the columns of a pattern's entries, row by row."""
    return np.repeat(np.arange(pattern.shape[0], dtype=pattern.indices.dtype), np.diff(pattern.indptr)), pattern.indices


def traced_example(framework: str, module: str, within: str) -> ArgumentError:
    """What is raised where a framework traces an example. within : the transformations that do so"""
    return ArgumentError(
        f"an example is traced by {framework}, so that its values are unknown: call {module}.function outside of "
        f"{within}, with arrays, and the function that it returns within"
    )


def other_pattern(argument: Argument, what: str, remedy: str) -> ArgumentError:
    """What is raised where a matrix, or values, do not fit to a variable's pattern."""
    pattern: Any = argument.pattern
    wanted = f"a matrix of shape {pattern.shape} with {pattern.nnz} entries"
    return ArgumentError(f"variable {argument.name!r} {what}; the function is for {wanted}: {remedy}")


def other_entries(argument: Argument) -> ArgumentError:
    return other_pattern(argument, "has another pattern, or unsorted entries", "sort them, or make another function")
