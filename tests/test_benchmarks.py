"""Benchmarks: the method on a clock of our own, every benchmark and every peer at tiny size, errors."""

from __future__ import annotations

import itertools
import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import geoopt
from benchmarks import __main__ as command
from benchmarks import distributed, fresh, method, peers, run, scaling, solve, tables
from benchmarks.catalogue import BENCHMARKS, benchmark_of, commands
from benchmarks.method import Candidate
from benchmarks.records import Setting
from benchmarks.report import write
from benchmarks.works import mesh_of

from .conftest import is_thorough

# -- the method -------------------------------------------------------------------------------------------


class Clock:
    """Time passes only when somebody works."""

    def __init__(self):
        self.now, self.log = 0.0, []

    def __call__(self):
        return self.now

    def worker(self, name, seconds):
        durations = itertools.cycle(seconds)

        def work():
            self.now += next(durations)
            self.log.append(name)

        return work


def test_candidates_take_turns_in_alternating_order_after_a_warm_up():
    clock = Clock()
    first, second = (Candidate(n, n, 1, clock.worker(n, [1.0])) for n in "ab")
    entries = method.compared([first, second], rounds=10, clock=clock)
    assert "".join(clock.log) == "aabb" + 5 * "abba"
    assert [e["rounds"] for e in entries] == [10, 10]


def test_numbers_are_medians_with_quartiles_and_ratios_are_of_a_round():
    clock = Clock()
    noise = [1, 1, 1, 2, 3, 4, 5]  # what both sides suffer in the rounds after two calls of warm-up
    a, b = clock.worker("a", noise), clock.worker("b", [3.0 * x for x in noise])
    entries = method.compared([Candidate("a", "a", 1, a), Candidate("b", "b", 1, b)], rounds=5, clock=clock)
    assert entries[0]["seconds"] == [2, 3, 4] and entries[1]["seconds"] == [6, 9, 12]
    assert entries[0]["ratio"] == [1, 1, 1] and entries[1]["ratio"] == [3, 3, 3]


def test_calls_are_made_within_their_context_and_entering_it_is_not_timed():
    clock, inside = Clock(), []

    @contextmanager
    def slowly_entered():
        clock.now += 100
        inside.append(True)
        yield
        inside.pop()

    def work():
        assert inside
        clock.now += 1

    [entry] = method.compared([Candidate("a", "a", 1, work, slowly_entered)], rounds=3, clock=clock)
    assert entry["seconds"] == [1, 1, 1]


def test_fast_calls_are_repeated_within_a_round():
    clock = Clock()
    method.compared([Candidate("a", "a", 1, clock.worker("a", [2e-3]))], rounds=2, budget=0.05, clock=clock)
    assert len(clock.log) == 2 + 2 * 25


