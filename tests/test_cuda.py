"""CUDA without a GPU: its text compiles for GPUs, and run by the host it computes what the CPU's programs compute."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import geoopt
from geoopt.codegen import TARGETS
from geoopt.grid import BLOCK
from geoopt.integers.segments import STRIP
from geoopt.meshes import bumpy, torus
from geoopt.operators import cotan_laplacian
from geoopt.ops import ROWS
from geoopt.runtime import cuda_on_host, nvrtc

from .cases_operators import CASES, SOLVING, case, variables
from .conftest import grid_of, is_thorough, needs, needs_cuda_on_host
from .test_ops import SPECIAL, as_floats, exactly, operands
from .test_stages import ALL, arrays

HOST = "cuda-on-host"
V, F = bumpy(600)

needs_nvrtc = needs(nvrtc.library)
ARCHITECTURES = ["sm_75", "sm_90"] if is_thorough() else ["sm_90"]


def assert_same(function, arguments, dtype=np.float64, **options):
    """The CUDA text, run by the host, and the CPU's machine code give the same."""
    inputs = variables(arguments)
    programs = [
        geoopt.compile(function, *arguments, device=device, dtype=dtype, options=geoopt.Options(**options))
        for device in ("cpu", HOST)
    ]
    want, got = (arrays(program(*inputs)) for program in programs)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == dtype and g.shape == w.shape
        scale = abs(w).max(initial=1e-300)
        np.testing.assert_allclose(g, w, rtol=0, atol=scale * (1e-12 if dtype == np.float64 else 2e-4))


@needs_cuda_on_host
@pytest.mark.parametrize("name", [*CASES, *SOLVING])
def test_an_operator_is_the_same(name):
    assert_same(*case(name))


@needs_cuda_on_host
@pytest.mark.parametrize("name", [name for name in CASES if "with rims" not in name])  # which compile for long
def test_an_operator_is_the_same_in_single_precision(name):
    assert_same(*case(name), dtype=np.float32)


@needs_cuda_on_host
@pytest.mark.parametrize("options", [{}, {"t_complexity": 0, "t_ref": 0.5, "unrolled_terms": 0}], ids=str)
@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_a_program_is_the_same(function, options):
    assert_same(function, (np.random.default_rng(3).uniform(0.5, 2.0, 9), 0.7), **options)


@needs_cuda_on_host
@pytest.mark.parametrize("without", [{"global"}, {"local"}, {"memory"}], ids=str)
def test_switches_change_no_result(without):
    assert_same(cotan_laplacian, (V, F), without=without)


@needs_cuda_on_host
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "float"])
def test_every_operation_agrees_with_numpy(dtype):
    inputs = {row.name: operands(row, dtype) for row in ROWS}
    flat = [x for row in ROWS for x in inputs[row.name]]

    def all_rows(*values):
        values = iter(values)
        return {row.name: as_floats(row)(*(next(values) for _ in range(row.arity))) for row in ROWS}

    got = geoopt.compile(all_rows, *flat, device=HOST, dtype=dtype)(*flat)
    for row in ROWS:
        want = exactly(row, inputs[row.name])
        assert (np.abs(got[row.name] - want) <= 4.5 * np.spacing(np.abs(want).astype(dtype))).all(), row.name


@needs_cuda_on_host
def test_every_operation_agrees_with_numpy_at_special_points():
    a, b, c = (g.ravel().copy() for g in np.meshgrid(*[SPECIAL] * 3))
    rows = [row for row in ROWS if row.name != "hypot"]  # by x*x + y*y: over and underflow are left to the formula

    def all_rows(*values):
        return {row.name: as_floats(row)(*values[: row.arity]) for row in rows}

    with np.errstate(all="ignore"):
        want = all_rows(a, b, c)
    got = geoopt.compile(all_rows, a, b, c, device=HOST)(a, b, c)
    for row in rows:
        np.testing.assert_allclose(got[row.name], want[row.name], rtol=1e-14, err_msg=row.name)


