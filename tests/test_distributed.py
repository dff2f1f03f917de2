"""`geoopt.distributed`: the ranks' results together are those of the whole mesh; divisions, without MPI.

What needs MPI and PETSc runs on several ranks in processes of its own (`ranks`), and is skipped where they are missing:
``make mpi`` installs them, and runs these tests, on one, two and four ranks, too.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.distributed.division import divided, sample, within
from geoopt.distributed.fields import piece
from geoopt.distributed.statistics import of_division
from geoopt.errors import ArgumentError, MeshError
from geoopt.meshes import bumpy, cloth
from geoopt.operators import cotan_laplacian

from .conftest import is_thorough
from .ranks import launched

HAS_MPI = all(importlib.util.find_spec(name) for name in ("mpi4py", "petsc4py"))
on_ranks = pytest.mark.skipif(not HAS_MPI, reason="mpi4py or petsc4py is missing: make mpi installs them")


@functools.cache
def found(ranks: int, case: str) -> dict:
    """What a case has found on so many ranks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        run = launched(ranks, "-m", "tests.ranks", case, out)
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(out.read_text())


LIMITS = {  # of the gaps to what the whole mesh gives
    "poisson": {"Poisson 0": 1e-11, "own rows 0": 1e-11},
    "steps": {
        **{"energies of a cloth": 1e-8, "positions of a cloth 0": 1e-9},
        **{"least energy": 1e-9, "minimum 0": 1e-6},
    },
}


@on_ranks
@pytest.mark.parametrize("ranks", [1, 2, 3, 4] if is_thorough() else [3])
def test_results_are_those_of_the_whole_mesh(ranks):
    gaps = {name: gap for name, gap in found(ranks, "laws").items() if isinstance(gap, float)}
    assert len(gaps) == 20
    assert {name: gap for name, gap in gaps.items() if not gap < 1e-12} == {}


@on_ranks
def test_how_results_are_put_together():
    assert found(2, "ways")["ways"] == {
        "cotan_laplacian": [["added", 0], ["added", 0]],
        "vertex_normals": [["owned", 1]],
        "twice": [["owned", 2]],
        "arap_energy": [["differences", 1]],
    }
    assert "more than 4 rings" in found(2, "ways")["refused"]


@on_ranks
@pytest.mark.parametrize("case", LIMITS if is_thorough() else ["poisson"])
def test_whole_steps(case):
    gaps = {name: gap for name, gap in found(2, case).items() if isinstance(gap, float)}
    assert gaps.keys() == LIMITS[case].keys()
    assert {name: gap for name, gap in gaps.items() if not gap < LIMITS[case][name]} == {}


@on_ranks
def test_a_mesh_tells_of_its_parts():
    assert "2 ranks: elements balanced to 1.0" in found(2, "poisson")["statistics"]


@on_ranks
def test_the_example_of_the_documentation_gives_what_one_process_does(tmp_path):
    example = Path(__file__).parents[1] / "docs" / "examples" / "ranks.py"
    run = launched(2, example, "--vertices", "800", "--out", tmp_path / "u.npy")
    assert run.returncode == 0, run.stderr
    assert "2 ranks: elements balanced to" in run.stdout
    V, F = bumpy(800)
    V = V * [1.0, 1.0, 1.2]
    charge, rest = np.sin(3 * bumpy(800)[0][:, 0]), bumpy(800)[0][:, 2]
    L, M = cotan_laplacian(V, F)
    wanted = geoopt.solve(L, M @ charge, fixed=rest < np.quantile(rest, 0.01), values=0.0)
    np.testing.assert_allclose(np.load(tmp_path / "u.npy"), wanted, atol=1e-8 * abs(wanted).max())


