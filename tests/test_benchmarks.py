"""Benchmarks: the method on a clock of our own, every benchmark and every peer at tiny size, errors."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import fresh, method, peers, run, tables
from benchmarks.catalogue import BENCHMARKS, benchmark_of, commands
from benchmarks.method import Candidate
from benchmarks.records import Setting

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


def test_candidates_take_turns_after_a_warm_up():
    clock = Clock()
    first, second = (Candidate(n, n, 1, clock.worker(n, [1.0])) for n in "ab")
    entries = method.compared([first, second], rounds=10, clock=clock)
    assert "".join(clock.log) == "aabb" + 10 * "ab"
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
    method.compared([Candidate("a", "a", 1, clock.worker("a", [1e-3]))], rounds=2, clock=clock)
    assert len(clock.log) == 2 + 2 * 9


def test_the_machine_is_described():
    found = method.machine()
    assert found["processor"] and found["cores"] >= 1 and "numpy" in found["versions"]


# -- every benchmark, every peer ----------------------------------------------------------------------------


TINY = {"vertices": 150, "rounds": 1, "threads": (1, 2)}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_and_its_peers_agree(name, monkeypatch):
    monkeypatch.setattr(fresh, "preparation", lambda *_: {"seconds": 1.0, "first_call_seconds": 1.0, "peak_bytes": 1})
    benchmark = benchmark_of(name)
    lines = list((benchmark.measure or run.compare)(name, benchmark, Setting(**TINY)))
    assert lines
    for line in lines:
        assert all("has no" not in reason for reason in line.get("left_out", {}).values())
        tables.show(line, benchmark)
        assert tables.markdown(line, benchmark).count("\n") == len(line["entries"]) + 1


def test_a_fresh_process_prepares_and_says_what_it_took():
    found = fresh.preparation("cotan", "L and M", Setting(**TINY))
    assert set(found["stages"]) >= {"trace", "assemble"} and found["peak_bytes"] > 1e7 and found["kernels"] > 0


def test_a_peer_that_computes_something_else_is_no_peer():
    work = next(
        iter(benchmark_of("cotan").works(run.mesh_of(benchmark_of("cotan"), Setting(**TINY)), float).values())
    )()
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
    monkeypatch.setattr(fresh, "preparation", lambda *_: {"seconds": 1.0, "first_call_seconds": 1.0, "peak_bytes": 1})
    mesh = tmp_path / "square.off"
    mesh.write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n")
    out = tmp_path / "cotan.jsonl"
    done = invoke("cotan", mesh, "--rounds", 1, "--peers", "numpy,numba", "--out", out)
    assert done.exit_code == 0, done.output
    [line] = tables.lines(tmp_path)
    assert line["mesh"] == "square.off" and line["vertices"] == 4 and len(line["entries"]) == 5


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing"], "No such command"),
        (["cotan", "--peers", "nobody"], "peer 'nobody' is unknown; choose from numpy, eigen"),
        (["cotan", "--peers", "mkl"], "has no 'cotan'"),
        (["cotan", "nowhere.obj"], "no such file"),
        (["cotan", "nowhere"], "give a file with a suffix, or one of bumpy"),
        (["cotan", "tetrahedral_ball", "--vertices", "30"], "needs triangles"),
        (["cotan", "--work", "typo"], "choose from 'L and M'"),
        (["cotan", "--threads", "0"], "give positive numbers"),
        (["cotan", "--dtype", "half"], "choose from double"),
        (["cotan", "x.obj", "--vertices", "9"], "--vertices is for generated meshes"),
    ],
)
def test_errors_say_what_to_do(words, why):
    done = invoke(*words)
    assert done.exit_code
    assert why in " ".join((done.output + str(done.exception)).split())


def test_a_peer_that_is_missing_is_left_out_with_a_reason_unless_it_was_asked_for(monkeypatch):
    monkeypatch.setitem(peers.PEERS, "libigl", peers.Peer("libigl", "no_such_file", "pip install libigl"))
    work = next(
        iter(benchmark_of("cotan").works(run.mesh_of(benchmark_of("cotan"), Setting(**TINY)), float).values())
    )()
    found, left_out = run.peer_candidates(work, benchmark_of("cotan"), Setting(threads=(1,)))
    assert "pip install libigl" in left_out["libigl"] and any(c.peer == "numba" for c in found)
    with pytest.raises(peers.MissingPeer, match=r"libigl is left out: .* \(pip install libigl\)"):
        run.peer_candidates(work, benchmark_of("cotan"), Setting(peers=("libigl",)))
