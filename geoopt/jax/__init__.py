"""`geoopt.jax.function`: functions of NumPy's kind that JAX runs as compiled programs, and transforms like its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import jax
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ImportError("geoopt.jax needs JAX: pip install 'geoopt-compiler[jax]'") from None
import jax.numpy as jnp
from jax.core import Tracer
from jax.experimental.sparse import BCOO, BCSR

from ..differentiable.checks import check, traced_example
from ..differentiable.function import Function
from ..errors import ArgumentError
from ..options import Options
from ..signature import Argument, ordered
from .matrices import FORMATS, as_scipy, result, values_of
from .primitive import bind

TYPES = (np.dtype(np.float32), np.dtype(np.float64))


def function(
    function: Callable, *arguments: Any, options: Options | None = None, matrices: str = "bcsr", **keywords: Any
) -> Callable:
    """A function of JAX's arrays that runs the compiled program of a function of NumPy's.

    function, arguments, keywords : as for `geoopt.compile`: arrays of floats, numbers and the values of sparse matrices
        are variables, everything else (faces, ...) is structure. Arrays and matrices of JAX's may be given as well;
        what a pattern is, and what `fixed` marks, is as there
    options : switches and thresholds of the programs, see `Options`
    matrices : "bcsr" or "bcoo", of `jax.experimental.sparse`: what sparse results are

    The function that it returns takes the variables alone, by place or by name: arrays of the shapes of the examples,
    0-d arrays for numbers, and for a matrix BCSR or BCOO of its pattern, with sorted entries, or the array of its
    values, row by row. All are computed with in their common type, float32 or float64, as `jax.numpy` finds it. The
    result has the form of the function's: arrays, 0-d arrays, sparse matrices whose pattern is fixed, and tuples,
    lists, dicts and dataclasses of these (`jax.jit` returns dataclasses that are registered with `jax.tree_util`, and
    no texts); what depends on no variable is there, too.

    It works within `jax.jit`, `grad`, `vjp`, `jvp`, `jacfwd`, `jacrev`, `hessian`, `vmap`, `lax.scan` and their kin.
    Derivatives are programs of their own, of any order: each is prepared when it is first wanted, for each type, and
    `grad` runs one program forward and one backward. A batch runs `Program.batched`. To differentiate by a matrix, give
    its values: ``jax.grad(f)(A.data)``.

    Programs run on the CPU, in the memory of JAX's arrays. Outside of `jax.jit` errors are geoopt's; within, what is
    found while running, as a matrix that is singular, is a ``JaxRuntimeError`` with geoopt's text. Indices of a matrix
    that is an argument of `jax.jit` are unknown there: another pattern with as many entries gives NaN.

    Raises ArgumentError for arguments that it cannot take, TracingError where the code cannot be traced, which is when
    the function is first called.

    Examples
    --------
    >>> import jax
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> area = geoopt.jax.function(geoopt.operators.surface_area, V, F)
    >>> slope = jax.jit(jax.grad(area))(V)
    >>> np.allclose(np.sum(slope * V), 2 * area(V), rtol=1e-4)  # in single precision, unless JAX is told otherwise
    True
    """
    return _Function(function, arguments, keywords, options, matrices)


class _Function(Function):
    """What `function` returns."""

    module, formats = "geoopt.jax", FORMATS

    def on_host(self, value: Any) -> Any:
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
            raise traced_example("JAX", self.module, "jax.jit, grad and vmap")
        if isinstance(value, BCSR | BCOO):
            return as_scipy(value)
        return np.asarray(value) if isinstance(value, jax.Array) else value

    def __call__(self, /, *values: Any, **named: Any) -> Any:
        variables = self._flat.variables
        given = ordered(self.__name__, variables, values, named)
        arrays = _of_one_type(list(map(_numbers, variables, given)))
        found = bind(self._flat, arrays)
        part = self._flat.result(arrays[0].dtype)
        return part.rebuilt(found, lambda pattern, values: result(pattern, values, self._matrices))


def _numbers(argument: Argument, value: Any) -> Any:
    """The array of a variable's value; ArgumentError where it is none."""
    if argument.pattern is not None:
        value = values_of(argument, value)
    shape, dtype = (value.shape, value.dtype) if isinstance(value, jax.Array) else _shape_and_type(argument, value)
    check(argument, shape, dtype, jnp.issubdtype(dtype, jnp.floating), "jax.vmap")
    return value


def _shape_and_type(argument: Argument, value: Any) -> tuple[tuple[int, ...], Any]:
    try:
        return np.shape(value), jnp.result_type(value)
    except TypeError:
        what = f"variable {argument.name!r} is a {type(value).__name__}"
        raise ArgumentError(f"{what}; give an array of shape {argument.shape}") from None


def _of_one_type(arrays: list[Any]) -> list[Any]:
    dtype = arrays[0].dtype if isinstance(arrays[0], jax.Array) else None
    is_one = all(isinstance(a, jax.Array) and a.dtype == dtype for a in arrays)  # mostly; to ask JAX takes longer
    dtype = dtype if is_one else jnp.result_type(*arrays)
    if dtype not in TYPES:
        raise ArgumentError(f"dtype {dtype} is not supported; give float32 or float64, e.g. x.astype(jnp.float32)")
    return arrays if is_one else [jnp.asarray(a, dtype) for a in arrays]
