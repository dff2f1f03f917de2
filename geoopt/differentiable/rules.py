"""How tangents, cotangents and batches go through a `Differentiable`, for all frameworks.

A framework calls a function with an array for each argument, with ``size``, the items of a batch (None: no batch), and
with ``over``, which says of each argument whether every item has its own. Each rule gives such a call again. Arrays are
the framework's; the rules index them, and call their ``sum`` and ``reshape``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import Differentiable, Places


class Call(NamedTuple):
    """A function with what it is called with."""

    of: Differentiable
    arrays: list[Any]
    over: tuple[bool, ...]


def pushed(
    of: Differentiable,
    arrays: Sequence[Any],
    over: Sequence[bool],
    tangents: Mapping[int, Any],
    zeros: Callable[[Any], Any],
) -> Call:
    """What gives the tangents of all results.

    tangents : by the places of arguments; those of others are zero
    zeros : gives of an array one of zeros
    """
    if {*tangents} <= {*of.linear}:  # the tangents of a linear function are its values
        along = {place: zeros(arrays[place]) for place in of.linear if place not in tangents} | {**tangents}
        return Call(of, [along.get(place, array) for place, array in enumerate(arrays)], tuple(over))
    product = of.jvp(tuple(tangents), tuple(range(len(of.shapes))))
    return Call(product, [*arrays, *tangents.values()], (*over, *(over[place] for place in tangents)))


def pulled(
    product: tuple[Differentiable, Places],
    arrays: Sequence[Any],
    over: Sequence[bool],
    cotangents: Sequence[Any],
    is_batch: bool,
) -> Call:
    """What gives slopes, of each item of a batch its own.

    product : what `Differentiable.transpose` or `Differentiable.pullback` gives
    cotangents : an array for each result that it takes one for
    """
    of, places = product
    are_own = *(over[place] for place in places), *(is_batch for _ in cotangents)
    return Call(of, [*(arrays[place] for place in places), *cotangents], are_own)


def of_arguments(slopes: Mapping[int, Any], over: Sequence[bool], is_batch: bool) -> dict[int, Any]:
    """Slopes by the places of arguments: what all items of a batch share has the sum of theirs."""
    return {place: slope.sum(axis=0) if is_batch and not over[place] else slope for place, slope in slopes.items()}


def batched(
    run: Callable[[list[Any], int, tuple[bool, ...]], Sequence[Any]],
    arrays: Sequence[Any],
    is_new: Sequence[bool],
    broadcast: Callable[[Any, tuple[int, ...]], Any],
    size: int | None,
    over: Sequence[bool],
) -> list[Any]:
    """The results for each item of a batch, whose axis is the first; a batch of batches is one of all their items.

    run : gives of arrays, a size, and which arrays have an axis of items, the results
    arrays, is_new : which ones have an axis of the new items; it is the first
    broadcast : gives of an array and a shape one of this shape
    """
    count = next(len(a) for a, new in zip(arrays, is_new, strict=True) if new)
    if size is None:
        return [*run([*arrays], count, tuple(is_new))]
    items, joined = (count, size), []
    for array, new, old in zip(arrays, is_new, over, strict=True):
        if new or old:  # one axis for the items of all batches
            of_item = array.shape[new + old :]
            array = array if new else array[None]
            array = array if old else array[:, None]
            array = broadcast(array, (*items, *of_item)).reshape(count * size, *of_item)
        joined.append(array)
    results = run(joined, count * size, tuple(new or old for new, old in zip(is_new, over, strict=True)))
    return [a.reshape(*items, *a.shape[1:]) for a in results]