@needs_cuda_on_host
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "float"])
def test_constants_are_exact(dtype):
    values = np.array([0.1, -1 / 3, 1e300, 5e-324, np.inf, -np.inf, np.nan, -0.0, 1e22, 123456789.0])
    program = geoopt.compile(lambda x: [np.where(x > 0, v, x) for v in values], np.ones(1), device=HOST, dtype=dtype)
    with np.errstate(over="ignore"):
        want = values.astype(dtype)
    got = np.concatenate(program(np.ones(1)))
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)  # whose sign means nothing
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


@needs_cuda_on_host
def test_results_are_fresh_kept_and_written_in_place():
    program = geoopt.compile(cotan_laplacian, V, F, device=HOST)
    first = program(V)
    kept = first[0].data.copy()
    second = program(2 * V)
    np.testing.assert_array_equal(first[0].data, kept)
    assert program(2 * V, out=first) is first
    np.testing.assert_array_equal(first[1].data, second[1].data)


@needs_cuda_on_host
def test_several_threads_call_one_program():
    program = geoopt.compile(cotan_laplacian, V, F, device=HOST)
    want = [program(s * V)[1].data.copy() for s in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        got = [L[1].data for L in pool.map(lambda s: program(s * V), range(1, 9))]
    np.testing.assert_array_equal(got, want)


@needs_cuda_on_host
def test_the_library_comes_from_the_cache_the_second_time():
    first, second = (geoopt.compile(lambda x: np.sqrt(x) * 1.5432, np.ones(11), device=HOST) for _ in range(2))
    assert not first.machine.was_cached and second.machine.was_cached
    np.testing.assert_array_equal(first(np.ones(11)), second(np.ones(11)))


@needs_cuda_on_host
def test_a_program_shows_its_text_and_its_counts():
    program = geoopt.compile(cotan_laplacian, V, F, device=HOST)
    assert "128 threads per block" in str(program)
    assert (
        program.source() == program.source("cuda") == geoopt.view(cotan_laplacian, V, F, stage="assemble", device=HOST)
    )
    assert program.source("cuda").count("__global__") == len(program.plan.kernels)  # one kernel per output
    assert "t0 = b" in geoopt.view(cotan_laplacian, V, F, stage="spread", device=HOST)
    with pytest.raises(geoopt.ArgumentError, match="choose from 'cuda', 'ptx', 'expression'"):
        program.source("llvm")


@needs_cuda_on_host
def test_the_benchmark_of_gpus_measures_here_too(tmp_path):
    from benchmarks import gpu

    out = tmp_path / "results" / "gpu.json"
    gpu.main(vertices=300, device=HOST, only=["cotan", "L²", "elementwise"], rounds=1, out=out)
    result = json.loads(out.read_text())
    assert {"device", "versions", "copy_bytes_per_second"} < result.keys()
    cases = result["cases"]
    assert [c["case"] for c in cases] == [name for name in ("cotan", "L²", "elementwise") for _ in range(2)]
    assert all(c["bytes"] > 1000 and c["seconds"] > 0 and c["share_of_copy"] > 0 for c in cases)
    assert all(c["kernels"] and c["launches"] and c["python_seconds_per_call"] > 0 for c in cases)
    assert [sorted(c["peers"]) for c in cases[::2]] == [["JAX", "NumPy"], ["SciPy"], ["NumPy"]]
    assert all(peer > 0 for c in cases for name, peer in c["peers"].items() if name != "JAX")


@needs_cuda_on_host
def test_the_benchmark_of_gpus_times_nothing_wrong(tmp_path, monkeypatch):
    from benchmarks import gpu

    monkeypatch.setattr(gpu, "on_the_cpu", lambda work, dtype: ([2.0 * x for x in work.inputs], [0.0]))
    with pytest.raises(gpu.typer.Exit):
        gpu.main(vertices=300, device=HOST, only=["elementwise"], rounds=1, out=tmp_path / "gpu.json")
    for row in json.loads((tmp_path / "gpu.json").read_text())["cases"]:
        assert row["failed"].startswith("differs from the CPU by") and "seconds" not in row


def _ends_early(send, name, is_cut_off):
    """What a case's process does, for the next test."""
    send({"case": name, "seconds": 1.0})
    if is_cut_off:
        os.abort()  # as the system ends one that takes too long, or too much memory
    send({"case": name, "seconds": 1.0, "peers": {}})


def test_many_prepare_at_a_time_and_one_is_timed_alone(tmp_path):
    from benchmarks.gpu_timing import Turns

    inside, most, together = [], [], Barrier(2, timeout=60)

    def prepares():
        with Turns(tmp_path / "lock").preparing():
            together.wait()  # ends only when both are here
            inside.append("preparing")
        with Turns(tmp_path / "lock").alone():
            inside.append("alone")
            most.append(inside.count("alone"))
            inside.remove("alone")

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(prepares) for _ in range(2)]:
            done.result()
    assert inside == ["preparing"] * 2 and most == [1, 1]


