"""Calling a program: memory, threads, types, and arguments that do not fit."""

from __future__ import annotations

import ctypes
import gc
import mmap
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.display import program_text
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.runtime.host import MOST_FREE

V, F = bumpy(600)


@pytest.fixture(scope="module")
def program():
    return geoopt.compile(cotan_laplacian, V, F)


def test_results_are_fresh_while_the_caller_keeps_them(program):
    first = program(V)
    second = program(2 * V)
    assert not np.shares_memory(first[0].data, second[0].data)
    np.testing.assert_allclose(4 * first[1].diagonal(), second[1].diagonal(), rtol=1e-12)


def test_big_results_are_fresh_too():
    x = np.ones(300_000)
    program = geoopt.compile(lambda x: 2 * x, x)
    kept = [program(k * x) for k in range(4)]
    assert [y[-1] for y in kept] == [0, 2, 4, 6]
    assert len({y.ctypes.data for y in kept}) == 4
    part = kept[2][10:20]
    del kept
    assert all(program(x)[0] == 2 for _ in range(9))
    assert (part == 4).all()


def test_memory_of_dropped_results_is_used_again(program):
    addresses = set()
    for _ in range(20):
        L, M = program(V)
        addresses.add((L.data.ctypes.data, M.data.ctypes.data))
    assert len(addresses) <= 2
    kept = L.data[10:20]  # a view of a part keeps the whole
    del L, M
    before = kept.copy()
    program(3 * V + 1)
    np.testing.assert_array_equal(kept, before)


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_memory_of_many_dropped_results_goes_back(size):
    x = np.linspace(1, 2, size)
    program = geoopt.compile(lambda v: v + 1.0, x)
    kept = [program(x) for _ in range(12)]
    parts = [result[7:9] for result in kept]
    memory = [weakref.ref(part.base.base) for part in parts]  # of what was handed out, its memory
    del kept
    assert all(m() is not None for m in memory) and all((part == x[7:9] + 1.0).all() for part in parts)
    del parts[:]
    gc.collect()
    assert sum(m() is not None for m in memory) == MOST_FREE
    assert {program(x).ctypes.data for _ in range(9)} <= {m().ctypes.data for m in memory if m() is not None}


def test_threads_get_results_of_their_own():
    x = np.linspace(1, 2, 1000)
    program = geoopt.compile(lambda v: v + 1.0, x)

    def often(factor):
        kept = [program(factor * x) for _ in range(300)]
        return all(np.array_equal(result, factor * x + 1.0) for result in kept)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(often, range(1, 9)))


def test_results_begin_with_a_cache_line(program):
    assert [values.ctypes.data % 64 for k in range(3) for values in (m.data for m in program(k * V))] == [0] * 6


def test_out_writes_into_an_earlier_result(program):
    earlier = program(V)
    address = earlier[0].data.ctypes.data
    result = program(2 * V, out=earlier)
    assert result is earlier and result[0].data.ctypes.data == address
    assert abs(result[1] - program(2 * V)[1]).max() == 0


def test_index_arrays_are_shared_and_protected(program):
    (L, _), (K, _) = program(V), program(V)
    assert np.shares_memory(L.indices, K.indices) and not L.indices.flags.writeable
    assert (L @ V).shape == V.shape and L.T.tocsr().nnz == L.nnz


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_gives_the_same_bits(program, threads):
    parallel = geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(threads=threads))
    for a, b in zip(program(V), parallel(V), strict=True):
        np.testing.assert_array_equal(a.data, b.data)


def test_a_sum_over_the_mesh_does_not_depend_on_the_threads():
    x = np.random.default_rng(0).normal(size=100_003)
    totals = {
        float(geoopt.compile(lambda x: np.sum(x * x), x, options=geoopt.Options(threads=t))(x)) for t in (1, 2, 5)
    }
    assert len(totals) == 1 and np.isclose(totals.pop(), np.sum(x * x), rtol=1e-13)


