"""`batched`: functions of many positions or parameters at once, on one structure."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import ArgumentError
from .numeric import is_on_gpu
from .runtime.batch import checked_size
from .sparse.matrix import SparseMatrix
from .symbolic import Symbolic
from .trace import Fixed, argument_names


def batched(function: Callable, size: int, over: str | Iterable[str] | None = None) -> Callable:
    """The function that computes ``size`` results at once, which differ in the values of some arguments.

    Arguments ``over`` have an axis of this length in front of their own (sparse matrices: lists of as many), all items
    of the batch share the others; None for all arrays of floats. So have the arrays of its result; numbers become
    arrays (size,), sparse matrices lists of as many, and tuples, dicts and dataclasses hold such.

    Give it to `compile` or `jit`, as in ``geoopt.compile(geoopt.batched(cotan_laplacian, 64), V, F)`` with V
    (64, n, 3): the program is prepared for one item, and computes all of them to the same bits as one by one. Threads
    share the items. Derivatives go inside: ``batched(gradient(energy), 64)``. On floats, and inside of code that is
    traced, it calls the function for each item.

    Raises ArgumentError for a size that is not positive, for names that are no arguments, and for arguments with
    another axis. See also `Program.batched`.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> several = np.stack([V, 2 * V, 3 * V])
    >>> areas = geoopt.compile(geoopt.batched(geoopt.operators.surface_area, 3), several, F)
    >>> np.round(areas(several) / areas(several)[0], 6)
    array([1., 4., 9.])
    """
    if not callable(function):
        raise ArgumentError(f"batched takes a function, not a {type(function).__name__}")
    names = None if over is None else frozenset([over] if isinstance(over, str) else over)
    return Batched(function, checked_size(size), names)


class Batched:
    """over : the names of arguments with a value for each item; None for all arrays of floats"""

    __wrapped__: Callable

    def __init__(self, function: Callable, size: int, over: frozenset[str] | None):
        functools.update_wrapper(self, function, updated=())
        self.function, self.size, self.over = function, size, over

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _stacked([self.function(*own, **named) for own, named in self.items(args, kwargs)])

    def names(self, args: tuple, kwargs: dict[str, Any]) -> list[str]:
        """Which of some arguments have a value for each item; ArgumentError where they do not have as many."""
        given = dict(zip(argument_names(self.function, args), args, strict=True)) | kwargs
        for name in self.over or ():
            if name not in given:
                raise ArgumentError(f"batched(over={name!r}): the arguments are {', '.join(map(repr, given))}")
        over = [name for name, value in given.items() if self._is_over(name, value)]
        for name in over:
            count, what = _counted(given[name])
            if count != self.size:
                raise ArgumentError(
                    f"argument {name!r}: {what}; a batch of {self.size} items needs a list of {self.size} matrices, or "
                    f"an axis of {self.size} in front; name what differs by item: batched(function, size, over=...)"
                )
        if not over:
            raise ArgumentError("no argument of the batch is an array of floats with a value for each item")
        return over

    def _is_over(self, name: str, value: Any) -> bool:
        if isinstance(value, Fixed):
            return False
        if self.over is not None:
            return name in self.over
        is_array = isinstance(value, np.ndarray | Symbolic) or (is_on_gpu(value) and not hasattr(value, "indptr"))
        return is_array and np.ndim(value) > 0 and (isinstance(value, Symbolic) or value.dtype.kind == "f")

    def items(self, args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[list, dict[str, Any]]]:
        """The arguments of one item after the other."""
        over, names = self.names(args, kwargs), argument_names(self.function, args)
        for item in range(self.size):
            own = [value[item] if name in over else value for name, value in zip(names, args, strict=True)]
            yield own, {name: value[item] if name in over else value for name, value in kwargs.items()}


def _counted(value: Any) -> tuple[int, str]:
    """For how many items an argument has values, and what messages call it."""
    if isinstance(value, list | tuple):
        return len(value), f"a list of {len(value)}"
    if sp.issparse(value):
        return 0, "one matrix"
    return (*np.shape(value), 0)[0], f"shape {np.shape(value)}"


def _stacked(results: list[Any]) -> Any:
    """The results of all items, as parts of the result of a batch are: see `results.Part.of_batch`."""
    first = results[0]
    if isinstance(first, dict):
        return {key: _stacked([r[key] for r in results]) for key in first}
    if isinstance(first, tuple | list):
        parts = [_stacked(list(one)) for one in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [f.name for f in dataclasses.fields(first)]
        return type(first)(**{name: _stacked([getattr(r, name) for r in results]) for name in names})
    if first is None or isinstance(first, str):
        return first
    is_matrix = sp.issparse(first) or isinstance(first, SparseMatrix | np.matrix)
    return results if is_matrix else np.stack(results)
