"""Steps: blocks with several rows are addressed by one column each and by steps that they share."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geoopt
from geoopt.meshes import cloth as cloth_mesh
from geoopt.meshes import tetrahedral_ball
from geoopt.operators import cloth, cloth_system
from geoopt.sparse import from_triplets

from .test_stages import check_all_stages

RNG = np.random.default_rng(5)
V, T = tetrahedral_ball(300)
NEW = RNG.permutation(len(V))  # numbers of the vertices, of which no neighbours follow each other by a rule
V, T = V[np.argsort(NEW)], NEW[T]


def stiffness(V, T, rows):
    """Of ``rows`` values at each corner: a matrix of blocks (rows, rows), whose entries all differ."""
    x = V[T]
    e = x[:, 1:] - x[:, :1]
    c = np.cross(e[:, [1, 2, 0]], e[:, [2, 0, 1]])
    g = np.concatenate([-c.sum(axis=1, keepdims=True), c], axis=1)[:, :, :rows]  # (t, 4, rows)
    K = (np.sin(g)[:, :, :, None, None] * np.cos(g)[:, None, None]).reshape(len(T), 4 * rows, 4 * rows)
    at = (rows * T[:, :, None] + np.arange(rows)).reshape(len(T), -1)
    i, j = np.repeat(at, at.shape[1], axis=1), np.tile(at, (1, at.shape[1]))
    return from_triplets(i, j, K.reshape(len(T), -1), (rows * len(V),) * 2)


def adding(program):
    [kernel] = [k for k in program.plan.kernels if k.added]
    return kernel


def steps_of(stores):
    """The columns of steps: all but the first of each address."""
    return {column.table for store in stores for column in store.address.columns[1:]}


def columns(program):
    """How many columns and how many steps tell where a kernel adds."""
    added = adding(program).added
    return len({s.address.table for s in added}), len(steps_of(added))


def compiled(function, *arguments, **options):
    return geoopt.compile(function, *arguments, options=geoopt.Options(assembly="scatter", **options))


@pytest.mark.parametrize("rows", [2, 3])
def test_blocks_have_one_column_and_corners_one_step(rows):
    assert columns(compiled(stiffness, V, T, rows)) == (16, 4)
    assert columns(compiled(stiffness, V, T, rows, without=frozenset({"memory"}))) == (16 * rows, 0)


def test_one_row_per_corner_has_no_steps():
    assert columns(compiled(stiffness, V, T, 1)) == (16, 0)


def test_cloth_has_nine_columns_and_three_steps():
    V, F = cloth_mesh(400)
    assert columns(compiled(cloth_system, V, V, 0.05, cloth(V, F))) == (9, 3)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numpy_does_the_same(lanes, dtype):
    x = V + 0.05 * RNG.standard_normal(V.shape)
    program = geoopt.compile(stiffness, V, T, 3, options=geoopt.Options(assembly="scatter", lanes=lanes), dtype=dtype)
    got, want = program(x.astype(dtype)).toarray(), stiffness(x, T, 3).toarray()
    assert columns(program) == (16, 4)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("largest", [3, 1 << 16])
def test_every_stage_means_the_same(monkeypatch, largest):
    """Also with steps that do not fit 16 bits."""
    monkeypatch.setattr("geoopt.steps.LARGEST", largest)
    check_all_stages(stiffness, V, T, 3, assembly="scatter")


def test_columns_that_differ_for_one_member_are_kept():
    """What some members tell of a step is looked at in all of them."""
    size = 1000
    first, step = 9 * RNG.permutation(size), 1 + np.arange(size) // 100 % 2

    def placed(x, last):
        entries = np.zeros(9 * size)
        for at in (first, first + step, last):
            entries[at] = x
        return entries

    x = RNG.uniform(1, 2, size)
    for odd, count in ((size, 1), (7, 0)):
        last = first + 2 * step + (np.arange(size) == odd)
        check_all_stages(placed, x, last)
        [kernel] = [k for k in geoopt.compile(placed, x, last).plan.kernels if k.roots[0].op != "constant"]
        assert len(steps_of(kernel.stores())) == count


@pytest.mark.parametrize("side, lanes", [(8, 8), (8, 4), (4, 4), (4, 0), (3, 0)])
def test_rows_of_blocks_as_wide_as_vectors(side, lanes):
    """Blocks that are written, not added: each row has its own step, where vectors hold values of one member, too."""
    n, blocks = 150, np.unique(RNG.integers(0, 150, (500, 2)), axis=0)
    rows = side * blocks[:, 0, None, None] + np.arange(side)[:, None] + np.zeros(side, int)
    cols = side * blocks[:, 1, None, None] + np.zeros((side, 1), int) + np.arange(side)

    def twice(B):
        return from_triplets(rows, cols, 2 * B, (side * n, side * n))

    B = RNG.normal(size=(len(blocks), side, side))
    check_all_stages(twice, B, lanes=lanes)
    program = geoopt.compile(twice, B, options=geoopt.Options(lanes=lanes))
    assert any(steps_of(kernel.stores()) for kernel in program.plan.kernels)
    np.testing.assert_array_equal(program(B).data, twice(B).data)


def test_steps_of_large_outputs_need_not_be_whole_lines():
    """10 MB, of which blocks of 8 rows with 8 values each begin wherever the length of a row puts them."""
    count = 12_000
    lengths = 8 + 2 * RNG.integers(1, 6, count)
    starts = np.cumsum(8 * lengths) - 8 * lengths
    at = (starts[:, None, None] + lengths[:, None, None] * np.arange(8)[:, None] + np.arange(8))[RNG.permutation(count)]
    source = np.full((8 * lengths).sum(), count * 64)
    source[at.ravel()] = np.arange(count * 64)

    def spread(B):
        return np.concatenate([(2 * B).ravel(), np.zeros(1)])[source]

    B = RNG.normal(size=(count, 8, 8))
    np.testing.assert_array_equal(geoopt.compile(spread, B)(B), spread(B))


def test_rows_of_a_block_leave_member_by_member():
    """Row by row, the places of all members of a vector would be wanted at once, and again for each row."""
    V, F = cloth_mesh(400)
    program = geoopt.compile(cloth_system, V, V, 0.05, cloth(V, F), options=geoopt.Options(lanes=8))
    writes = [[store for store in kernel.stores() if not store.adds] for kernel in program.plan.kernels]
    [filling] = [n for n, written in enumerate(writes) if len(written) == 9 and steps_of(written)]
    text = program.source()
    body = text[text.index(".body:", text.index(f"define void @k{filling}(")) :]
    body = body[: body.index(".next = ")]
    defined = dict(re.findall(r"^  (%\w+) = (.*)$", body, re.MULTILINE))

    def members(name):
        """The lanes whose members' columns a value comes from."""
        text = defined.get(name, "")
        if found := re.fullmatch(r"add i64 %l\d+, (\d)", text):
            return {int(found[1])}
        return set().union(*(members(of) for of in re.findall(r"%\w+", text))) if text else set()

    stored = [members(at) or {0} for at in re.findall(r"^  store .*, ptr (%\w+)", body, re.MULTILINE)]
    assert len(stored) == 6 * 8  # nine values of a block: per row, two beside each other and one
    assert stored == sorted(stored, key=min) and all(len(lanes) == 1 for lanes in stored)