def test_the_work_of_others_is_what_all_cores_do_without_us(monkeypatch):
    busy, own = iter([100.0, 130.0]), iter([10.0, 15.0])
    now = iter([0.0, 10.0])
    monkeypatch.setattr(method, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(method, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(method, "time", SimpleNamespace(monotonic=lambda: next(now)))
    assert method.Watch().others() == 2.5


def test_the_machine_is_described():
    found = method.machine()
    assert (
        found["processor"]
        and found["cores"] >= 1
        and found["vector_bits"] in (128, 256, 512)
        and "numpy" in found["versions"]
    )


# -- every benchmark, every peer ----------------------------------------------------------------------------


TINY = {"vertices": 150, "rounds": 1, "threads": (1, 2)}
FEW = {
    "arap": ("b",),
    "ablation": ("cotan",),
    "limits": ("cotan",),
    "scaling": ("cotan", "L²"),
    "sparse_random": ("(A + B)(A B + C)",),
    "sparse_powers": ("A²", "L M Lᵀ + K"),
    "sparse_sums": ("(2A + B)ᵀ(B C + A)",),
    "stencils": ("Poisson by Jacobi, 5 sweeps", "lattice Boltzmann, one step"),
    "loops": ("Laplacian, corner by corner", "1200 pairs of rows"),
    "symmetric_dirichlet": ("assembled",),
    "ways_of_writing": ("Laplacian, (4, t, 3)", "Laplacian, Gᵀ D G"),
    "existing_code": ("gradient", "harmonic function, gpytoolbox"),
    "operators": ("mass_matrix", "cloth_forces", "spring_energy, derivatives"),
}  # enough here
FRESH = {
    "stages": {"trace": 0.5, "place": 0.25, "assemble": 0.25}, "seconds": 1.0, "first_call_seconds": 1.0,
    "peak_bytes": 10**8, "code_bytes": 10**4, "kernels": 3,
}  # fmt: skip


def tiny(name, title):
    """One work of a benchmark on a tiny mesh."""
    benchmark = benchmark_of(name)
    return benchmark.works(mesh_of(benchmark, Setting(**TINY)), float)[title]()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_and_its_peers_agree(name, monkeypatch):
    monkeypatch.setattr(fresh, "preparation", lambda *_: FRESH)
    benchmark = benchmark_of(name)
    threads = (1, 2) if name in ("cotan", "scaling") else (2,)  # each is a program of its own
    setting = Setting(**TINY | {"threads": threads}, works=FEW.get(name, ()))
    lines = list((benchmark.measure or run.compare)(name, benchmark, setting))
    assert lines
    for line in lines:
        tables.show(line, benchmark)
        assert tables.markdown(line, benchmark).count("\n") == len(line["entries"]) + 1


def test_a_plain_copy_of_the_output_is_timed_beside_the_others_but_is_no_peer(monkeypatch):
    monkeypatch.setattr(fresh, "preparation", lambda *_: FRESH)
    [line] = run.compare("cotan", benchmark_of("cotan"), Setting(**TINY | {"threads": (1,)}, peers=()))
    [entry] = line["entries"]
    assert min(entry["copied_seconds"]) > 0 and line["remarks"][0].startswith("a plain copy of geoopt's output takes")


def test_programs_of_the_same_code_and_columns_have_one_fingerprint():
    work = tiny("cotan", "L and M")

    def of(*off):
        return run.fingerprint(geoopt.compile(work.function, *work.arguments, options=geoopt.Options(without=off)))

    assert of() == of("roots") and len({of(), of("memory"), of("global")}) == 3


def test_hessians_of_triangles_sum_to_the_assembled_one():
    apart, assembled = (tiny("symmetric_dirichlet", work) for work in ("per triangle", "assembled"))
    (slopes, lower), (slope, hessian) = (work.function(*work.arguments) for work in (apart, assembled))
    surface = apart.arguments[1]
    places = 2 * np.repeat(surface.F, 2, axis=1) + np.tile([0, 1], 3)  # of the triangles' six numbers in x.ravel()
    total = np.zeros(hessian.shape)
    for (i, j), values in zip(np.transpose(np.tril_indices(6)), lower.T, strict=True):
        np.add.at(total, (places[:, i], places[:, j]), values)
        np.add.at(total, (places[:, j], places[:, i]), values * (i != j))
    np.testing.assert_allclose(total, hessian.toarray(), atol=1e-9 * abs(total).max())
    np.testing.assert_allclose(np.bincount(places.ravel(), slopes.ravel()), slope.ravel(), atol=1e-9)


def test_geoopt_computes_symmetric_values_of_triangles_once():
    work = tiny("symmetric_dirichlet", "per triangle")
    m = len(work.arguments[1].F)
    assert run.geoopt_candidate(work, "geoopt", {}, 1, Setting()).notes["output_bytes"] == 8 * (6 + 21) * m


@pytest.mark.parametrize(
    ("name", "title"),
    [("symmetric_dirichlet", "assembled, projected"), ("cloth_hessian", "assembled, by differentiation, projected")],
)
def test_projected_hessians_are_definite(name, title):
    work = tiny(name, title)
    hessian = run.parts(work.function(*work.arguments))[-1]
    values = np.linalg.eigvalsh(hessian.toarray())
    assert values[0] > -1e-9 * values[-1]


def test_a_fresh_process_prepares_and_says_what_it_took():
    found = fresh.preparation("cotan", "L and M", Setting(**TINY))
    assert set(found["stages"]) >= {"trace", "assemble"} and found["peak_bytes"] > 1e7 and found["kernels"] > 0


def test_a_peer_that_computes_something_else_is_no_peer():
    work = tiny("cotan", "L and M")
    right, wrong = (Candidate(n, n, 1, lambda x=x: np.full(3, x)) for n, x in (("right", 1.0), ("wrong", 1.0 + 1e-8)))
    run.check([right, right], work, Setting())
    with pytest.raises(ValueError, match=r"wrong differs from right by 1\.0e-08"):
        run.check([right, wrong], work, Setting())


def test_all_runs_of_the_report_are_commands():
    for words in [*commands("small"), *commands("full")]:
        assert words[0] in BENCHMARKS
    assert len(commands("full")) >= len(BENCHMARKS)


# -- the command line -----------------------------------------------------------------------------------------


def invoke(*words):
    return CliRunner().invoke(command.app, [str(w) for w in words])


def test_a_mesh_file_needs_nothing_but_its_path(tmp_path, monkeypatch):
    monkeypatch.setattr(fresh, "preparation", lambda *_: FRESH)
    mesh = tmp_path / "square.off"
    mesh.write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n")
    monkeypatch.chdir(tmp_path)
    done = invoke("cotan", mesh, "--rounds", 1, "--peers", "numpy,numba")
    assert done.exit_code == 0, done.output
    [line] = tables.lines(tmp_path / "out" / "benchmarks")
    assert line["mesh"] == "square.off" and line["vertices"] == 4 and len(line["entries"]) == 5


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing"], "No such command"),
        (["cotan", "--vertices", "150", "--peers", "nobody"], "peer 'nobody' is unknown; choose from numpy, eigen"),
        (["sparse_powers", "--vertices", "150", "--peers", "libigl"], "libigl has no 'sparse'"),
        (["cotan", "nowhere.obj"], "no such file"),
        (["cotan", "nowhere"], "give a file with a suffix, or one of bumpy"),
        (["cotan", "tetrahedral_ball", "--vertices", "30"], "needs triangles"),
        (["cotan", "--vertices", "150", "--work", "typo"], "choose from 'L and M'"),
        (["cotan", "--threads", "0"], "give positive numbers"),
        (["cotan", "--dtype", "half"], "choose from double"),
        (["cotan", "x.obj", "--vertices", "9"], "--vertices is for generated meshes"),
    ],
)
def test_errors_say_what_to_do(words, why, monkeypatch):
    monkeypatch.setattr(fresh, "preparation", lambda *_: FRESH)
    done = invoke(*words)
    assert done.exit_code
    assert why in " ".join((done.output + str(done.exception)).split())


