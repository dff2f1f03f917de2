"""On a GPU: results equal the CPU's, CuPy's arrays come and go without a copy, streams and graphs keep order."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt import operators
from geoopt.meshes import bumpy, tetrahedral_ball
from geoopt.operators import cotan_laplacian
from geoopt.runtime import cuda
from geoopt.sparse import from_triplets

from .cases_operators import CASES, SOLVING, case, variables
from .conftest import needs
from .test_stages import arrays

pytestmark = [pytest.mark.gpu, needs(cuda.describe)]

V, F = bumpy(2000)
X = V * [1, 1.2, 0.9] + 0.05 * np.sin(3 * V[:, ::-1])
P, T = tetrahedral_ball(60)
ENERGIES = {
    "bending_energy": (X, V, F),
    "dirichlet_energy": (X, V, F),
    "squared_mean_curvature": (X, F),
    "neo_hookean_energy": (P * [1, 1.2, 0.9], P, T, 1.0, 2.0),
    "st_venant_kirchhoff_energy": (P * [1, 1.2, 0.9], P, T, 1.0, 2.0),
}
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-4}


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture(scope="module")
def program():
    return geoopt.compile(cotan_laplacian, V, F, device="cuda")


def on_gpu(value):
    """NumPy's arrays and SciPy's matrices as CuPy's, those in tuples and records as well."""
    import cupy
    from cupyx.scipy.sparse import csr_array

    if isinstance(value, tuple):
        return tuple(map(on_gpu, value))
    if dataclasses.is_dataclass(value):
        parts = {f.name: on_gpu(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **parts)
    return csr_array(value) if sp.issparse(value) else cupy.asarray(value) if np.ndim(value) else value


def on_host(result) -> list[np.ndarray]:
    import cupy

    parts = result if isinstance(result, (tuple, list)) else [result]
    return [p.toarray().get() if hasattr(p, "toarray") else cupy.asnumpy(p) for p in parts]


@pytest.mark.parametrize("name", CASES)
def test_an_operator_runs_unchanged_on_cupy(name, cupy):
    function, arguments = case(name)
    for got, want in zip(on_host(function(*map(on_gpu, arguments))), arrays(function(*arguments)), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * abs(want).max(initial=1e-300))


@pytest.mark.parametrize("name", ENERGIES)
def test_an_energy_runs_unchanged_on_cupy(name, cupy):
    function, arguments = getattr(operators, name), ENERGIES[name]
    np.testing.assert_allclose(float(function(*map(on_gpu, arguments))), function(*arguments), rtol=1e-11)


def test_edges_of_cupy_triangles_are_on_the_gpu(cupy):
    edges, inner = operators.edges, operators.interior_edges
    for got, want in zip((edges(on_gpu(F)), *inner(on_gpu(F))), (edges(F), *inner(F)), strict=True):
        assert isinstance(got, cupy.ndarray)
        np.testing.assert_array_equal(got.get(), want)


def test_triplets_with_an_array_of_cupy_make_its_matrix(cupy):
    from cupyx.scipy.sparse import csr_array

    parts = F, F[:, [1, 2, 0]], np.ones(F.shape)
    want = from_triplets(*parts, (len(V), len(V)))
    for where in list(itertools.product([np.asarray, on_gpu], repeat=3))[1:]:
        found = from_triplets(*(move(p) for move, p in zip(where, parts, strict=True)), (len(V), len(V)))
        assert isinstance(found, csr_array) and found.has_canonical_format
        assert abs(found.get() - want).max() == 0


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["double", "float"])
@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_the_same_on_all_devices(name, dtype):
    function, arguments = case(name)
    inputs = variables(arguments)
    want = arrays(geoopt.compile(function, *arguments, dtype=dtype)(*inputs))
    program = geoopt.compile(function, *arguments, device="cuda", dtype=dtype)
    from_host, from_gpu = arrays(program(*inputs)), on_host(program(*map(on_gpu, inputs)))
    for w, h, g in zip(want, from_host, from_gpu, strict=True):
        assert isinstance(h, np.ndarray) and h.dtype == g.dtype == dtype
        np.testing.assert_allclose(h, w, rtol=0, atol=TOLERANCE[dtype] * abs(w).max(initial=1e-300))
        np.testing.assert_array_equal(g, h)


