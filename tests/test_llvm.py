"""The text of kernels for the CPU: rows of neighbours leave as short vectors, and long kernels are cut into pieces."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geoopt
from geoopt.codegen.llvm import emit
from geoopt.codegen.llvm.printer import LOADS
from geoopt.codegen.lower import Lowered
from geoopt.codegen.simd import functions_of, outlines
from geoopt.codegen.simd.fission import LONGEST, MOST_KEPT, pieces_of, rooms_of
from geoopt.codegen.simd.frames import OfMembers
from geoopt.codegen.simd.rows import ROW, neighbours, parts
from geoopt.codegen.statements import NUMBER, For, If, Let, Prefetch
from geoopt.codegen.vectors import Vectors
from geoopt.meshes import bumpy
from geoopt.operators import arap_mesh, arap_rhs, cloth, cloth_system, cotan_laplacian, polar_rotation
from geoopt.operators.arap import covariances

from .conftest import outlines_of

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def test_rows_are_runs_of_entries_of_one_family():
    written = [("x", 5), ("x", 3), ("x", 4), ("x", 4), ("y", 7), ("x", 6), (None, 0)]
    rows = neighbours(*zip(*written, strict=True))
    assert sorted(n for row in rows for n in row) == list(range(len(written)))
    assert sorted(sorted(written[n][1] for n in row) for row in rows) == [[0], [3, 4], [4, 5, 6], [7]]
    long = neighbours(["x"] * (ROW + 3), range(ROW + 3))
    assert [len(row) for row in long] == [ROW, 3]


def test_parts_of_rows_are_vectors_side_by_side():
    for length in range(1, ROW + 1):
        found = list(parts(length))
        assert [first for first, _ in found] == [sum(size for _, size in found[:k]) for k in range(len(found))]
        assert sum(size for _, size in found) == length and all(size in (1, 2, 4) for _, size in found)


@pytest.mark.parametrize("width", range(1, 11))
@pytest.mark.parametrize("lanes, dtype", [(0, DOUBLE), (0, SINGLE), (4, DOUBLE), (2, DOUBLE), (16, DOUBLE)])
def test_rows_of_any_width_arrive(width, lanes, dtype):
    """Members whose values lie side by side, in order and in any other order."""
    rng = np.random.default_rng(width)
    x = rng.standard_normal((53, width)).astype(dtype)
    order = rng.permutation(53)

    def rows(x):
        return 2 * x, (x + 0.5)[order]

    program = geoopt.compile(rows, x, dtype=dtype, options=geoopt.Options(lanes=lanes))
    for got, want in zip(program(x), rows(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_neighbours_leave_as_short_vectors():
    """Of five values per member, four leave together, one alone."""
    text = geoopt.compile(lambda x: np.sqrt(x[:, :1]) * x, np.ones((100, 5)), options=geoopt.Options(lanes=8)).source()
    body = text[text.index(".body:") : text.index(".exit:")]
    assert len(re.findall("store <4 x double>", body)) == 8 and len(re.findall("store double", body)) == 8


def pieces_of_kernels(program, lanes=8):
    frames = (OfMembers(found, Vectors(lanes, DOUBLE)) for found in outlines_of(program.machine.plan))
    return [pieces_of(Lowered(frame.kernel, frame).statements()) for frame in frames]


def pieces(program):
    return list(map(len, pieces_of_kernels(program)))


def test_only_long_chains_of_operations_are_cut():
    V, F = bumpy(300)
    [cut] = pieces(geoopt.compile(polar_rotation, np.ones((50, 3, 3))))
    assert cut > 1
    assert set(pieces(geoopt.compile(cotan_laplacian, V, F))) == {0}
    rhs = pieces(geoopt.compile(arap_rhs, V, arap_mesh(V, F)))
    assert rhs[0] > 1 and set(rhs[1:]) == {0}
    assert set(pieces(geoopt.compile(cloth_system, V, V, 0.01, cloth(V, F)))) == {0}  # they add


@pytest.mark.parametrize(
    "count, lanes, dtype",
    [
        *((count, 0, DOUBLE) for count in (1, 7, 64, 65, 171, 2500)),
        *((count, 0, SINGLE) for count in (1, 171)),
        *((count, lanes, DOUBLE) for count in (1, 171) for lanes in (2, 4)),
    ],
)
def test_kernels_in_pieces_evaluate_all_members(count, lanes, dtype):
    """Fewer members than a vector has, whole groups of vectors, and what is left of them."""
    S = np.random.default_rng(count).normal(size=(count, 3, 3)).astype(dtype)
    program = geoopt.compile(polar_rotation, S, dtype=dtype, options=geoopt.Options(lanes=lanes))
    assert pieces(program)[0] > 1
    R = program(S)
    np.testing.assert_allclose(R, polar_rotation(S.astype(float)), atol=1e-9 if dtype == DOUBLE else 5e-6)


def test_pieces_keep_what_later_ones_need():
    V, F = bumpy(300)
    program = geoopt.compile(arap_rhs, V, arap_mesh(V, F))
    cut = pieces_of_kernels(program)[0]
    rooms, evaluated = {}, set()
    for piece in cut:
        assert all(rooms[room] == name for name, room in piece.needed)  # nothing else has come into its room
        rooms |= {room: name for name, room in piece.kept}
        own = {s.name for s in piece.statements if hasattr(s, "name")}
        assert {name for name, _ in piece.kept} <= own and own.isdisjoint(name for name, _ in piece.needed)
        once = {s.name for s in piece.statements if isinstance(s, Let) and s.kind == NUMBER and s.name[0] == "r"}
        assert len(once) <= LONGEST
        evaluated |= once
    assert max(rooms) < 20 and len(evaluated) > 300  # of 400 operations


def test_kernels_that_keep_much_are_left_whole():
    """The stack of a thread is small, and so is the nearest cache."""

    def iterates(x, y):
        found = []
        for _ in range(100):
            x = np.where(x > y, np.sqrt(x * x + y), y / (1 + x * x))
            found.append(x)
        return np.stack(found[-1:] if is_short else found, axis=-1)

    x, y = np.random.default_rng(0).uniform(0.5, 2, (2, 300))
    for is_short in (True, False):
        program = geoopt.compile(iterates, x, y)
        rooms = list(map(rooms_of, pieces_of_kernels(program)))
        assert (max(rooms) > 0) == is_short and max(rooms) <= MOST_KEPT
        np.testing.assert_allclose(program(x, y), iterates(x, y), rtol=1e-13)


@pytest.mark.parametrize(("lanes", "dtype"), [(1, DOUBLE), (2, DOUBLE), (4, DOUBLE), (8, SINGLE), (0, DOUBLE)])
def test_members_of_a_vector_have_different_numbers_of_terms(lanes, dtype):
    V, F = bumpy(1000)
    mesh, P = arap_mesh(V, F), np.random.default_rng(0).normal(size=V.shape).astype(dtype)
    program = geoopt.compile(covariances, P, mesh, dtype=dtype, options=geoopt.Options(lanes=lanes))
    assert any(loop.counts is not None for kernel in program.plan.kernels for loop in kernel.loops)
    np.testing.assert_allclose(
        program(P), covariances(P.astype(float), mesh), rtol=0, atol=1e-13 if dtype == DOUBLE else 1e-5
    )


def test_many_totals_are_chosen_from_in_the_last_terms_only():
    """Where registers are too few for totals with and without a term."""
    V, F = bumpy(300)
    mesh = arap_mesh(V, F)

    def loops(lanes, function, *arguments):
        """How many there are over the terms of a whole vector's members, in each kernel."""
        plan = geoopt.compile(function, *arguments, options=geoopt.Options(lanes=lanes)).machine.plan
        mains = [functions_of(found, Vectors(lanes, DOUBLE)).functions[0] for found in outlines_of(plan)]
        wholes = [next(s for s in main.body if isinstance(s, For)) for main in mains]
        return [sum(isinstance(s, For) for s in whole.body) for whole in wholes]

    plan = geoopt.compile(covariances, V, mesh).plan
    assert [len(joint.sums) for kernel in plan.kernels for joint in kernel.joints] == [9]
    assert loops(4, covariances, V, mesh) == [2] and loops(8, covariances, V, mesh) == [1]
    assert max(loops(4, cotan_laplacian, V, F)) < 2


