"""Every representation between the stages means what NumPy computes."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.codegen.llvm import emit
from geoopt.codegen.vectors import Vectors
from geoopt.evaluate import evaluate
from geoopt.meshes import torus
from geoopt.operators import cotan_laplacian
from geoopt.pipeline import DEVICES
from geoopt.sparse import from_diagonal, from_triplets
from geoopt.trace import trace

from .conftest import gpu_stages, gpu_stages_of, with_unreferenced, without_faces

RNG = np.random.default_rng(3)
DOUBLE = np.dtype(np.float64)


def records(function, *arguments, **options):
    """The result of every stage that has an evaluator, also of those for GPUs."""
    found = {}
    geoopt.compile(function, *arguments, options=geoopt.Options(**options), watch=found.__setitem__)
    alike = gpu_stages_of(found["share"], geoopt.Options(**options))
    stages = gpu_stages(function, *arguments, **options) if alike is None else alike
    for_gpus = {f"{name} for GPUs": record for name, record in stages.items()}
    return {name: record for name, record in (found | for_gpus).items() if name != "assemble"}


def arrays(result) -> list[np.ndarray]:
    if isinstance(result, (tuple, list)):
        return [a for r in result for a in arrays(r)]
    return [result.toarray() if sp.issparse(result) else np.asarray(result)]


def check_all_stages(function, *arguments, **options):
    variables = [a for a in arguments if isinstance(a, float) or np.issubdtype(np.asarray(a).dtype, np.floating)]
    want = arrays(function(*arguments))
    _, signature = trace(function, arguments)
    for name, record in records(function, *arguments, **options).items():
        got = arrays(signature.rebuild(evaluate(record, variables)))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12, err_msg=name)


def test_cotan_laplacian(mesh):
    check_all_stages(cotan_laplacian, *mesh)


def test_a_mesh_without_faces_gives_zero_matrices():
    check_all_stages(cotan_laplacian, *without_faces())
    V, F = without_faces()
    L, M = geoopt.compile(cotan_laplacian, V, F)(V)
    assert L.shape == (5, 5) and abs(L).sum() == 0 and M.sum() == 0


@pytest.mark.parametrize("options", [{"blocks": False}, {"t_ref": 1e9}, {"t_complexity": 0}, {"unrolled_terms": 0}])
def test_cotan_laplacian_under_other_decompositions(options):
    check_all_stages(cotan_laplacian, *with_unreferenced(), **options)


FACES = RNG.integers(0, 9, (12, 3)).astype(np.int32)


def gathers_and_branches(x, h):
    a, b = x[FACES[:, 0]], x[FACES[:, 1]]
    return np.where(a < b, np.sqrt(np.abs(a)), h * b), np.minimum(a, b) / np.maximum(abs(a), 0.1)


def sums_of_sums(x, h):
    W = from_triplets(FACES, FACES[:, [1, 2, 0]], x[FACES] * h, (9, 9))
    return W @ x, W.sum(axis=1), W.sum(axis=0), (W + 2.0 * W.T - from_diagonal(x)).data.sum()


def mixed_sums(x, h):
    """Sums whose terms have different structure and number."""
    rows = np.concatenate([FACES[:, 0], FACES[:, 1], np.arange(9)])
    return from_triplets(rows, rows, np.concatenate([x[FACES[:, 0]] * h, np.sqrt(x[FACES[:, 1]]), x]), (9, 9)).data


def copies_and_constants(x, h):
    return x[::-1], np.stack([x, x * 0 + 2.0], axis=1), np.concatenate([x, [1.0, 2.0, h * h]]), x[[3]]


def stored_scalar(x, h):
    total = np.sqrt(np.sum(x * x) + h)
    return x / total, total


def two_levels(x, h):
    y = np.sqrt(x) + h
    z = (y[FACES[:, 0]] * y[FACES[:, 1]]) / y[FACES[:, 2]]
    return np.stack([z[FACES[:, 0] % 5], z[FACES[:, 1] % 5]], axis=1), y


def small_matrices(x, h):
    A = x[:9].reshape(1, 3, 3) + h * np.eye(3)
    return np.linalg.inv(A), np.linalg.det(A), A @ x[:3], np.einsum("mij,mjk->mik", A, A), np.cross(A[:, 0], A[:, 1])


ALL = [gathers_and_branches, sums_of_sums, mixed_sums, copies_and_constants, stored_scalar, two_levels, small_matrices]


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "options", [{}, {"t_complexity": 0, "t_ref": 0.5}, {"unrolled_terms": 0}, {"blocks": False}], ids=str
)
def test_programs(function, options):
    check_all_stages(function, RNG.uniform(0.5, 2.0, 9), 0.7, **options)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "dtype, threads, lanes", [(np.float64, 1, 0), (np.float64, 3, 2), (np.float32, 1, 0), (np.float64, 1, 1)]
)
def test_machine_code(function, dtype, threads, lanes):
    rng = np.random.default_rng(11)  # of its own: not all matrices are as easy to invert
    x = rng.uniform(0.5, 2.0, 9).astype(dtype)
    program = geoopt.compile(function, x, 0.7, dtype=dtype, options=geoopt.Options(threads=threads, lanes=lanes))
    x = rng.uniform(0.5, 2.0, 9).astype(dtype)
    for got, want in zip(arrays(program(x, 0.3)), arrays(function(x.astype(float), 0.3)), strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(
            got, want, rtol=1e-12 if dtype == np.float64 else 2e-5, atol=1e-6 if dtype == np.float32 else 1e-14
        )


def test_hardware_gathers_read_the_same():
    V, F = with_unreferenced()
    scalar, hardware = (
        geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(gathers=g)) for g in ("scalar", "hardware")
    )
    assert "masked.gather" in hardware.source() and "masked.gather" not in scalar.source()
    np.testing.assert_array_equal(scalar(V)[0].data, hardware(V)[0].data)


def test_every_stage_is_reported():
    found = []
    V, F = with_unreferenced()
    program = geoopt.compile(cotan_laplacian, V, F, watch=lambda name, _: found.append(name))
    assert tuple(found) == DEVICES["cpu"].stages == tuple(program.report()["seconds"])


@pytest.mark.parametrize("work", [lambda V, F: cotan_laplacian(V, F)[0], lambda V, F: V[F].sum(axis=1)])
def test_what_stages_drop_is_freed_at_once(work):
    """Nothing refers to itself, which would keep long arrays in memory until Python looks for such circles."""
    for _ in range(2):  # what is done once is done by the first
        gc.collect()
        program = geoopt.compile(work, *torus(100))
    gc.disable()
    try:
        gc.collect()
        geoopt.compile(work, *torus(100))
        assert gc.collect() < 10
    finally:
        gc.enable()
    assert program.plan.kernels


def test_columns_count_rows_where_they_do_not_fit_otherwise(monkeypatch):
    """Of a mesh in no order: three coordinates of each vertex are too many for a column, but not the vertices."""
    monkeypatch.setattr("geoopt.compress.SPAN", 1024)
    V, F = torus(900)
    new = RNG.permutation(len(V))
    V, F = V[np.argsort(new)], new[F]
    check_all_stages(cotan_laplacian, V, F)
    reads = [a for k in records(cotan_laplacian, V, F)["compress"].plan.kernels for a in k.reads if a.buffer == 0]
    assert len(reads) == 9 and {a.columns[0].times for a in reads} == {3}
    want, program = cotan_laplacian(V, F)[0], geoopt.compile(cotan_laplacian, V, F)
    assert abs(program(V)[0] - want).max() < 1e-12


@pytest.mark.parametrize("first, goes_past_caches", [(5, False), (64, True)])
def test_long_rows_in_no_order(first, goes_past_caches):
    """Entries of which only every 128th begins a row, too many to count each of them in 16 bits."""
    order = RNG.permutation(20_000)

    def rows(x, b):
        out = np.zeros((20_000, 128))
        out[order, first : first + 64] = np.sqrt(x)[:, None] * b
        return out

    x, b = RNG.uniform(1, 2, 20_000), RNG.uniform(1, 2, 64)
    plan = records(rows, x, b)["compress"].plan
    written = {store.address for kernel in plan.kernels for store in kernel.writes[0]}
    [address] = {a for a in written if any(column.times > 1 for column in a.columns)}
    assert address.columns[0].times == 128 and address.offset % 128 == first
    assert ("!nontemporal" in emit(plan, Vectors(8, DOUBLE, reads_what_it_writes=True)).text) == goes_past_caches
    np.testing.assert_array_equal(geoopt.compile(rows, x, b)(x, b), rows(x, b))


def test_what_all_addresses_of_intermediates_add_goes_to_the_bases():
    """Of those through one column, to the workspace only: where rows of outputs begin must be seen."""
    order = np.random.default_rng(2).permutation(500)
    function = lambda x: [np.sin(y[order]) + np.sin(y[order[::-1]]) for y in (np.sqrt(x), np.cbrt(x))]  # noqa: E731
    plan = records(function, np.ones(500))["compress"].plan
    through: dict[tuple, list] = {}
    for number, kernel in enumerate(plan.kernels):
        for a in kernel.addresses():
            if a.columns and a.of_task:
                through.setdefault((number, a.table, a.loop), []).append(a)
    of_intermediates = [found for found in through.values() if all(a.buffer == plan.workspace for a in found)]
    assert of_intermediates and all(min(a.offset for a in found) == 0 for found in of_intermediates)


def test_small_tasks_on_several_threads(monkeypatch):
    """Tasks of a few members and spans of a few entries: seams, wide kernels and recycled blocks on a small mesh."""
    monkeypatch.setattr("geoopt.place.TASK_MEMBERS", 8)
    monkeypatch.setattr("geoopt.compress.SPAN", 40)
    monkeypatch.setattr("geoopt.place.order.FAR", 20)
    V, F = torus(900)
    check_all_stages(cotan_laplacian, V, F, threads=3)
    found = records(cotan_laplacian, V, F, threads=3)
    assert len(found["compress"].plan.kernels) > len(found["place"].kernels)  # wide versions
    assert found["allocate"].plan.workspace_size < found["place"].workspace_size  # recycled
    assert len(found["schedule"].shares) > 1  # some tasks wait for another thread's
    want = cotan_laplacian(V, F)[0]
    program = geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(threads=3))
    assert abs(program(V)[0] - want).max() < 1e-12