def test_many_threads_call_one_program(program):
    def call(scale: float) -> float:
        _L, M = program(scale * V)
        return float(M.diagonal().sum() / scale**2)

    with ThreadPoolExecutor(16) as pool:
        areas = list(pool.map(call, np.linspace(1, 2, 200)))
    np.testing.assert_allclose(areas, areas[0], rtol=1e-12)


def test_nan_in_gives_nan_out(program):
    W = V.copy()
    W[5, 1] = np.nan
    L, M = program(W)
    ring = np.unique(F[(F == 5).any(axis=1)])
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(M.diagonal())), ring)
    assert np.isnan(L[[5], :].data).all()
    assert np.isfinite(program(V)[0].data).all()  # nothing of it stays behind


def test_infinity_is_kept():
    program = geoopt.compile(lambda x: (1 / x, np.where(x < 1, x, 0.0)), np.ones(3))
    assert program(np.array([0.0, np.inf, 2.0]))[0].tolist() == [np.inf, 0.0, 0.5]


def test_float32_results_are_float32(program):
    single = geoopt.compile(cotan_laplacian, V, F, dtype=np.float32)
    L, M = single(V.astype(np.float32))
    assert L.dtype == M.dtype == np.float32
    assert abs(L - program(V)[0]).max() < 1e-5 * abs(L).max()


def test_inputs_may_be_strided_and_of_another_float_type(program):
    wide = np.zeros((len(V), 6))
    wide[:, ::2] = V
    np.testing.assert_array_equal(program(wide[:, ::2])[0].data, program(V)[0].data)
    np.testing.assert_array_equal(program(np.asfortranarray(V))[0].data, program(V)[0].data)


def before_no_memory(values):
    """A copy that ends with a page, of which the next is out of bounds."""
    length = -(-values.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    block = np.frombuffer(mmap.mmap(-1, length + mmap.PAGESIZE), np.uint8)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(block.ctypes.data + length), mmap.PAGESIZE, 0) == 0
    copy = block[length - values.nbytes : length].view(values.dtype).reshape(values.shape)
    copy[:] = values
    return copy


def test_nothing_past_an_argument_is_read_where_there_may_be_none(program):
    """Positions are read in fours."""
    for found, truth in zip(program(before_no_memory(V)), program(V), strict=True):
        np.testing.assert_array_equal(found.data, truth.data)


def test_nothing_past_an_earlier_result_is_read():
    def bent(x):
        y = np.sin(x) * np.exp(x)
        return y, np.sqrt(1 + np.sum((y[F[:, 0]] - y[F[:, 1]]) ** 2, axis=1))

    program = geoopt.compile(bent, V)
    out = tuple(before_no_memory(np.zeros_like(values)) for values in bent(V))
    for found, truth in zip(program(V, out=out), bent(V), strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-12)


@dataclass
class Pair:
    first: Any
    name: str


def test_results_have_the_structure_the_function_returned():
    def f(x, scale):
        return {"a": [x * scale, "text"], "b": Pair(x + 1.0, "pair"), "c": (x[0], np.arange(3))}

    result = geoopt.compile(f, np.ones(4), 2.0)(np.arange(4.0), scale=3.0)
    assert result["a"][0].tolist() == [0, 3, 6, 9] and result["a"][1] == "text"
    assert result["b"] == Pair(result["b"].first, "pair") and result["b"].first.tolist() == [1, 2, 3, 4]
    assert float(result["c"][0]) == 0.0 and result["c"][1].tolist() == [0, 1, 2]


def test_sparse_arguments_vary_in_value_and_are_fixed_in_pattern():
    A = sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(1), format="coo")
    program = geoopt.compile(lambda A, x: A @ x + (2.0 * A).T.diagonal().sum(), A, np.ones(20))
    B = sp.csr_array(A)
    B.data = np.random.default_rng(2).normal(size=B.nnz)
    x = np.arange(20.0)
    np.testing.assert_allclose(program(B, x), B @ x + 2 * B.diagonal().sum(), rtol=1e-12)
    C = B.tolil()
    C[7, :] = 1.0
    with pytest.raises(geoopt.ArgumentError, match="first in row 7"):
        program(C.tocsr(), x)