@pytest.mark.parametrize("name", SOLVING)
def test_an_operator_that_solves_is_the_same_on_all_devices(name):
    function, arguments = case(name)
    inputs = variables(arguments)
    want = arrays(geoopt.compile(function, *arguments)(*inputs))
    program = geoopt.compile(function, *arguments, device="cuda")
    for w, h, g in zip(want, arrays(program(*inputs)), on_host(program(*map(on_gpu, inputs))), strict=True):
        np.testing.assert_allclose(h, w, rtol=0, atol=1e-9 * abs(w).max())
        np.testing.assert_array_equal(g, h)


def test_results_are_of_the_kind_of_the_inputs(program, cupy):
    from cupyx.scipy.sparse import issparse

    L, M = program(V)
    assert sp.issparse(L) and sp.issparse(M)
    L, M = program(cupy.asarray(V))
    assert issparse(L) and issparse(M) and (L @ cupy.asarray(V)).shape == V.shape
    same = cotan_laplacian(V, F)[0]
    assert abs(sp.csr_array((L.data.get(), L.indices.get(), L.indptr.get()), L.shape) - same).max() < 1e-12


def test_inputs_are_read_in_place_and_from_other_libraries(program, cupy):
    class Foreign:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    class Capsule:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    x = cupy.asarray(V)
    argument = program.signature.arguments[0]
    for value in (x, Foreign(x), Capsule(x)):
        assert program.machine.flat(program.machine.array(argument, value)).data.ptr == x.data.ptr
    want = program(x)[1].data
    for value in (Foreign(x), Capsule(x), cupy.asfortranarray(x), x.astype(np.float32).astype(float) + (x - x)):
        assert cupy.allclose(program(value)[1].data, want, rtol=1e-5)


def test_a_loop_over_the_same_arrays_runs_as_one_graph(program, cupy):
    x = cupy.asarray(V)
    want = [program(s * V)[1].diagonal() for s in range(1, 6)]
    program.machine._graphs.clear()
    for s, w in enumerate(want, start=1):
        x[...] = s * cupy.asarray(V)
        L, M = program(x)
        np.testing.assert_array_equal(M.diagonal().get(), w)
        del L, M
    assert any(program.machine._graphs.values())
    assert len(program.machine._graphs) <= cuda.GRAPHS


def test_streams_do_not_disturb_each_other(program, cupy):
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    results = []
    for turn in range(40):
        with streams[turn % 4]:
            results.append(program((1 + turn) * cupy.asarray(V))[1].data)
    for stream in streams:
        stream.synchronize()
    for turn, got in enumerate(results):
        np.testing.assert_allclose(got.get(), (1 + turn) ** 2 * results[0].get(), rtol=1e-12)


def test_a_sparse_matrix_of_another_pattern_is_refused(cupy):
    L = sp.csr_array(cotan_laplacian(V, F)[0])
    square = geoopt.compile(lambda L: L @ L, L, device="cuda")
    on_device = on_gpu(L)
    assert abs(sp.csr_array(square(on_device).get()) - L @ L).max() < 1e-9
    with pytest.raises(geoopt.ArgumentError, match="its pattern differs from the compiled one"):
        square(square(on_device))
    with pytest.raises(geoopt.ArgumentError, match="first in row"):
        square(L @ L if (L @ L).shape == L.shape else L)


def test_numpy_results_are_written_in_place_and_cupy_results_are_not(program, cupy):
    earlier = program(V)
    assert program(2 * V, out=earlier) is earlier
    np.testing.assert_allclose(earlier[1].diagonal(), program(2 * V)[1].diagonal())
    with pytest.raises(geoopt.ArgumentError, match="out= is for NumPy's arrays"):
        program(cupy.asarray(V), out=program(cupy.asarray(V)))


def test_a_batch_is_each_of_its_items(program, cupy):
    poses = V + 0.01 * np.random.default_rng(0).normal(size=(5, *V.shape))
    batch = program.batched(5)
    for given in (poses, cupy.asarray(poses)):
        for _ in range(3):  # the last time as one graph
            L, M = batch(given)
            for item, pose in enumerate(poses):
                for got, want in zip((L[item], M[item]), program(pose), strict=True):
                    np.testing.assert_allclose(cupy.asnumpy(got.data), want.data, rtol=1e-12)
            del L, M