@pytest.mark.parametrize("terms", [5, 9])
def test_columns_are_fetched_ahead_line_by_line(terms):
    """One prefetch per vector of members in a column of theirs, and as many as their terms have lines in those."""
    rng = np.random.default_rng(0)
    counts, to = rng.integers(1, 2 * terms, 2000), rng.permutation(2000)
    read, starts = rng.integers(0, 3000, counts.sum()), np.cumsum(counts) - counts

    def sums(x):
        out = np.zeros_like(x, shape=(2000,))
        out[to] = np.add.reduceat(x[read] ** 2, starts)
        return out

    x = np.arange(3000.0)
    program = geoopt.compile(sums, x, options=geoopt.Options(lanes=8))
    np.testing.assert_allclose(program(x), sums(x), rtol=1e-14)
    plan = program.machine.plan
    for kernel, found in zip(plan.kernels, outlines_of(plan), strict=True):
        fetched = [s.array for s in of_kind(Prefetch, functions_of(found, Vectors(8, DOUBLE)).functions[0].body)]
        assert kernel.loops
        lines, slot = -(-kernel.terms * 8 * 2 // (64 * kernel.size)), kernel.buffers().index
        assert [fetched.count(f"b{slot(read.table)}") for read in kernel.reads] == [lines]
        assert [fetched.count(f"c{slot(write.address.table)}") for [write] in kernel.writes] == [1]


def of_kind(kind, statements):
    """Statements of a kind, also inside others."""
    for s in statements:
        if isinstance(s, kind):
            yield s
        yield from of_kind(kind, s.body if isinstance(s, For) else (*s.yes, *s.no) if isinstance(s, If) else ())


def test_long_columns_are_left_to_hardware():
    rng = np.random.default_rng(0)
    counts = rng.integers(300, 400, 40)
    read, starts = rng.integers(0, 3000, counts.sum()), np.cumsum(counts) - counts
    program = geoopt.compile(
        lambda x: np.add.reduceat(x[read] ** 2, starts), np.ones(3000), options=geoopt.Options(lanes=8)
    )
    assert program.source().count("call void @llvm.prefetch") < 10
    np.testing.assert_allclose(program(np.arange(3000.0)), np.add.reduceat(read.astype(float) ** 2, starts), rtol=1e-13)


def test_large_outputs_are_fetched_ahead_where_processors_read_what_they_write(monkeypatch):
    plan = geoopt.compile(lambda x: np.sqrt(x), np.ones(1000)).plan

    def fetches(reads_what_it_writes):
        return emit(plan, Vectors(8, DOUBLE, reads_what_it_writes=reads_what_it_writes)).text.count(
            "call void @llvm.prefetch"
        )

    assert [fetches(False), fetches(True)] == [0, 0]
    monkeypatch.setattr(outlines, "LARGE", 7999)
    assert [fetches(False), fetches(True)] == [0, 1]


def test_loads_of_large_kernels_are_apart():
    """What LLVM does with all loads of a block takes time by the square of their number."""

    index = np.random.default_rng(0).integers(0, 900, (500, 60))

    def columns(x):
        return np.stack([np.sqrt(x[index[:, k]] + x[index[:, (k + 1) % 60]]) for k in range(60)], axis=1)

    program = geoopt.compile(columns, np.ones(900))
    assert len(program.plan.kernels) == 1
    text = emit(program.plan, Vectors(8, DOUBLE)).text
    between = [part.count(" = load ") for part in text.split("asm sideeffect")]
    assert len(between) > 2 and max(between) <= 2 * LOADS