@on_ranks
def test_all_ranks_refuse_alike():
    wanted = (
        "MeshError: rank 0: vertex 7 has a position that is not finite",
        "MeshError: rank 0: element ",
        "MeshError: rank 0: the mesh has no elements",
        "ArgumentError: argument 'V' is an array of 100 rows",
        "ArgumentError: rank 0: values have shape (99, 3); the mesh has 100 vertices",
        "ArgumentError: at='faces': choose 'vertices' or 'elements'",
        "UnsupportedError: result is a comparison",
        "UnsupportedError: result is ",
    )
    said = found(2, "refusals")["said"]
    n = bumpy(100)[0].shape[0]
    for words, begin in zip(said, wanted, strict=True):
        assert words.startswith(begin.replace("100", str(n)).replace("99", str(n - 1))), words


@on_ranks
@pytest.mark.parametrize("case", ["raises", "dies"])
def test_a_rank_that_fails_ends_all(case, tmp_path):
    begun = time.monotonic()
    run = launched(3, "-m", "tests.ranks", case, tmp_path / "found.json", limit=60)
    assert run.returncode != 0
    assert time.monotonic() - begun < 60
    assert not (tmp_path / "found.json").exists()
    if case == "raises":
        assert "rank 2 of 3 ends all:" in run.stderr
        assert "ValueError: the last rank has lost its mind" in run.stderr


@given(st.integers(40, 300), st.integers(1, 12))
def test_a_division_gives_each_vertex_and_element_to_one_rank(n, count):
    V, F = bumpy(n)
    alone = np.array([0, len(V) + 1])  # vertices without elements, the first and the last
    division = divided(F + 1, len(V) + 2, count)
    assert division.of_elements.shape == (len(F),)
    assert division.of_vertices.shape == (len(V) + 2,)
    assert {*division.of_elements, *division.of_vertices} <= {*range(count)}
    order, starts = division.vertices.order, division.vertices.starts
    assert np.array_equal(np.sort(order), np.arange(len(V) + 2))
    for rank in range(count):
        own = order[starts[rank] : starts[rank + 1]]
        assert np.array_equal(own, np.flatnonzero(division.of_vertices == rank))
        # whoever owns a vertex has elements around it, but for those that have none
        assert {*own} - {*alone} <= {*(F[division.of_elements == rank] + 1).ravel()}
    assert np.bincount(division.of_elements, minlength=count).max() <= 1.2 * len(F) / count + 8


@given(st.integers(40, 200), st.integers(2, 6))
def test_statistics_are_what_counting_gives(n, count):
    V, F = bumpy(n)
    division = divided(F, len(V), count)
    statistics = of_division(division)
    for rank in range(count):
        vertices = {*F[division.of_elements == rank].ravel()}
        ghosts = {v for v in vertices if division.of_vertices[v] != rank}
        assert statistics.vertices[rank] == np.count_nonzero(division.of_vertices == rank)
        assert statistics.ghosts[rank] == len(ghosts)
        assert statistics.neighbours[rank] == len({int(division.of_vertices[v]) for v in ghosts})
    assert statistics.elements.sum() == len(F)


def test_rings_are_what_touches():
    V, F = cloth(100)
    begun = np.arange(len(F)) == 7
    near = within(F, len(V), begun, 1)
    assert np.array_equal(near, [bool({*face} & {*F[7]}) for face in F.tolist()])
    assert np.array_equal(within(F, len(V), begun, 2), within(F, len(V), near, 1))


def test_a_sample_is_connected_and_small():
    V, F = bumpy(2000)
    chosen = sample(F, len(V), 300)
    assert 250 < len(chosen) <= 300
    part = piece(F, len(V), chosen)
    assert np.array_equal(part.vertices[part.elements], F[chosen])
    assert np.array_equal(sample(F, len(V), len(F)), np.arange(len(F)))


def test_what_is_no_mesh_is_refused():
    V, F = bumpy(50)
    with pytest.raises(MeshError, match="integers of shape"):
        divided(F.astype(float), len(V), 2)
    with pytest.raises(MeshError, match=r"there are vertices 0 to 3"):
        divided(F, 4, 2)
    with pytest.raises(ArgumentError, match="at least one part"):
        divided(F, len(V), 0)