def test_a_peer_that_is_missing_is_left_out_with_a_reason_unless_it_was_asked_for(monkeypatch):
    monkeypatch.setitem(peers.PEERS, "libigl", peers.Peer("libigl", "no_such_file", "pip install libigl"))
    work = tiny("cotan", "L and M")
    found, left_out = run.peer_candidates(work, benchmark_of("cotan"), Setting(threads=(1,)))
    assert "pip install libigl" in left_out["libigl"] and any(c.peer == "numba" for c in found)
    with pytest.raises(peers.MissingPeer, match=r"libigl is left out: .* \(pip install libigl\)"):
        run.peer_candidates(work, benchmark_of("cotan"), Setting(peers=("libigl",)))


# -- results ----------------------------------------------------------------------------------------------------


def entry(name, peer, threads, seconds, first):
    quartiles = [0.9 * seconds, seconds, 1.1 * seconds]
    ratio = [q / first for q in quartiles]
    times = {"prepared_seconds": 0.1, "first_call_seconds": 0.2}
    return {"name": name, "peer": peer, "threads": threads, "seconds": quartiles, "ratio": ratio, "rounds": 10, **times}


@pytest.fixture
def results(tmp_path):
    """Two measurements of the same, the second of which is lost against Numba on two threads."""
    setting = Setting(vertices=200, command="python -m benchmarks cotan --vertices 200")
    benchmark = benchmark_of("cotan")
    line = run.about("cotan", "L and M", benchmark, mesh_of(benchmark, setting), setting, method.Watch())
    line["others"], line["machine"]["vector_bits"] = 0.0, 512
    for numba in (3e-3, 1e-3):
        entries = [
            entry("geoopt", "geoopt", 1, 4e-3, 4e-3),
            entry("geoopt", "geoopt", 2, 2e-3, 4e-3),
            entry("Numba by hand", "numba", 2, numba, 4e-3),
            entry("C++ with Eigen", "eigen", 1, 30e-3, 4e-3),
        ]
        found = {"vertices": 200_000, "entries": entries, "left_out": {"jax": "why"}}
        run.append([{**line, **found}], tmp_path / "cotan.jsonl")
    return tmp_path


def test_the_report_says_first_where_peers_win(results):
    out = results / "report" / "REPORT.md"
    write(results, out)
    text = out.read_text()
    assert text.count("L and M: bumpy, 200,000 vertices") == 2  # where peers win, and the table
    assert "**Numba by hand** on 2 threads takes 0.50 of geoopt's time (1 against 2 ms)" in text
    assert text.index("Where peers are faster") < text.index("## Cotan Laplacian")
    assert "| cotan, L and M | 200,000 | float64 | A | 7.5 | 7.3 |" in text  # ours and the paper's speedup
    assert "`python -m benchmarks cotan --vertices 200`" in text and "- why" in text and "other processes" not in text
    for picture in re.findall(r"\]\((.*?)\)", text):
        assert (out.parent / picture).stat().st_size > 1000


def test_narrower_vectors_have_results_of_their_own(results):
    last = list(tables.lines(results))[-1]
    narrow = {**last, "machine": {**last["machine"], "vector_bits": 256}}
    run.append([{**last, "lanes": 4}, narrow], results / "cotan.jsonl")  # the second replaces the first
    write(results, results / "REPORT.md")
    text = (results / "REPORT.md").read_text()
    assert text.count("\n- A: ") == text.count("\n- B: ") == 1 and "256-bit vectors, " in text
    assert text.count("float64; machine B**") == text.count("float64, 256-bit vectors; machine A**") == 1


