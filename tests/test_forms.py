"""Addresses of every kind are what they say; stages and printers refuse forms that they do not know, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import geoopt
from geoopt.align import align
from geoopt.codegen import TARGETS
from geoopt.compress import compress
from geoopt.errors import InternalError
from geoopt.operators import cotan_laplacian
from geoopt.pipeline import DEVICES
from geoopt.plan import Plan, Schedule
from geoopt.plan.address import Address, Along, Linear, Listed, OfTask, Positions, Sum, Term
from geoopt.plan.loops import ByStrip
from geoopt.plan.planned import PlannedChunks
from geoopt.plan.stores import Store
from geoopt.plan.task import APART, FIELDS, SHIFT

from .conftest import gpu_stages, torus
from .test_stages import records

DOUBLE = np.dtype(np.float64)
BACK = {stage.__name__: stage for device in DEVICES.values() for stage in device.back}
CONTEXT = DEVICES["cpu"].context(geoopt.Options(), DOUBLE)


@dataclass(frozen=True, slots=True)
class Squared(Term):
    """``i * i``, of which nobody knows."""


def positions() -> Positions:
    task = np.arange(100, 100 + FIELDS + 2)
    table = {8: np.array([9, 1, 5], np.uint8), 9: np.array([30, 10, 20], np.uint16)}
    return Positions(task, table.__getitem__, np.arange(3) + 7, np.array([2, 0, 1]), np.array([0, 1, 2]))


@pytest.mark.parametrize(
    "terms, entries, text",
    [
        ((), [4, 4, 4], "b5[4]"),
        ((Linear(3),), [25, 28, 31], "b5[3*i+4]"),
        ((Linear(-1),), [-3, -4, -5], "b5[-i+4]"),
        ((Listed(9),), [24, 34, 14], "b5[b9[i]+4]"),
        ((OfTask(FIELDS + 1), Listed(9, 2)), [152, 172, 132], "b5[base1+2*b9[i]+4]"),
        ((Listed(9), Listed(8, 3)), [39, 61, 17], "b5[b9[i]+3*b8[i]+4]"),
        ((OfTask(SHIFT), OfTask(APART, 2), Linear(1)), [328, 329, 330], "b5[shift+2*apart+i+4]"),
        ((Listed(9), Along(1)), [24, 35, 16], "b5[b9[i]+r+4]"),
    ],
    ids=str,
)
def test_an_address_is_a_sum(terms, entries, text):
    address = Address(5, 4, terms)
    np.testing.assert_array_equal(address.entries(positions()), entries)
    assert str(address) == text
    moved = address.rewritten(lambda term: Sum(1, (term.moved(lambda table: table + 100),)))
    assert moved.tables() == [table + 100 for table in address.tables()] and moved.offset == 4 + len(terms)


def with_unknown_term(record):
    """A plan, or what has one, whose first kernel reads at an address of a kind that there is not."""
    if not isinstance(record, Plan):
        return replace(record, plan=with_unknown_term(record.plan))
    kernel, *others = record.kernels
    read = replace(kernel.reads[0], terms=(Squared(),))
    return replace(record, kernels=(replace(kernel, reads=(read, *kernel.reads[1:])), *others))


@pytest.mark.parametrize("printer", ["llvm", "cuda"])
def test_a_printer_refuses_a_kind_of_term_that_it_does_not_know(printer):
    if printer == "llvm":
        record, of = records(cotan_laplacian, *torus(100))["sequences"].plan, CONTEXT.vectors
    else:
        record, of = gpu_stages(cotan_laplacian, *torus(100))["spread"], DOUBLE
    emit = TARGETS["cpu" if printer == "llvm" else printer]
    assert emit(record, of)
    with pytest.raises(InternalError, match=f"{printer} does not take Squared"):
        emit(with_unknown_term(record), of)


@pytest.mark.parametrize("name", BACK)
def test_a_stage_refuses_a_kind_of_term_that_it_does_not_know(name):
    found = records(cotan_laplacian, *torus(100))
    before = {"schedule": "place", **dict.fromkeys(["align", "warps", "spread"], "place for GPUs")}.get(
        name, "schedule"
    )
    with pytest.raises(InternalError, match=f"{name} does not take Squared"):
        BACK[name](with_unknown_term(found[before]), CONTEXT)


def test_columns_are_aligned_before_they_are_compressed():
    """`align` would take the short numbers for entries of the workspace."""
    place = records(cotan_laplacian, *torus(400))["place for GPUs"]
    alone = replace(place, chunks=())
    compressed = compress(Schedule(alone, np.zeros((0, 2), int), np.zeros(0, int)), CONTEXT).plan
    assert OfTask in compressed.forms()
    with pytest.raises(InternalError, match="align does not take OfTask"):
        align(compressed, CONTEXT)


def test_a_plan_says_which_forms_it_has():
    found = records(cotan_laplacian, *torus(400))
    assert found["place"].forms() == {Linear, Listed, Store, ByStrip}
    assert found["allocate"].forms() == {*found["place"].forms(), OfTask}
    assert PlannedChunks in found["place for GPUs"].forms()