def test_a_case_whose_process_ends_keeps_what_is_known():
    from benchmarks import gpu_timing

    tasks = [({"case": name}, (name, name == "cut off")) for name in ("whole", "cut off")]
    rows = {row["case"]: row for row in gpu_timing.in_processes(_ends_early, tasks, 2, 60.0)}
    assert rows["whole"] == {"case": "whole", "seconds": 1.0, "peers": {}}
    assert rows["cut off"] == {"case": "cut off", "seconds": 1.0}
    assert all("not begun" in row["failed"] for row in gpu_timing.in_processes(_ends_early, tasks, 2, 0.0))


def test_moved_bytes_are_those_of_a_small_program():
    """64 doubles in, 64 out, each read through a column of 32-bit numbers."""
    from benchmarks.gpu import moved_bytes

    order = np.random.default_rng(0).permutation(64)
    grid = grid_of(lambda x: 2 * x[order], np.ones(64))
    assert moved_bytes(grid, np.dtype(float)) == 64 * 8 + 64 * 8 + 64 * 4


def test_moved_bytes_hold_an_entry_once_that_two_addresses_are_of():
    """32 of 64 doubles, each read by two members at different places, 32 out."""
    from benchmarks.gpu import moved_bytes

    first, second = (np.random.default_rng(seed).permutation(32) + 16 for seed in range(2))
    grid = grid_of(lambda x: x[first] - 2 * x[second], np.ones(64))
    columns = sum(grid.plan.table(b).nbytes for b in grid.buffers(0) if b > grid.plan.workspace)
    assert moved_bytes(grid, np.dtype(float)) == 32 * 8 + 32 * 8 + columns


@pytest.mark.parametrize("name", ["cotan_laplacian", "L²", "cloth_system", "dual_laplacian"])
def test_moved_bytes_are_those_of_the_entries_that_tasks_address(name):
    from benchmarks.gpu import moved_bytes

    grid = grid_of(case(name)[0], *case(name)[1])
    plan = grid.plan
    entries = {(number, b): set() for number, k in enumerate(plan.kernels) if k.size for b in grid.buffers(number)}
    for row in plan.tasks:
        for address in plan.kernels[row[0]].addresses():
            entries[row[0], address.buffer].update(plan.entries(address, row).tolist())
    tables = {b: plan.table(b) for _, b in entries if b > plan.workspace}
    want = sum(8 * len(found) if found else tables[b].nbytes for (_, b), found in entries.items())
    assert moved_bytes(grid, np.dtype(float)) == want


# -- the grid -------------------------------------------------------------------------------------------


def test_members_find_the_terms_that_their_task_gives_them():
    """Table by table, the terms of every member are those that its task addresses."""
    grid = grid_of(case("L²")[0], *case("L²")[1])
    plan = grid.plan
    assert any(grid.terms)
    for row in plan.tasks:
        for number, (begin, count) in enumerate(grid.terms[row[0]]):
            entry, member, term = plan.kernels[row[0]].loops[number].terms_of(row, plan.table)
            first, many = (plan.table(b)[row[1] : row[2]].astype(int) for b in (begin, count))
            np.testing.assert_array_equal(first[member] + STRIP * term, entry)
            np.testing.assert_array_equal(np.bincount(member, minlength=len(many)), many)


def test_launches_run_every_kernel_once():
    """Those that write one output together by one launch, a block for each chunk; others by one each."""
    grid = grid_of(cotan_laplacian, *torus(5000))
    plan, launches = grid.plan, {launch.name: launch for level in grid.launches() for launch in level}
    together = {f"c{n}": chunks for n, chunks in enumerate(plan.chunks)}
    apart = {f"k{n}": k.size for n, k in enumerate(plan.kernels) if not any(n in c.kernels for c in plan.chunks)}
    assert launches.keys() == together.keys() | apart.keys() and together and apart
    for name, size in apart.items():
        assert launches[name].count == size and launches[name].blocks * BLOCK >= size
    for name, chunks in together.items():
        assert launches[name].count == launches[name].blocks == len(plan.table(chunks.starts)) - 1


