"""Long sums on a GPU: a warp adds up the terms of each, in one order."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.codegen import TARGETS
from geoopt.grid import MANY
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.plan.loops import ByMember

from .conftest import grid_of, needs_cuda_on_host

RNG = np.random.default_rng(5)
A, x = RNG.normal(size=(40, 3 * MANY + 5)), RNG.normal(size=3 * MANY + 5)


def rows(A, x):
    return A @ x, np.exp(A.mean(axis=1)), A / A.sum(axis=1)[:, None]


@needs_cuda_on_host
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "float"])
@pytest.mark.parametrize("function", [rows, lambda A, x: (np.sum(A * A), np.max(A), np.linalg.norm(A - x))])
def test_long_sums_are_the_same(function, dtype):
    program = geoopt.compile(function, A, x, device="cuda-on-host", dtype=dtype)
    assert "total(part" in program.source("cuda")
    for got, want in zip(program(A, x), function(A, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12 if dtype == np.float64 else 1e-4, atol=1e-5)


def test_warps_run_kernels_with_long_sums_only():
    """Each member's launch has 32 threads; the terms of a row that is contiguous need no column."""
    grid = grid_of(lambda A: A.sum(axis=1), A)
    [[launch]] = grid.launches()
    assert launch.count == 40 and launch.blocks == 40 * 32 // 128
    [kernel] = grid.plan.kernels
    assert kernel.reads[0].is_sequential and isinstance(kernel.loops[0], ByMember)
    assert "t0 = begin0 + lane; t0 < end0; t0 += 32" in TARGETS["cuda"](grid, np.dtype(float))
    assert not any(
        isinstance(loop, ByMember) for k in grid_of(cotan_laplacian, *bumpy(600)).plan.kernels for loop in k.loops
    )


def test_a_short_sum_beside_long_ones_stays_with_its_thread():
    lengths = np.array([2, 900, 3, 5, 1, 4] * 8)
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    y = RNG.normal(size=lengths.sum())
    grid = grid_of(lambda y: np.add.reduceat(y, offsets), y)
    got = grid.plan.evaluate([y], grid.plan.tasks)[0]
    np.testing.assert_allclose(got, np.add.reduceat(y, offsets), rtol=1e-12)


def test_constants_of_terms_follow_their_terms():
    weights, order = RNG.normal(size=500), RNG.permutation(500)
    y = RNG.normal(size=500)
    grid = grid_of(lambda y: np.sum(weights * np.sqrt(abs(y[order]))), y)
    [got] = grid.plan.evaluate([y], grid.plan.tasks)
    np.testing.assert_allclose(got, np.sum(weights * np.sqrt(abs(y[order]))), rtol=1e-12)
