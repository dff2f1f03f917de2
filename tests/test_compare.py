"""Two versions side by side: what counts as worse, on made-up figures; versions, errors, and one tiny comparison."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import compare_tables, verdict, versions
from benchmarks.compare import Case, Compared, Failure, Process, _is_certain, cases, compare
from benchmarks.verdict import LEAST, Rounds

RNG = np.random.default_rng(0)
QUIET = 0.01  # noise of most works
CASE = Case("cotan", "L and M")


def rounds(ratio=1.0, itself=1.0, seconds=1.0):
    """Two rounds of values without noise, but for a factor between the two of BASE."""
    return Rounds([seconds, seconds], [itself * seconds, itself * seconds], [ratio * seconds, 1.2 * ratio * seconds])


# -- statistics ---------------------------------------------------------------------------------------------------


def test_the_least_of_all_rounds_is_compared():
    found = Rounds([2.0, 1.0], [4.0, 5.0], [3.0, 6.0])
    assert found.usual == 2.0 and found.ratio == 1.5
    assert found.ratios == (0.75, 6.0) and found.itself == (0.2, 5.0)


def test_what_is_larger_than_noise_is_worse_and_what_is_smaller_is_better():
    assert verdict.is_worse("preparing", rounds(1.1), QUIET) and not verdict.is_better("preparing", rounds(1.1), QUIET)
    assert verdict.is_better("preparing", rounds(0.9), QUIET) and not verdict.is_worse("preparing", rounds(0.9), QUIET)


@pytest.mark.parametrize(
    "explained",
    [
        (rounds(1.04), QUIET),  # too little
        (rounds(1.1), 0.06),  # most works differ as much from themselves
        (rounds(1.1, itself=1.1), QUIET),  # this one does
        (rounds(1.1, seconds=LEAST["preparing"]), QUIET),  # nobody would see it
    ],
)
def test_what_noise_or_size_explains_is_not_worse(explained):
    assert not verdict.is_worse("preparing", *explained)


def test_what_is_twice_as_much_is_certain_unless_noise_is_large():
    assert verdict.is_certain(rounds(2.1), QUIET) and not verdict.is_certain(rounds(1.9), QUIET)
    assert not verdict.is_certain(rounds(2.1), 0.2) and not verdict.is_certain(rounds(2.1, itself=1.3), QUIET)


def test_times_of_several_threads_are_measured_again_however_bad_they_look():
    slower = {what: Compared(CASE, {what: rounds(9.0)}, worse=[what]) for what in ("one thread", "two threads")}
    assert [_is_certain(one, dict.fromkeys(LEAST, QUIET)) for one in slower.values()] == [True, False]


def noisy(ratio=1.0, noise=0.03):
    return Rounds(*(list(np.exp(noise * RNG.normal(size=2)) * factor) for factor in (1.0, 1.0, ratio)))


def test_equal_versions_seldom_look_worse_and_slower_ones_do():
    """Of 300 numbers, before any is measured again; other processes disturb some works."""
    for noise in (0.01, 0.05):
        equal = [noisy(noise=noise * (5 if n % 10 == 0 else 1)) for n in range(300)]
        usual = verdict.noise_of_most(equal)
        assert sum(verdict.is_worse("preparing", r, usual) for r in equal) <= 6
        slower = [noisy(1.5, noise) for _ in range(100)]
        assert sum(verdict.is_worse("preparing", r, usual) for r in slower) >= 95


def test_counts_have_no_noise():
    base = {"kernels": 20, "columns": 1_000_000, "code": 100}
    assert verdict.grown(base, base | {"columns": 1_050_000, "kernels": 3, "code": 4000}) == []
    larger = {"columns": 1_050_001, "kernels": 22, "code": 5000}
    assert verdict.grown(base, base | larger) == ["kernels", "columns", "code"]


# -- what is shown ------------------------------------------------------------------------------------------------


def compared(**ratios):
    measured = {what: rounds(ratios.get(what.replace(" ", "_"), 1.0), seconds=100 * LEAST[what]) for what in LEAST}
    counts = {"kernels": 8, "operations": 1000, "columns": 52_000_000, "workspace": 0, "code": 5000}
    return Compared(CASE, measured, {"base": counts, "now": counts | {"kernels": 22, "operations": 500}})


def test_what_is_worse_is_named(capsys):
    one = compared(preparing=10.0)
    one.worse = [what for what, r in one.rounds.items() if verdict.is_worse(what, r, QUIET)]
    lost, unknown = Compared(CASE, failed="this tree cannot", is_lost=True), Compared(CASE, failed="c cannot")
    said = ["cotan: L and M: preparing × 10.00, kernels 8 → 22", "cotan: L and M: this tree cannot"]
    assert list(compare_tables.worse([one, lost, unknown])) == said
    command.Console(width=compare_tables.WIDTH).print(compare_tables.table([one, Compared(CASE, failed="c [x]")], "c"))
    shown = capsys.readouterr().out
    assert "3.00 s × 10.00" in shown and "10.00–12.00 | 1.00–1.00" in shown and "operations × 0.50" in shown
    assert "columns" not in shown and "c [x]" in shown


def test_counts_may_grow_where_something_became_better():
    faster = compared(one_thread=0.5)
    assert faster.grown == ["kernels"]
    faster.better = [what for what, r in faster.rounds.items() if verdict.is_better(what, r, QUIET)]
    assert faster.better == ["one thread"] and not faster.grown and not list(compare_tables.worse([faster]))


# -- versions, errors, and all of it --------------------------------------------------------------------------------


def invoke(*words):
    return CliRunner().invoke(command.app, ["compare", *words])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such-commit"], "commit 'no-such-commit' is unknown"),
        (["--work"], "requires an argument"),
        (["HEAD", "--work", "typo"], "work 'typo' is unknown; choose a benchmark (sparse_random"),
        (["HEAD", "--dtype", "half"], "choose from double"),
    ],
)
def test_errors_say_what_to_do(words, why):
    done = invoke(*words)
    assert done.exit_code
    assert why in " ".join((done.output + str(done.exception)).split())


def test_works_are_chosen_by_benchmark_or_by_name():
    assert {case.benchmark for case in cases([])} >= {"cotan", "sparse_sums", "loops"}
    assert {case.benchmark for case in cases(["loops"])} == {"loops"}
    assert cases(["L and M"]) == [CASE, Case("dual_laplacian", "L and M")]
    assert cases(["cotan: L and M"]) == [CASE]


def test_a_tree_beside_itself(tmp_path, monkeypatch):
    """Every side runs the geoopt of its own folder; a work that there is not is said to fail, and stops nothing."""
    monkeypatch.setattr(versions, "FOLDER", tmp_path)
    version = versions.of_this_tree()
    assert versions.of_this_tree().site == version.site and (version.site / "geoopt" / "operators").is_dir()
    told = []
    case, typo = Case("sparse_dense", "L x", 60), Case("sparse_dense", "typo", 60)
    one, other = compare(version, version, [case, typo], 1, told.append)
    assert not one.failed and not one.grown and one.counts["base"] == one.counts["now"]
    assert all(min(min(values) for values in r) >= 0 for r in one.rounds.values()) and one.rounds.keys() == LEAST.keys()
    assert other.failed == "this tree cannot: KeyError: 'typo'"
    warmed, measured = told[:2], told[2:]  # a busy machine has more rounds
    assert [line.split(": ", 1)[1] for line in warmed] == [str(case), str(typo)]
    assert {line.split(": ", 1)[1] for line in measured} == {str(case)}
    assert any((version.site / "loops").iterdir())
    with Process(version) as process, pytest.raises(Failure, match="cannot: KeyError"):
        process.ask("nothing")
