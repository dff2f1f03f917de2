"""Passes for vectors: statements that a pass gives mean what they meant before, and what the plan means."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geoopt
from geoopt.codegen.code_text import function_listing, listing
from geoopt.codegen.expressions import Apply, Below, Divided, Lanes, Look, Name, Plus, Read, Whole, plus
from geoopt.codegen.interpreter import Interpreter, memory_of, outputs_of
from geoopt.codegen.lower import Lowered
from geoopt.codegen.simd import MAIN, across, additions, fission, functions_of, kernels, rows, tails, tiles
from geoopt.codegen.simd.frames import OfMembers
from geoopt.codegen.statements import (
    COUNT,
    INDEX,
    NUMBER,
    Block,
    For,
    If,
    Let,
    Prefetch,
    ReadRow,
    Write,
    WriteRows,
    WriteTerm,
    WriteTerms,
)
from geoopt.codegen.vectors import Vectors
from geoopt.operators import arap_mesh, polar_rotation
from geoopt.operators.arap import covariances
from geoopt.pipeline import planned
from geoopt.plan.task import KERNEL

from .conftest import outlines_of, with_unreferenced
from .test_code import CASES, inputs, laplacian

DOUBLE = np.dtype(np.float64)
PADDING = 4096  # entries behind columns that prefetches and counts of a tail may read
V, F = with_unreferenced()
L = laplacian(60)
ALL = CASES | {
    "sums of covariances": (lambda V: covariances(V, arap_mesh(V, F)), (V,)),
    "rotated covariances": (lambda V: polar_rotation(2 * covariances(np.sin(V), arap_mesh(V, F))), (V,)),
    "in order": (lambda L, x: L @ x, (L, np.random.default_rng(0).normal(size=len(L.indptr) - 1))),
    "sixteen columns": (lambda L, X: L @ X, (L, np.random.default_rng(0).normal(size=(len(L.indptr) - 1, 16)))),
}


def interpreted(plan, given, vectors):
    """What the functions for vectors give."""
    memory, outlines = memory_of(plan, given), outlines_of(plan)
    padded = dict(memory)
    for number, table in enumerate(plan.tables, plan.workspace + 1):
        padded[f"b{number}"] = np.append(table, np.zeros(PADDING, table.dtype))
    machines = [Interpreter(functions_of(found, vectors).functions) for found in outlines]
    for task in plan.tasks:
        arrays = [padded[f"b{buffer}"][first:] for buffer, first in outlines[task[KERNEL]].places]
        machines[task[KERNEL]].call(MAIN, [*arrays, np.asarray(task)])
    return outputs_of(plan, memory)


def plan_of(name, lanes):
    function, arguments = ALL[name]
    return planned(function, *arguments, options=geoopt.Options(lanes=lanes)).plan


def assert_equal(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("name", ALL)
def test_functions_for_vectors_mean_the_plan(name, lanes):
    plan, given = plan_of(name, lanes), inputs(ALL[name][1])
    found = interpreted(plan, given, Vectors(lanes, DOUBLE, reads_what_it_writes=True))
    assert_equal(found, plan.evaluate(given, plan.tasks))


AS_THEY_ARE = {
    "rows that are read": (kernels, "read_rows", lambda statements, is_padded: tuple(statements)),
    "rows that are written": (kernels, "written_rows", lambda statements: tuple(statements)),
    "tiles": (kernels, "whole_rows", lambda statements, lanes: tuple(statements)),
    "pieces": (kernels, "pieces_of", lambda body: []),
    "across": (across, "_side_by_side", lambda kernel, lanes: None),
}


@pytest.mark.parametrize("left_out", AS_THEY_ARE)
@pytest.mark.parametrize("name", ["cotan", "cloth", "polar", "product", "sixteen columns"])
def test_a_pass_changes_no_meaning(name, left_out, monkeypatch):
    """Without it statements are others, where it has something to do, and give the same."""
    monkeypatch.setattr(*AS_THEY_ARE[left_out])
    plan, given = plan_of(name, 4), inputs(ALL[name][1])
    assert_equal(interpreted(plan, given, Vectors(4, DOUBLE)), plan.evaluate(given, plan.tasks))


@pytest.mark.parametrize("name", ["cotan", "sums of covariances", "rotated covariances", "polar"])
@pytest.mark.parametrize("longest", [2, 9])
def test_bodies_may_be_cut_anywhere(name, longest, monkeypatch):
    """But not between loops that share totals, as those of many sums on AVX2 are."""
    for limit, value in {"LONG": 1, "SHORTEST": 1, "LONGEST": longest, "WAITING": 0, "MOST_KEPT": 1000}.items():
        monkeypatch.setattr(fission, limit, value)
    plan, given = plan_of(name, 4), inputs(ALL[name][1])
    assert_equal(interpreted(plan, given, Vectors(4, DOUBLE)), plan.evaluate(given, plan.tasks))
    frames = [OfMembers(found, Vectors(4, DOUBLE)) for found in outlines_of(plan)]
    assert any(len(fission.pieces_of(Lowered(frame.kernel, frame).statements())) > 1 for frame in frames)


def of_kind(kind, statements):
    """Statements of a kind, also inside others."""
    for s in statements:
        if isinstance(s, kind):
            yield s
        yield from of_kind(kind, s.body if isinstance(s, For) else (*s.yes, *s.no) if isinstance(s, If) else ())


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("cotan", (ReadRow, Prefetch)),
        ("cloth", (WriteRows, For)),
        ("polar", (ReadRow,)),
        ("small_matrices", (If,)),
    ],
)
def test_passes_have_something_to_do(name, kinds):
    plan = plan_of(name, 4)
    found = [functions_of(found, Vectors(4, DOUBLE)).functions[0].body for found in outlines_of(plan)]
    for kind in kinds:
        assert any(True for body in found for _ in of_kind(kind, body)), kind


# -- the examples of the files --------------------------------------------------------------------------------


MEMBERS, ENTRIES = plus(Name("i"), Lanes(4)), Name("p2", 4)


def at(number, entries=ENTRIES):
    return plus(entries, Whole(number))


def read(name, array, entry):
    return Let(name, NUMBER, Read(array, entry))


def normalised(text):
    return [re.sub(r"\s+", " ", line.strip()) for line in text.splitlines() if line.strip()]


def assert_in_doc(module, statements):
    doc = normalised(module.__doc__)
    missing = [line for line in normalised(listing(statements)) if not any(line in own for own in doc)]
    assert not missing, missing


def test_the_example_of_tails():
    before = [read("x0", "b0", MEMBERS), Let("p2", INDEX, Look("c2", MEMBERS)), Write("b1", ENTRIES, Name("x0"))]
    assert_in_doc(tails, before)
    assert_in_doc(tails, tails.masked(before, 4)[2:])
    kept = [Let("n0", COUNT, Look("c3", MEMBERS)), Block("w0", "psd", (Name("x0"),))]
    assert tails.masked(kept, 4)[2:] == tuple(kept)


def test_the_example_of_rows():
    reads = [read(f"x{k}", "b0", at(k, Name("p1", 4))) for k in range(3)]
    writes = [Write("b2", at(k, Name("p3", 4)), Name(f"r{k}")) for k in range(2)]
    assert_in_doc(rows, reads + writes)
    assert_in_doc(rows, rows.written_rows(rows.read_rows(reads + writes, lambda array: True)))


def test_the_example_of_tiles():
    term = WriteTerm("b1", ENTRIES, Name("p3", 4), Name("number"), Name("r0"))
    loop = For("t0", Name("first0"), Name("end0"), 16, (term,), "number")
    assert_in_doc(tiles, [loop])
    found = tiles.whole_rows([loop], 8)
    assert isinstance(found[-1], WriteTerms)
    assert_in_doc(tiles, found)


def test_the_example_of_additions():
    writes = [Write("b1", at(k), Name(f"r{k}"), 1) for k in range(2)]
    assert_in_doc(additions, writes)
    lets = [Let("p2", INDEX, Look("c2", plus(Name("i"), Lanes(8))))]
    lets += [Let(f"r{k}", NUMBER, Apply("negative", (Name("x"),))) for k in range(2)]
    found = additions.additions_of([*lets, *writes], 8, ())
    assert_in_doc(additions, [s for s in found.filled([*lets, *writes]) if isinstance(s, Write)])
    doc = normalised(additions.__doc__)
    assert all(line in doc for line in normalised(function_listing(found.function())))


def test_members_may_add_to_their_own_entries():
    """Also beside others, and to some that are no whole vector."""
    V, entries = np.arange(1.0, 8), np.array([1, 1, 4, 0, 2, 2, 5])
    at = plus(Name("i"), Lanes(4))
    lets = (Let("p", INDEX, Look("c", at)), read("x", "v", at))
    writes = (Write("b", at, Name("x"), 1), Write("b", Name("p", 4), Name("x"), -1))
    found = additions.additions_of((*lets, *writes), 4, ())
    body = (*found.filled((*lets, *writes)), found.added(Name("turn"), Name("members")))
    memory = {"v": V, "c": entries, "b": np.zeros(8)}
    machine = Interpreter([found.function()])
    for i, members in ((0, 4), (3, 3)):
        machine.run((*found.rooms(), *body), memory, {"i": i, "begin": 0, "members": members})
    wanted = np.zeros(8)
    for i in (*range(4), *range(3, 6)):
        wanted[i] += V[i]
        wanted[entries[i]] -= V[i]
    np.testing.assert_allclose(memory["b"], wanted)


def test_rows_of_values_that_are_no_neighbours_are_left():
    reads = [read("x0", "b0", ENTRIES), read("x1", "b0", at(4)), read("x2", "b1", at(1))]
    assert rows.read_rows(reads, lambda array: True) == tuple(reads)
    assert rows.is_scattered(ENTRIES) and not rows.is_scattered(MEMBERS) and not rows.is_scattered(Name("i"))
    condition = Below(Divided(Plus(Name("i"), Whole(3)), 2), Name("stop"))
    assert listing([If(condition, tuple(reads))]).startswith("if (i + 3) / 2 < stop:\n  let x0")
