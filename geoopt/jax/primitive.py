"""The operation of JAX that runs a `Differentiable`, with what JAX's transformations make of it.

Its parameters: ``of`` is the function, ``size`` the items of a batch (None: no batch), ``over`` says of each argument
whether every item has its own. All arguments are arrays of one type, float32 or float64. Tangents go through programs
of `Differentiable.jvp`, cotangents through programs of `Differentiable.vjp`, which are such operations again:
derivatives of any order, and batches of them, come by composition. (``jax.custom_vjp`` has no forward mode; with
``jax.custom_jvp`` the linear program of the tangents could not be transposed.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..differentiable import Differentiable
from ..errors import DeviceError
from .ffi import TARGET, number_of

program_p = Primitive("geoopt")
program_p.multiple_results = True


def bind(of: Differentiable, arrays: Sequence[Any]) -> list[Any]:
    """The results of a function. arrays : one for each argument"""
    return program_p.bind(*arrays, of=of, size=None, over=(False,) * len(arrays))


_as_jax = jax.jit(lambda *arrays: list(arrays))  # in a third of the time that jax.device_put takes for small arrays


@program_p.def_impl
def _run(*arrays: Any, of: Differentiable, size: int | None, over: tuple[bool, ...]) -> list[Any]:
    """At once, outside of `jax.jit`: errors are geoopt's own."""
    found = of.runner(arrays[0].dtype, size, over)([np.asarray(a) for a in arrays])
    with jax.default_device(next((d for a in arrays if isinstance(a, jax.Array) for d in a.devices()), None)):
        return _as_jax(*found)


@program_p.def_abstract_eval
def _shapes(*arrays: Any, of: Differentiable, size: int | None, over: tuple[bool, ...]) -> list[Any]:
    items = () if size is None else (size,)
    dtype = arrays[0].dtype
    return [ShapedArray((*items, *shape), dtype) for shape in of.shapes_in(dtype)]


# -- XLA ----------------------------------------------------------------------------------------------


def _lowered(ctx: Any, *arrays: Any, of: Differentiable, size: int | None, over: tuple[bool, ...]) -> Any:
    runner = of.runner(ctx.avals_in[0].dtype, size, over)
    ctx.module_context.add_keepalive(runner)
    return jax.ffi.ffi_lowering(TARGET)(ctx, *arrays, program=number_of(runner))


def _refused(ctx: Any, *arrays: Any, **how: Any) -> Any:
    raise DeviceError("geoopt.jax computes on the CPU; call it within jax.default_device(jax.devices('cpu')[0])")


mlir.register_lowering(program_p, _refused)
mlir.register_lowering(program_p, _lowered, platform="cpu")


# -- derivatives --------------------------------------------------------------------------------------


def _pushed(
    primals: Sequence[Any], tangents: Sequence[Any], *, of: Differentiable, size: int | None, over: tuple[bool, ...]
) -> tuple[list[Any], list[Any]]:
    """The results, and their tangents."""
    results = program_p.bind(*primals, of=of, size=size, over=over)
    wrt = tuple(place for place, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    if {*wrt} <= {*of.linear}:  # the tangents of a linear function are its values
        zeros = {place: jnp.zeros_like(primals[place]) for place in of.linear}
        along = zeros | {place: tangents[place] for place in wrt}
        values = [along.get(place, primal) for place, primal in enumerate(primals)]
        return results, program_p.bind(*values, of=of, size=size, over=over)
    product = of.jvp(wrt, tuple(range(len(results))))
    over = *over, *(over[place] for place in wrt)
    return results, program_p.bind(*primals, *(tangents[p] for p in wrt), of=product, size=size, over=over)


def _pulled(
    cotangents: Sequence[Any], *arrays: Any, of: Differentiable, size: int | None, over: tuple[bool, ...]
) -> list[Any]:
    """The cotangents of the arguments that are not known, in which the function is linear."""
    wrt = tuple(place for place, array in enumerate(arrays) if ad.is_undefined_primal(array))
    given = tuple(place for place, cotangent in enumerate(cotangents) if type(cotangent) is not ad.Zero)
    if not given:
        return [ad.Zero(arrays[place].aval) if place in wrt else None for place in range(len(arrays))]
    product, others = of.transpose(wrt, given)
    values = *(arrays[place] for place in others), *(cotangents[place] for place in given)
    are_own = *(over[place] for place in others), *(size is not None for _ in given)
    slopes = dict(zip(wrt, program_p.bind(*values, of=product, size=size, over=are_own), strict=True))
    if size is not None:  # what all items share has the sum of their slopes
        slopes = {place: slope if over[place] else slope.sum(axis=0) for place, slope in slopes.items()}
    return [slopes.get(place) for place in range(len(arrays))]


ad.primitive_jvps[program_p] = _pushed
ad.primitive_transposes[program_p] = _pulled


# -- batches ------------------------------------------------------------------------------------------


def _batched(
    arrays: Sequence[Any],
    axes: Sequence[int | None],
    *,
    of: Differentiable,
    size: int | None,
    over: tuple[bool, ...],
) -> tuple[list[Any], list[int]]:
    """For each item of a batch; a batch of batches is one of all their items."""
    arrays = [a if axis is None else jnp.moveaxis(a, axis, 0) for a, axis in zip(arrays, axes, strict=True)]
    is_new = [axis is not None for axis in axes]
    count = next(len(a) for a, new in zip(arrays, is_new, strict=True) if new)
    joined: Callable[[Any, bool, bool], Any] = lambda a, new, old: a  # noqa: E731
    if size is not None:
        joined = lambda a, new, old: _joined(a, new, old, count, size)  # noqa: E731
    arrays = [joined(a, new, old) for a, new, old in zip(arrays, is_new, over, strict=True)]
    items, either = count * (size or 1), tuple(new or old for new, old in zip(is_new, over, strict=True))
    results = program_p.bind(*arrays, of=of, size=items, over=either)
    if size is not None:
        results = [a.reshape(count, size, *a.shape[1:]) for a in results]
    return results, [0] * len(results)


def _joined(array: Any, is_new: bool, is_old: bool, count: int, size: int) -> Any:
    """An array with one axis for the items of ``count`` batches of ``size``. is_new, is_old : which axes it has"""
    if not is_new and not is_old:
        return array
    of_item = array.shape[is_new + is_old :]
    array = array if is_new else array[None]
    array = array if is_old else array[:, None]
    return jnp.broadcast_to(array, (count, size, *of_item)).reshape(count * size, *of_item)


batching.primitive_batchers[program_p] = _batched