# -- the text -------------------------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_the_text_of_an_operator_compiles_for_gpus(name, architecture):
    function, arguments = case(name)
    grid = grid_of(function, *arguments)
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        compiled = nvrtc.compiled(TARGETS["cuda"](grid, dtype), architecture)
        assert compiled.ptx.count(";") < 2000, "thousands of instructions take NVRTC seconds"
        assert len(compiled.registers) == sum(map(len, grid.launches())) and len(compiled.code) > 500
        assert not compiled.spilled_bytes
        if dtype == np.float32:
            assert ".f64" not in compiled.ptx, "float arithmetic in double precision"


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_short_and_long_kernels_of_chunks_spill_nothing(architecture):
    def columns(x, y, A):
        return np.stack([np.sin(x), np.cos(x)], axis=1), np.stack([abs(y) ** 0.3, y], axis=1), np.linalg.inv(A)

    grid = grid_of(columns, *np.linspace(1, 2, 400).reshape(2, 200), np.eye(6) + np.zeros((200, 1, 1)))
    assert len(grid.plan.chunks) == 3
    assert not nvrtc.compiled(TARGETS["cuda"](grid, np.dtype(float)), architecture).spilled_bytes


@needs_nvrtc
def test_every_operation_compiles_for_gpus_in_single_precision():
    inputs = [operands(row, np.float32) for row in ROWS]

    def all_rows(*values):
        values = iter(values)
        return [as_floats(row)(*(next(values) for _ in range(row.arity))) for row in ROWS]

    grid = grid_of(all_rows, *(x for row in inputs for x in row))
    text = TARGETS["cuda"](grid, np.dtype(np.float32))
    assert not re.search(r"\bdouble\b|\d\.\d+\b(?!f|e)", text)
    assert nvrtc.compiled(text).ptx


def test_values_only_read_are_read_only_and_all_pointers_are_distinct():
    text = TARGETS["cuda"](grid_of(cotan_laplacian, V, F), np.dtype(np.float64))
    assert "const double* __restrict__ b0" in text and re.search(r"(?<!const )double\* __restrict__ b1", text)
    assert "#" not in text and "__ldg" not in text  # nothing that HIP lacks


# -- what is missing ------------------------------------------------------------------------------------


def test_devices_lists_what_is_there():
    found = geoopt.devices()
    assert "cpu" in found and set(found) <= {"cpu", "cuda", HOST} and all(found.values())


def test_without_a_gpu_the_error_says_what_to_do():
    if "cuda" in geoopt.devices():
        pytest.skip("there is a GPU")
    with pytest.raises(geoopt.DeviceError, match=r"needs (CuPy|an NVIDIA GPU).*(pip install|'cuda-on-host')"):
        geoopt.compile(cotan_laplacian, V, F, device="cuda")


def test_without_a_compiler_the_error_names_those_tried(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert HOST not in geoopt.devices()
    with pytest.raises(geoopt.DeviceError, match=r"needs a C[+][+] compiler; none is found by .CXX, which is 'no-such"):
        geoopt.compile(cotan_laplacian, V, F, device=HOST)
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(cuda_on_host, "COMPILERS", ("absent",))
    with pytest.raises(geoopt.DeviceError, match=r"found by .CXX, absent; install one"):
        geoopt.compile(cotan_laplacian, V, F, device=HOST)


def test_unknown_devices_are_named():
    with pytest.raises(
        geoopt.ArgumentError, match="device 'tpu' is unknown; choose from 'cpu', 'cuda', 'cuda-on-host'"
    ):
        geoopt.compile(cotan_laplacian, V, F, device="tpu")


@needs_nvrtc
def test_text_that_does_not_compile_is_reported():
    with pytest.raises(geoopt.errors.InternalError, match='identifier "y" is undefined'):
        nvrtc.compiled('extern "C" __global__ void k(double* x) { x[0] = y; }')
