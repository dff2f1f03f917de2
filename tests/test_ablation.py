"""Every switch turns its stage off, and only that: results stay right, counts show the effect."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import geoopt
from geoopt.meshes import bumpy, cloth
from geoopt.operators import cotan_laplacian
from geoopt.options import FAMILIES, SWITCHES
from geoopt.sparse import from_triplets

V, F = cloth(60)
V = V + np.random.default_rng(0).normal(scale=0.02, size=V.shape)


def program(V, F, h):
    """Something for every switch: shared and equal values, blocks, sums, functions, gathers."""
    L, M = cotan_laplacian(V, F)
    P = V[F]
    normal = np.cross(P[:, 1] - P[:, 0], P[:, 2] - P[:, 0])
    area = np.sqrt(np.sum(normal * normal, axis=1))
    unit = normal / area[:, None]
    H = unit[:, :, None] * unit[:, None, :] * (area * area / np.sqrt(area * area))[:, None, None]
    rows, cols = np.broadcast_to(F[:, :, None], H.shape), np.broadcast_to(F[:, None, :], H.shape)
    return (L - h * M) @ np.sin(V[:, 0]), from_triplets(rows, cols, H, (len(V), len(V)))


SETTINGS = [
    {"without": frozenset(off), "blocks": blocks, "lanes": lanes, "threads": threads}
    for off, blocks, (lanes, threads) in itertools.product(
        [*(c for k in range(4) for c in itertools.combinations(SWITCHES, k)), FAMILIES, (*FAMILIES, *SWITCHES)],
        (True, False), ((0, 3), (1, 1)),
    )
]  # fmt: skip


def name(settings):
    return "-".join([*sorted(settings["without"]), *(str(settings[k]) for k in ("blocks", "lanes", "threads"))])


@pytest.mark.parametrize("settings", SETTINGS, ids=name)
def test_results_stay_right(settings):
    x, S = geoopt.compile(program, V, F, 0.1, options=geoopt.Options(**settings))(V, 0.1)
    want_x, want_S = program(V, F, 0.1)
    np.testing.assert_allclose(x, want_x, rtol=1e-9, atol=1e-11)
    assert abs(S - want_S).max() < 1e-12


def report(**settings):
    return geoopt.compile(cotan_laplacian, *bumpy(3000), options=geoopt.Options(**settings)).report()


def operations(found):
    return sum(k["operations"] * max(k["members"], k["terms"]) for k in found["kernels"])


def test_switches_show_in_the_counts():
    full, no_global, no_memory = report(), report(without="global"), report(without="memory")
    assert operations(no_global) > 4 * operations(full) and no_global["workspace_bytes"] == 0
    assert no_memory["column_bytes"] > 1.5 * full["column_bytes"]
    assert no_memory["workspace_bytes"] > 1.3 * full["workspace_bytes"]
    assert len(report(blocks=False)["kernels"]) > len(full["kernels"])
    assert report(lanes=1)["lanes"] == 1


def test_a_program_says_what_is_off():
    text = str(geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(without={"memory", "sums"}, blocks=False)))
    assert "without memory, sums, blocks" in text


def test_values_out_of_range_are_refused():
    for bad in ({"t_ref": float("nan")}, {"unrolled_terms": -1}, {"t_complexity": -2}, {"without": {"typo"}}):
        with pytest.raises(geoopt.ArgumentError, match=next(iter(bad))):
            geoopt.Options(**bad)