def test_the_report_of_committed_results_renders(tmp_path):
    if not list(command.RESULTS.glob("*.jsonl")):
        pytest.skip("no results are committed yet")
    write(command.RESULTS, tmp_path / "REPORT.md")


def test_a_busy_machine_is_said(results):
    lines = list(tables.lines(results))
    lines[-1]["others"] = 1.5
    run.append(lines[-1:], results / "cotan.jsonl")
    write(results, results / "REPORT.md")
    assert "In 1 of 1 measurements other processes were at work" in (results / "REPORT.md").read_text()


def test_a_report_of_nothing_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="python -m benchmarks all"):
        write(tmp_path, tmp_path / "REPORT.md")


def test_a_full_run_leaves_out_what_this_commit_has_results_of(results, monkeypatch):
    started = []
    monkeypatch.setattr(method, "commit", lambda: "c")
    monkeypatch.setattr(command, "commands", lambda which: [["cotan", "--vertices", "200"], ["arap"]])
    monkeypatch.setattr(
        command.subprocess, "run", lambda words: started.append(words[3]) or SimpleNamespace(returncode=0)
    )
    for line in tables.lines(results):
        run.append([{**line, "machine": {**line["machine"], "commit": "c"}}], results / "cotan.jsonl")
    assert invoke("all", "--out", results).exit_code == 0 and started == ["arap"]
    assert invoke("all", "--again", "--out", results).exit_code == 0 and started == ["arap", "cotan", "arap"]


@pytest.mark.parametrize(("words", "place"), [([], "out/benchmarks"), (["--record"], "kept"), (["--out", "x"], "")])
def test_results_are_recorded_only_where_that_is_asked_for(tmp_path, monkeypatch, words, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "RESULTS", Path("kept"))
    monkeypatch.setattr(run, "compare", lambda *_: [])
    monkeypatch.setattr(command.sys, "argv", ["", "cotan", *words])
    assert invoke("cotan", *words).exit_code == 0
    assert [str(p) for p in Path().rglob("*") if p.is_file()] == [f"{place}/cotan.jsonl" if place else "x"]
    assert command._typed() == "python -m benchmarks cotan"  # two runs of the same are one in reports


def test_exponents_are_the_slopes_of_large_meshes():
    entries = [
        {"vertices": n, "seconds": [0, 1e-9 * n, 0], "fresh": {"seconds": 1e-6 * n**1.5, "peak_bytes": 2.0 * n**0.5}}
        for n in (1_000, 10_000, 100_000)
    ]
    assert scaling.exponents(entries) == (
        "from 10,000 vertices on, run time grows as n^1.00, preparation grows as n^1.50, peak memory grows as n^0.50"
    )
    assert scaling.sizes(100_000) == [1000, 3162, 10000, 31623, 100000] and scaling.sizes(10) == [10]


def test_what_solvers_take_is_recorded_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    words = ["solve", "--vertices", "300", "--rounds", "1", "--solvers", "multifrontal,superlu"]
    told = CliRunner().invoke(command.app, [*words, "--record"])
    assert told.exit_code == 0 and told.output.count("multifrontal") == 6
    parts = list(solve.section(tmp_path, lambda record: record["machine"]["processor"]))
    assert len(parts) == 7 and "| superlu | " in parts[1] and "×" in parts[1]
    assert list(solve.section(tmp_path / "nothing", str)) == []


def test_ranks_are_started_and_recorded_and_reported(tmp_path, monkeypatch):
    if reason := distributed.missing() or (not is_thorough() and "it takes long: make mpi runs it"):
        pytest.skip(reason)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(distributed, "SIZES", (100, 300))
    monkeypatch.setattr(distributed, "SHARED", (100,))
    words = ("--ranks", "2", "--vertices", 1000, "--launches", 1, "--rounds", 1, "--work", "cotan", "--record")
    told = invoke("distributed", *words)
    assert told.exit_code == 0, told.output
    parts = list(distributed.section(tmp_path, lambda record: record["machine"]["processor"]))
    assert "| serial | " in parts[1] and len(parts) == 2
    predicted = invoke("distributed", "--model", "--record")
    assert predicted.exit_code == 0 and "efficiency is" in predicted.output


def test_ranks_need_mpi(monkeypatch):
    monkeypatch.setattr(distributed.importlib.util, "find_spec", lambda name: None)
    done = invoke("distributed")
    assert "distributed needs mpi4py and petsc4py" in str(done.exception)
    with pytest.raises(ValueError, match="choose from cotan, poisson, arap, solved"):
        distributed.chosen(["typo"])
