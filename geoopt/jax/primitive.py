"""The operation of JAX that runs a `Differentiable`, with what JAX's transformations make of it.

Its parameters are those of `geoopt.differentiable.rules`: ``of``, ``size``, ``over``. All arguments are arrays of one
type, float32 or float64. Tangents go through programs of `Differentiable.jvp`, cotangents through programs of
`Differentiable.vjp`, which are such operations again: derivatives of any order, and batches of them, come by
composition. (``jax.custom_vjp`` has no forward mode; with
``jax.custom_jvp`` the linear program of the tangents could not be transposed.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..differentiable import Differentiable
from ..differentiable.rules import Call, batched, of_arguments, pulled, pushed
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
    given = {place: t for place, t in enumerate(tangents) if type(t) is not ad.Zero}
    return results, _bound(pushed(of, primals, over, given, jnp.zeros_like), size)


def _bound(call: Call, size: int | None) -> list[Any]:
    return program_p.bind(*call.arrays, of=call.of, size=size, over=call.over)


def _pulled(
    cotangents: Sequence[Any], *arrays: Any, of: Differentiable, size: int | None, over: tuple[bool, ...]
) -> list[Any]:
    """The cotangents of the arguments that are not known, in which the function is linear."""
    wrt = tuple(place for place, array in enumerate(arrays) if ad.is_undefined_primal(array))
    given = tuple(place for place, cotangent in enumerate(cotangents) if type(cotangent) is not ad.Zero)
    if not given:
        return [ad.Zero(arrays[place].aval) if place in wrt else None for place in range(len(arrays))]
    product, is_batch = of.transpose(wrt, given), size is not None
    found = _bound(pulled(product, arrays, over, [cotangents[place] for place in given], is_batch), size)
    slopes = of_arguments(dict(zip(wrt, found, strict=True)), over, is_batch)
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
    """For each item of a batch."""

    def run(arrays: list[Any], size: int, over: tuple[bool, ...]) -> list[Any]:
        return program_p.bind(*arrays, of=of, size=size, over=over)

    arrays = [a if axis is None else jnp.moveaxis(a, axis, 0) for a, axis in zip(arrays, axes, strict=True)]
    results = batched(run, arrays, [axis is not None for axis in axes], jnp.broadcast_to, size, over)
    return results, [0] * len(results)


batching.primitive_batchers[program_p] = _batched
