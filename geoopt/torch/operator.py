"""The operator of torch that runs a `Differentiable`, with what torch's transformations make of it.

``geoopt::program(Tensor[] arrays, int program, int? size, bool[] over) -> Tensor[]`` takes the number of the function,
for graphs of torch's hold no objects of Python's; the others are as in `geoopt.differentiable.rules`. All arrays have
one type, float32 or float64. Slopes and tangents are found by such operators again: derivatives of any order, and
batches of them, come by composition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import _C, Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ..differentiable import Differentiable
from ..differentiable.numbers import Numbered
from ..differentiable.rules import Call, batched, of_arguments, pulled, pushed
from ..errors import ArgumentError

TYPES = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}

LIBRARY = torch.library.Library("geoopt", "DEF")
LIBRARY.define("program(Tensor[] arrays, int program, int? size, bool[] over) -> Tensor[]")
program: Any = torch.ops.geoopt.program.default

_programs: Numbered[Differentiable] = Numbered()
number_of = _programs.number_of


def _found(number: int) -> Differentiable:
    of = _programs.find(number)
    if of is None:
        raise ArgumentError(
            "a graph of torch's runs a program that is gone: keep the function that geoopt.torch.function returned as "
            "long as the graph, and trace graphs again in every process"
        )
    return of


def _results(call: Call, size: int | None) -> list[Tensor]:
    return program(call.arrays, number_of(call.of), size, call.over)


@torch.library.impl(LIBRARY, "program", "CPU")
def _run(arrays: list[Tensor], number: int, size: int | None, over: list[bool]) -> list[Tensor]:
    dtype = arrays[0].dtype
    runner = _found(number).runner(TYPES[dtype], size, over)
    arrays = [a.contiguous() for a in arrays]
    results = [torch.empty(shape, dtype=dtype, device="cpu") for shape in runner.shapes]
    runner.run_at([a.data_ptr() for a in arrays], [a.data_ptr() for a in results])
    return results


@torch.library.register_fake("geoopt::program", lib=LIBRARY)
def _shapes(arrays: list[Tensor], number: int, size: int | None, over: list[bool]) -> list[Tensor]:
    of, dtype, items = _found(number), arrays[0].dtype, () if size is None else (size,)
    return [arrays[0].new_empty((*items, *shape)) for shape in of.shapes_in(TYPES[dtype])]


# -- derivatives --------------------------------------------------------------------------------------


class _Differentiated(_SingleLevelFunction):
    """The operator with its derivatives, in one of the levels of `torch.func`'s transformations.

    `torch.library.register_autograd` has no tangents, and refuses these transformations.
    """

    @staticmethod
    def forward(ctx: Any, how: tuple, *arrays: Tensor) -> tuple[Tensor, ...]:
        keys, ctx.number, ctx.size, ctx.over, is_grad, ctx.is_forward = how
        # kept until slopes are computed; not where graphs are traced, for torch may keep what it traces for ever
        ctx.kept = None if _C._len_torch_dispatch_stack() else _found(ctx.number)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arrays)
        ctx.save_for_forward(*arrays)
        with torch.set_grad_enabled(is_grad), forward_ad._set_fwd_grad_enabled(ctx.is_forward):  # for lower levels
            return tuple(_below(keys, list(arrays), ctx.number, ctx.size, ctx.over))

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        arrays, is_batch = ctx.saved_tensors, ctx.size is not None
        wrt = tuple(place for place, is_wanted in enumerate(ctx.needs_input_grad[1:]) if is_wanted)
        given = {place: c for place, c in enumerate(cotangents) if c is not None}
        if not wrt or not given:
            return (None,) * (1 + len(arrays))
        call = pulled(_found(ctx.number).pullback(wrt, tuple(given)), arrays, ctx.over, [*given.values()], is_batch)
        slopes = of_arguments(dict(zip(wrt, _results(call, ctx.size), strict=True)), ctx.over, is_batch)
        return None, *(slopes.get(place) for place in range(len(arrays)))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple[Tensor | None, ...]:
        given = {place: t for place, t in enumerate(tangents) if t is not None}
        of = _found(ctx.number)
        if not given:
            return (None,) * len(of.shapes)
        with forward_ad._set_fwd_grad_enabled(ctx.is_forward):  # without, tangents of tangents would be lost
            arrays = [forward_ad.unpack_dual(a, level=0).primal for a in ctx.saved_tensors]
            return tuple(_results(pushed(of, arrays, ctx.over, given, torch.zeros_like), ctx.size))


def _below(keys: Any, *arguments: Any) -> list[Tensor]:
    """The operator without what differentiates it at this level."""
    keys = keys & _C._after_autograd_keyset
    if keys.highestPriorityTypeId() == _C.DispatchKey.CPU:  # mostly: nothing else takes part in the call
        return _run(*arguments)
    with _C._AutoDispatchBelowAutograd():
        return program.redispatch(keys, *arguments)


def _differentiated(keys: Any, arrays: list[Tensor], number: int, size: int | None, over: list[bool]) -> list[Tensor]:
    is_grad = torch.is_grad_enabled()
    is_wanted = is_grad and any(a.requires_grad for a in arrays)
    if not is_wanted and forward_ad._current_level < 0 and not _C._are_functorch_transforms_active():
        return _below(keys, arrays, number, size, over)
    how = keys, number, size, tuple(over), is_grad, _C._is_fwd_grad_enabled()
    with enable_single_level_autograd_function():
        return list(_Differentiated.apply(how, *arrays))  # type: ignore[attr-defined]


LIBRARY.impl("program", _differentiated, "Autograd", with_keyset=True)


# -- batches ------------------------------------------------------------------------------------------


def _batched(
    info: Any, axes: tuple, arrays: list[Tensor], number: int, size: int | None, over: list[bool]
) -> tuple[list[Tensor], list[int]]:
    """For each item of a batch."""

    def run(arrays: list[Tensor], size: int, over: Sequence[bool]) -> list[Tensor]:
        return program(arrays, number, size, over)

    arrays = [a if axis is None else a.movedim(axis, 0) for a, axis in zip(arrays, axes[0], strict=True)]
    results = batched(run, arrays, [axis is not None for axis in axes[0]], torch.broadcast_to, size, over)
    return results, [0] * len(results)


torch.library.register_vmap("geoopt::program", _batched, lib=LIBRARY)
