"""The forms of a plan: which kinds of terms, stores and loops are in it. Each stage, and each printer, takes some."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InternalError
from .address import Along, Linear, Listed, OfTask
from .loops import ByCursor, ByMember, ByRun, ByStrip
from .planned import PlannedChunks, PlannedKernel, PlannedSequences
from .stores import RowStore, Store


class Additions:
    """The form of kernels that add to what others wrote."""


class Steps:
    """The form of addresses that look several columns up."""


# the forms that there may be after a stage
AFTER_PLACE = (Linear, Listed, Store, Additions, ByStrip, ByMember)  # for a CPU; `schedule` changes none
ON_GPUS = (Linear, Listed, Store, ByStrip, ByMember, PlannedChunks)  # after `place`, and all that come then
AFTER_ALLOCATE = (*AFTER_PLACE, OfTask)
AFTER_RUNS = (Linear, Listed, OfTask, Along, Store, Additions, ByStrip, ByMember, ByRun, ByCursor)
AFTER_ROWS = (*AFTER_RUNS, RowStore)
AFTER_STEPS = (*AFTER_ROWS, Steps)  # `compress` gives no others
AFTER_SEQUENCES = (*AFTER_STEPS, PlannedSequences)
RELISTED = (Linear, Listed, OfTask, Steps, Store, Additions, ByStrip)  # see `relist`


def forms_of(kernels: Iterable[PlannedKernel], chunks: tuple[PlannedChunks, ...]) -> frozenset[type]:
    found: set[type] = {PlannedChunks} if chunks else set()
    for kernel in kernels:
        addresses = kernel.addresses()
        found.update(type(term) for address in addresses for term in address.terms)
        found.update(*(map(type, kernel.stores()), map(type, kernel.loops)))
        found.update({Steps} if any(len(address.columns) > 1 for address in addresses) else ())
        found.update({Additions} if kernel.added else ())
        found.update({PlannedSequences} if kernel.sequences is not None else ())
    return frozenset(found)


def refuse(name: str, forms: frozenset[type], takes: Iterable[type]) -> None:
    """InternalError where a record has forms that a stage, or a printer, does not take."""
    others = sorted(form.__name__ for form in forms.difference(takes))
    if others:
        raise InternalError(name, f"{name} does not take {', '.join(others)}: it must come before what gives these")
