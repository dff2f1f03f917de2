"""Batches: every item is what the program of one item gives, to the last bit, in all kinds of results."""

from __future__ import annotations

import dataclasses
import pickle
import typing

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.meshes import bumpy, torus
from geoopt.operators import cotan_laplacian

from .conftest import needs_cuda_on_host

RNG = np.random.default_rng(0)
V, F = bumpy(300)
SIZE = 7


@dataclasses.dataclass
class Found:
    signs: typing.Any
    is_large: typing.Any


class Named(typing.NamedTuple):
    matrix: typing.Any
    old: typing.Any


def everything(V, F, h):
    """All kinds of results that there are."""
    L, M = cotan_laplacian(V, F)
    e = V[F[:, 1]] - V[F[:, 0]]
    known = [3, 2.5, "text", None, np.arange(4), sp.eye_array(3)]
    parts = {"e": e, "length": h * np.sqrt((e * e).sum()), "L": L, "diagonal": M, 7: known}
    return parts, Found(e > 0, e.sum() > h), Named(L.T @ V, np.asmatrix(V.T @ V))


def moved(count, V=V):
    return V + 0.01 * RNG.normal(size=(count, *V.shape))


def assert_same(got, want):
    """Of the same kinds, equal to the last bit."""
    if sp.issparse(want):
        assert type(got) is type(want) and np.array_equal(got.toarray(), want.toarray())
    elif isinstance(want, dict):
        assert list(got) == list(want)
        assert_same(list(got.values()), list(want.values()))
    elif dataclasses.is_dataclass(want):
        assert_same(list(vars(got).values()), list(vars(want).values()))
    elif isinstance(want, tuple | list):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
    elif isinstance(want, np.ndarray):
        assert type(got) is type(want) and got.dtype == want.dtype and np.array_equal(got, want)
    else:
        assert got == want


@pytest.fixture(scope="module")
def program():
    return geoopt.compile(everything, V, F, 0.5)


def one_by_one(program, size, over, *values):
    """By the plain function of a batch, which calls the program of one item."""
    names = [a.name for a in program.signature.arguments]

    def call(*values):
        return program(*values)

    by_place = [f"values[{names.index(name)}]" for name in over]
    return geoopt.batched(call, size, by_place)(*values)


@pytest.mark.parametrize("over", [["V"], ["h"], ["V", "h"]], ids=" ".join)
@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_items_are_what_the_program_of_one_gives(program, size, over):
    values = moved(size) if "V" in over else V, RNG.random(size) if "h" in over else 0.3
    assert_same(program.batched(size, over)(*values), one_by_one(program, size, over, *values))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3, 12])
def test_any_number_of_threads_gives_the_same(threads, size):
    positions, faces = torus(3000)
    program = geoopt.compile(cotan_laplacian, positions, faces, options=geoopt.Options(threads=threads))
    values = moved(size, positions)
    assert_same(program.batched(size)(values), one_by_one(program, size, ["V"], values))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda-on-host", marks=needs_cuda_on_host)])
def test_a_function_of_a_batch_is_compiled_for_one_item(device, dtype):
    values, heights = moved(SIZE), RNG.random(SIZE)
    batch = geoopt.compile(geoopt.batched(everything, SIZE), values, F, heights, device=device, dtype=dtype)
    one = geoopt.compile(everything, V, F, 0.5, device=device, dtype=dtype)
    assert_same(batch(values, heights), one_by_one(one, SIZE, ["V", "h"], values, heights))
    assert batch.report()["kernels"] == one.report()["kernels"]


def test_floats_and_traced_code_give_each_item():
    values = moved(3)

    def both(positions):
        parts, found, named = geoopt.batched(everything, 3, "V")(positions, F, 0.5)
        return parts["e"], parts["length"], parts["L"], found.is_large, named.old

    want = both(values)
    got = geoopt.compile(both, values)(values)
    for a, b in zip(got, want, strict=True):
        assert type(a) is type(b) and len(a) == 3
        for x, y in zip(a, b, strict=True):
            x, y = (part.toarray() if sp.issparse(part) else part for part in (x, y))
            np.testing.assert_allclose(x, y, atol=1e-12)


def test_jit_prepares_a_batch_once():
    batch = geoopt.jit(geoopt.batched(everything, SIZE, "V"))
    for _ in range(2):
        values = moved(SIZE)
        got = batch(values, F, 0.5)[0]["e"]
        np.testing.assert_array_equal(got, values[:, F[:, 1]] - values[:, F[:, 0]])
    assert batch.cache_info()[:2] == (1, 1)


def test_sparse_variables_are_lists():
    A = sp.random_array((40, 40), density=0.1, rng=RNG, format="csr")
    program = geoopt.compile(lambda A, x: (A @ x, A + A.T), A, RNG.random(40))
    matrices, x = [(1 + i) * A for i in range(SIZE)], RNG.random(40)
    got = program.batched(SIZE, "A")(matrices, x)
    for item, matrix in enumerate(matrices):
        assert_same([part[item] for part in got], list(program(matrix, x)))
    with pytest.raises(geoopt.ArgumentError, match="'A': give a list of 7 sparse matrices"):
        program.batched(SIZE, "A")(matrices[:3], x)
    with pytest.raises(geoopt.ArgumentError, match="pattern differs"):
        program.batched(2, "A")([A, A.T.tocsr()], x)


