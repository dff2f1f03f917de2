"""The cost model of many ranks: its laws, and counts of divisions against counting one by one. Without MPI."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import cluster_model as model
from benchmarks import distributed, partitions
from benchmarks.cluster_model import Cluster, Costs, Machine, Network, Work, predicted
from geoopt.distributed.division import Division, divided, divided_by_pieces
from geoopt.meshes import bumpy, cloth, tetrahedral_ball

COSTS = Costs((200.0, 2000.0, 2e5), (1e-5, 2e-5, 1e-3), (2e-5, 1e-4, 1e-2), (1e-5, 5e-5, 5e-3), moved=400.0)
NONE = Network("none", 0.0, 1e30)
FREE = Cluster(Machine(10**6), NONE, NONE, 16)  # nothing is waited for
SLOW = Cluster(model.WORKSTATION, model.SHARED, model.ETHERNET, 16)
ALL = [*model.WORKS.values(), model.STEP]


def one_by_one(division: Division, rings: int, machine: int) -> dict[str, list[int]]:
    """Counts of every rank, from sets."""
    F, of, owner = division.elements.tolist(), division.of_elements, division.of_vertices
    found: dict[str, list[int]] = {name: [] for name in ("added", "ghosts", "neighbours", "abroad", "remote")}
    for rank in range(division.count):
        inside = {e for e in range(len(F)) if of[e] == rank}
        own = set(inside)
        found["remote"].append(len({(i, j) for e in own for i in F[e] for j in F[e] if owner[i] != rank}))
        for _ in range(rings):
            touched = {v for e in inside for v in F[e]}
            inside = {e for e in range(len(F)) if touched & set(F[e])}
        ghosts = {v for e in inside for v in F[e] if owner[v] != rank}
        found["added"].append(len(inside - own))
        found["ghosts"].append(len(ghosts))
        found["neighbours"].append(len({int(owner[v]) for v in ghosts}))
        found["abroad"].append(sum(int(owner[v]) // machine != rank // machine for v in ghosts))
    return found


@pytest.mark.parametrize("mesh", [bumpy(200), cloth(150), tetrahedral_ball(120)], ids=["closed", "border", "cells"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_statistics_are_what_is_counted_one_by_one(mesh, count):
    V, F = mesh
    division, machine = divided(F, len(V), count), 2
    found = partitions.statistics(division, machine)
    for rings, halo in enumerate(found["halo"]):
        wanted = one_by_one(division, rings, machine)
        for name in ("added", "ghosts", "neighbours", "abroad"):
            assert halo[name] == [max(wanted[name]), round(float(np.mean(wanted[name])), 2)], (rings, name)
        assert halo["sent"][1] == halo["ghosts"][1]  # what is sent arrives
    assert found["remote"] == [max(wanted["remote"]), round(float(np.mean(wanted["remote"])), 2)]
    assert found["elements"][1] == round(len(F) / count, 2)


def test_every_piece_of_a_patch_has_all_ranks():
    V, F = bumpy(200)
    both = np.concatenate([F, F + len(V), F + 2 * len(V)])
    division = divided_by_pieces(both, 3 * len(V), 3)
    for piece in np.split(division.of_elements, 3):
        assert set(piece) == {0, 1, 2}
    assert set(division.of_vertices) == {0, 1, 2}


@pytest.fixture(scope="module")
def table():
    return model.divisions()


@pytest.mark.parametrize("work", ALL)
def test_one_part_costs_what_its_parts_cost(work, table):
    first = table["divisions"][0]
    found = predicted(work, COSTS, first, SLOW)
    assert first["parts"] == 1 and found.efficiency == 1
    assert found.seconds == pytest.approx(sum(COSTS.parts(table["elements"]).values()))


@pytest.mark.parametrize("work", ALL)
def test_more_parts_never_send_less_in_total(work, table):
    sent = []
    for division in table["divisions"]:
        halo, count = division["halo"][work.rings], division["parts"]
        ghosts, remote = count * halo["ghosts"][1], count * division["remote"][1]
        sent.append(sum(work.forward) * ghosts + sum(a * remote + b * ghosts for a, b in work.reverse))
    assert sent == sorted(sent)


def test_counted_divisions_are_balanced_and_whole(table):
    for division in table["divisions"]:
        count = division["parts"]
        assert division["elements"][1] * count == pytest.approx(table["elements"], rel=1e-4)
        assert division["vertices"][1] * count == pytest.approx(table["vertices"], rel=1e-4)
        assert division["elements"][0] < 1.05 * division["elements"][1]


@pytest.mark.parametrize("work", ALL)
def test_networks_only_cost(work, table):
    for division in table["divisions"][1:]:
        free, slow = (predicted(work, COSTS, division, cluster) for cluster in (FREE, SLOW))
        faster = predicted(work, COSTS, division, replace(SLOW, between=model.INFINIBAND))
        assert free.seconds <= faster.seconds <= slow.seconds
        assert all(seconds >= 0 for seconds in slow.terms.values())


def test_what_costs_in_proportion_is_shared_out_whole(table):
    ideal = Costs((1.0, 1e9), (1e-12, 1e-3), (1e-9, 1.0), (1e-10, 0.1), moved=0.0)
    first, *others = table["divisions"]
    alone = predicted(Work(), ideal, first, FREE).seconds
    for division in others:
        found = predicted(Work(), ideal, division, FREE, alone)
        assert found.efficiency == pytest.approx(division["elements"][1] / division["elements"][0], rel=1e-3)


def test_processes_share_cores_and_memory():
    machine = Machine(4, memory_rate=10e9, cache=1e6)
    assert machine.shared(1, 5e9, 1.0) == 1
    assert machine.shared(4, 5e9, 1.0) == pytest.approx(2)  # 20 GB in two seconds
    assert machine.shared(4, 5e5, 1e-6) == 1  # in caches
    assert machine.shared(8, 1.0, 1.0) == 2  # twice as many as cores
    assert Machine(2, slowdown=(1.0, 1.5)).shared(4, 1.0, 1.0) == 3


def test_times_between_sizes_lie_between_their_times():
    assert COSTS.seconds("kernels", 2000) == pytest.approx(1e-4)
    assert 1e-4 < COSTS.seconds("kernels", 5000) < 1e-2
    assert COSTS.seconds("kernels", 4e5) == pytest.approx(2e-2)
    assert COSTS.seconds("kernels", 1) == pytest.approx(2e-5)


def test_sums_take_a_latency_for_each_doubling(table):
    division = next(d for d in table["divisions"] if d["parts"] == 64)
    found = predicted(Work(sums=1), COSTS, division, SLOW).terms["sums"]
    assert found == pytest.approx(4 * model.SHARED.latency + 2 * model.ETHERNET.latency)


def test_it_says_where_efficiency_ends(table):
    found = model.on_cluster(model.WORKS["cotan"], COSTS)
    assert found[0].efficiency == 1
    assert model.stops(found, 0.0) == "0% or more up to 4,096 ranks"
    assert "most is lost to" in model.stops(found, 2.0)


def test_times_recorded_in_quiet_are_predicted():
    path = partitions.RECORD.with_name(distributed.RECORD)
    if not path.exists():
        pytest.skip("no times are recorded yet")
    record = json.loads(path.read_text())
    for work in model.WORKS:
        for ranks, expected, measured, others in model.beside(record, work):
            if ranks == 1 or others < model.QUIET:  # one rank has a core of two for itself
                assert abs(expected / measured - 1) < model.TOLERANCE, (work, ranks)
    assert list(distributed.model_tables(record))