def test_scipy_matrices_of_numbers_multiply_symbolic_arrays():
    A = sp.random_array((6, 9), density=0.4, rng=np.random.default_rng(1), format="csc")
    x = np.random.default_rng(2).normal(size=(9, 3))
    program = geoopt.compile(lambda x: (A @ x, A @ x[:, 0]), x)
    for got, want in zip(program(x), (A @ x, A @ x[:, 0]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


CALLS = {
    "too many": (lambda p: p(V, V), "takes 1 variables (V), 2 were given"),
    "missing": (lambda p: p(), "variable 'V' is missing"),
    "unknown name": (lambda p: p(W=V), "'W' is unknown; the variables are V"),
    "twice": (lambda p: p(V, V=V), "given twice"),
    "shape": (lambda p: p(V[:-1]), f"has shape ({len(V) - 1}, 3); the program was compiled for ({len(V)}, 3)"),
    "dtype": (lambda p: p(np.zeros(V.shape, int)), "has dtype int64"),
    "out": (lambda p: p(V, out=(sp.eye_array(3).tocsr(), sp.eye_array(3).tocsr())), "out= must be an earlier result"),
}


@pytest.mark.parametrize("case", CALLS)
def test_arguments_that_do_not_fit(program, case):
    call, message = CALLS[case]
    with pytest.raises(geoopt.ArgumentError) as caught:
        call(program)
    assert message in str(caught.value)


def test_options_that_do_not_exist():
    for wrong in ({"without": {"magic"}}, {"threads": -1}, {"lanes": 3}, {"gathers": "fast"}):
        with pytest.raises(geoopt.ArgumentError):
            geoopt.Options(**wrong)
    with pytest.raises(geoopt.ArgumentError, match="dtype"):
        geoopt.compile(cotan_laplacian, V, F, dtype=np.float16)
    with pytest.raises(geoopt.ArgumentError, match="device"):
        geoopt.compile(cotan_laplacian, V, F, device="tpu")


@pytest.mark.usefixtures("on_avx512")
def test_printing_a_program_shows_its_kernels():
    program = geoopt.compile(cotan_laplacian, V, F)
    text = str(program)
    assert "4 kernels on 2 levels" in text and "scalars in 30 nodes" in text and "prepared in" in text
    assert program.report()["kernels"][0]["members"] == len(F)
    for kind in ("llvm", "asm", "expression"):
        assert len(program.source(kind)) > 500
    with pytest.raises(geoopt.ArgumentError, match="choose"):
        program.source("fortran")


def test_what_is_compiled_once_is_told():
    report = geoopt.compile(lambda x: np.sqrt(x), np.ones(3)).report()
    assert "once per installation" in program_text(report | {"once_seconds": 1.25})
    assert "once per installation" not in program_text(report | {"once_seconds": 0.01})


def test_machine_code_comes_from_the_cache_the_second_time():
    first, second = (geoopt.compile(lambda x: np.sqrt(x) * 1.2345, np.ones(11)) for _ in range(2))
    assert not first.machine.was_cached and second.machine.was_cached
    np.testing.assert_array_equal(first(np.ones(11)), second(np.ones(11)))


def test_what_compile_is_given_is_checked():
    with pytest.raises(geoopt.ArgumentError, match=r"options must be geoopt.Options\(...\), not a dict"):
        geoopt.compile(np.sin, np.ones(3), options={"threads": 1})
    with pytest.raises(geoopt.ArgumentError, match=r"no argument of double is a variable.*astype\(float\)"):
        geoopt.compile(double, np.arange(6).reshape(2, 3))


def double(V):
    return 2 * V