def test_earlier_results_are_written(program):
    batch = program.batched(SIZE, ["V", "h"])
    values, heights = moved(SIZE), RNG.random(SIZE)
    earlier = batch(values, heights)
    arrays = earlier[0]["e"], earlier[0]["L"][2].data
    again = batch(2 * values, heights, out=earlier)
    assert_same(again, batch(2 * values, heights))
    assert np.shares_memory(again[0]["e"], arrays[0]) and again[0]["L"][2].data.ctypes.data == arrays[1].ctypes.data
    other = program.batched(3, ["V", "h"])(values[:3], heights[:3])
    with pytest.raises(geoopt.ArgumentError, match="out= must be an earlier result"):
        batch(values, heights, out=other)
    earlier[0]["L"][1], earlier[0]["L"][2] = earlier[0]["L"][2], earlier[0]["L"][1]
    with pytest.raises(geoopt.ArgumentError, match="out= must be an earlier result"):
        batch(values, heights, out=earlier)


def test_earlier_results_may_lie_anywhere():
    program = geoopt.compile(lambda x: 2 * x, np.ones((5, 3))).batched(SIZE)
    values = RNG.random((SIZE, 5, 3))
    for out in (np.zeros((SIZE, 5, 3)), np.zeros((SIZE, 7, 3))[:, :5], np.zeros(SIZE * 15 + 1)[1:].reshape(SIZE, 5, 3)):
        assert program(values, out=out) is out
        np.testing.assert_array_equal(out, 2 * values)
    for out in (np.zeros((SIZE, 3, 5)).transpose(0, 2, 1), np.zeros((SIZE, 5, 4))[:, :, :3]):
        with pytest.raises(geoopt.ArgumentError, match="contiguous"):
            program(values, out=out)


def test_a_batch_is_saved_and_pickled(program, tmp_path):
    batch, values, heights = program.batched(SIZE, ["h", "V"]), moved(SIZE), RNG.random(SIZE)
    want = batch(values, heights)
    batch.save(tmp_path / "batch")
    assert_same(geoopt.load(tmp_path / "batch", types=[Found, Named])(values, heights), want)
    assert_same(pickle.loads(pickle.dumps(batch))(values, heights), want)


# -- programs that solve ------------------------------------------------------------------------------


def smoothed(V, F, b):
    """A matrix of each item's own."""
    L, M = cotan_laplacian(V, F)
    return geoopt.solve(M - 0.01 * L, b)


def of_known_matrix(V, F, b):
    return geoopt.solve(2 * sp.eye_array(len(V)), V * b[:, None]) + V


def energy(V, F, b):
    return (smoothed(V, F, b) ** 2).sum()


def guarded(V, F, b):
    return smoothed(V, F, b) if b.sum() > 0 else b


def of_known_columns(V, F, b):
    L, M = cotan_laplacian(V, F)
    return geoopt.solve(M - 0.01 * L, COLUMNS) + b[:, None]


COLUMNS = np.random.default_rng(3).normal(size=(len(V), 2))
SOLVING = {
    "known right-hand sides": of_known_columns,
    "own matrices": smoothed,
    "one matrix": of_known_matrix,
    "a factor used again": geoopt.gradient(energy, wrt=(0, 2)),
    "a system that is not needed": guarded,
}


@pytest.mark.parametrize("function", SOLVING.values(), ids=SOLVING)
def test_each_item_is_solved(function):
    program = geoopt.compile(function, V, F, RNG.random(len(V)))
    values, right = moved(SIZE), RNG.normal(size=(SIZE, len(V)))
    for over, given in ((["V", "b"], (values, right)), (["V"], (values, right[0])), (["b"], (V, right))):
        assert_same(program.batched(SIZE, over)(*given), one_by_one(program, SIZE, over, *given))


def test_errors_name_the_item():
    program = geoopt.compile(smoothed, V, F, np.ones(len(V))).batched(SIZE)
    right = np.ones((SIZE, len(V)))
    right[4, 7] = np.nan
    with pytest.raises(geoopt.SolverError, match=r"item 4 of the batch: .* nan in row 7"):
        program(moved(SIZE), right)


# -- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None])
def test_sizes_are_positive_whole_numbers(program, size):
    with pytest.raises(geoopt.ArgumentError, match="use a positive whole number"):
        program.batched(size)
    with pytest.raises(geoopt.ArgumentError, match="use a positive whole number"):
        geoopt.batched(everything, size)


def test_what_cannot_be_is_refused(program, tmp_path):
    batch, values = program.batched(SIZE), moved(SIZE)
    refused = {
        r"choose from the variables 'V', 'h'": lambda: program.batched(3, "F"),
        "of a batch already": lambda: batch.batched(2),
        "a batch cannot be exported": lambda: batch.export(tmp_path),
        r"has shape \(3, 296, 3\); the program was compiled for \(7,": lambda: batch(values[:3], 0.5),
        r"'V': shape \(7, 296, 3\); a batch of 3 items needs": lambda: geoopt.batched(everything, 3)(values, F, 1.0),
        "the arguments are 'V', 'F', 'h'": lambda: geoopt.batched(everything, 3, "x")(values, F, 1.0),
        r"'h': shape \(\); a batch of 7": lambda: geoopt.batched(everything, SIZE, "h")(V, F, 1.0),
        "'A': one matrix; a batch of 3 items needs a list": lambda: geoopt.batched(lambda A: A, 3, "A")(
            sp.eye_array(3)
        ),
        "no argument of the batch is an array of floats": lambda: geoopt.batched(lambda F: F, 2)(F),
        "batched takes a function": lambda: geoopt.batched(3, 2),
    }
    for message, call in refused.items():
        with pytest.raises(geoopt.ArgumentError, match=message):
            call()
    assert not list(tmp_path.iterdir())
