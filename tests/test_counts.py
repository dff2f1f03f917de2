"""Counts of every program of the benchmarks, pinned: what costs time, without the noise.

A change that makes one kernel, column or operation more shows here; ``make golden`` accepts it, and the difference of
the files is reviewed like code.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from benchmarks import counts
from benchmarks.catalogue import BENCHMARKS, benchmark_of
from benchmarks.operators import STRUCTURE
from benchmarks.records import Setting, Work
from benchmarks.works import mesh_of
from geoopt import operators
from geoopt.runtime import cpu

from . import pinned
from .conftest import needs_cuda_on_host
from .test_golden import GOLDEN

FOLDER = GOLDEN / "counts"
COUNTED = [name for name in BENCHMARKS if not benchmark_of(name).of_others]


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_those_pinned(name, update_golden):
    found, path = counts.of_benchmark(name), FOLDER / f"{name}.json"
    missing = benchmark_of(name).left_out()
    kept = {program: c for program, c in pinned.read(path).items() if program.rsplit(", ", 2)[0] in missing}
    if update_golden:
        pinned.write(path, found | kept)
    changed = pinned.differences(pinned.read(path), found | kept)
    if changed:
        pytest.fail(f"{pinned.table(changed)}if they should, run make golden and review the difference", pytrace=False)


# -- nothing is left out --------------------------------------------------------------------------------------


def test_every_benchmark_is_pinned_and_nothing_else():
    assert {path.stem for path in FOLDER.glob("*")} == set(COUNTED)


def test_every_operator_is_counted():
    assert set(operators.__all__) - set(STRUCTURE) <= counts.programs("operators").keys()


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in COUNTED])
def test_benchmarks_that_are_not_counted_have_programs_of_others_only(name):
    known = ("cotan", "cloth_hessian", "sparse_powers")
    counted = {make().function for other in known for make in counts.programs(other).values()}
    benchmark = benchmark_of(name)
    works = benchmark.works(mesh_of(benchmark, Setting(vertices=50)), float)
    assert {make().function for make in works.values()} <= counted


# -- what is counted --------------------------------------------------------------------------------------------


def of_program(function, *arguments):
    """By target and type."""
    found = counts.counted(Work("", function, arguments, arguments))
    return {(target, dtype.name): counted for target, dtype, counted in found}


def test_operations_are_counted_for_each_member_and_each_term():
    A, x = sp.random_array((60, 60), density=0.3, rng=np.random.default_rng(0), format="csr"), np.ones(60)
    for found in of_program(lambda A, x: (A @ x, x * x + 1), A, x).values():
        assert found["operations"] == 2 * A.nnz + 2 * 60 and found["terms"] == A.nnz
        assert found["writes"] == 2 * 60 and found["templates"] == {"2": 2}


def test_kinds_of_loops_are_told_apart():
    L, _ = operators.cotan_laplacian(*geoopt.meshes.bumpy(150))
    assert of_program(lambda L: L @ L, L)["AVX-512", "float64"]["loops"] == {"runs": 1}
    assert of_program(lambda L: L @ L, L)["128 bits", "float32"]["loops"] == {"strips": 1}
    A = np.ones((40, 100))
    assert of_program(lambda A: A.sum(axis=1), A)["GPU", "float64"]["loops"] == {"by member": 1}
    assert {"cursors", "scattered", "rows"} <= {kind for name in COUNTED for kind in _kinds_pinned(name)}


def _kinds_pinned(name):
    return {kind for counted in pinned.read(FOLDER / f"{name}.json").values() for kind in counted["loops"]}


def _same_as_compiled(work, program, target):
    counted = of_program(work.function, *work.arguments)[target, "float64"]
    report = program.report()
    assert counted["text"] == len(program.source())
    for key in ("levels", "column_bytes", "workspace_bytes"):
        assert counted[key] == report[key]
    assert counted["kernels"] == len(report["kernels"]) and counted["columns"] == len(program.plan.tables)


@pytest.mark.usefixtures("on_avx512")
def test_what_is_counted_is_what_is_compiled():
    work = counts.programs("sparse_sums")["(A B + C) A"]()
    _same_as_compiled(work, geoopt.compile(work.function, *work.arguments), "AVX-512")


@needs_cuda_on_host
def test_what_is_counted_for_gpus_is_what_is_compiled():
    work = counts.programs("cotan")["L and M, torus"]()
    _same_as_compiled(work, geoopt.compile(work.function, *work.arguments, device="cuda-on-host"), "GPU")


def test_counts_do_not_depend_on_the_machine(monkeypatch):
    before = counts.of_benchmark("sparse_dense")
    for what in ("host", "vector_math"):
        monkeypatch.setattr(cpu, what, lambda: pytest.fail("asked what processor this is"))
    assert counts.of_benchmark("sparse_dense") == before


# -- the comparison -----------------------------------------------------------------------------------------------

WAS = {"L, AVX2": {"kernels": 3, "templates": {"2": 2, "7": 1}, "loops": {}, "column_bytes": 1000, "text": 50_000}}


def changed(**counts):
    return pinned.differences(WAS, {"L, AVX2": WAS["L, AVX2"] | counts})


def test_one_more_of_what_is_exact_is_a_difference():
    assert changed() == []
    assert changed(kernels=4) == [("L, AVX2", "kernels", 3, 4)]
    assert changed(kernels=2) and changed(templates={"2": 2, "8": 1}) and changed(loops={"runs": 1})


def test_bytes_may_drift_a_little():
    assert changed(column_bytes=1020, text=49_000) == []
    assert [d.count for d in changed(column_bytes=1021, text=48_999)] == ["column_bytes", "text"]


def test_a_program_or_a_count_that_is_not_pinned_is_a_difference():
    assert pinned.differences({}, WAS) == [("L, AVX2", "", "nothing", "pinned")]
    assert pinned.differences(WAS, {}) == [("L, AVX2", "", "pinned", "nothing")]
    assert [d.count for d in changed(warps=1)] == ["warps"]


def test_the_table_shows_old_and_new_of_what_differs_only():
    text = pinned.table(changed(kernels=4, templates={"2": 3, "7": 1}, text=60_000))
    assert "2 × 2, 1 × 7" in text and "3 × 2, 1 × 7" in text and "50,000" in text and "+20.0%" in text
    assert text.count("L, AVX2") == 1 and "column" not in text


def test_what_is_written_is_read_again_one_line_for_a_program(tmp_path):
    pinned.write(tmp_path / "x.json", two := WAS | {"Aᵀ x": WAS["L, AVX2"]})
    assert pinned.read(tmp_path / "x.json") == two
    assert len((tmp_path / "x.json").read_text().splitlines()) == len(two) + 2
    assert pinned.read(tmp_path / "nowhere.json") == {}
