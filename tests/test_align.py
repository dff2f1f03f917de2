"""Intermediates for a GPU: whole lines, in the order of the members that write them."""

from __future__ import annotations

import numpy as np
import pytest

from geoopt.align import LINE
from geoopt.meshes import bumpy
from geoopt.operators import arap_mesh, arap_rhs, cotan_laplacian

from .cases_operators import CASES, case, variables
from .conftest import gpu_stages


def plans(function, *arguments):
    """Before and after."""
    stages = gpu_stages(function, *arguments, assembly="gather")
    return stages["place"], stages["align"]


def intermediates(plan):
    return [(k, s.address) for k in plan.kernels for s in k.stores() if s.buffer == plan.workspace]


@pytest.mark.parametrize("name", CASES)
def test_every_value_is_read_where_it_was_written(name):
    function, arguments = case(name)
    placed, aligned = plans(function, *arguments)
    values = variables(arguments)
    inputs = [v.data if hasattr(v, "indptr") else v for v in values]
    for got, want in zip(*(plan.evaluate(inputs, plan.tasks) for plan in (aligned, placed)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_intermediates_begin_with_a_line():
    placed, aligned = plans(cotan_laplacian, *bumpy(600))
    assert any(a.offset % LINE for _, a in intermediates(placed))
    assert intermediates(aligned) and not any(a.offset % LINE for _, a in intermediates(aligned))
    assert aligned.workspace_size < placed.workspace_size + 5 * LINE


def test_what_sums_write_lies_in_the_order_of_their_members():
    """Members are sorted by the numbers of their terms; rotations of vertices lie as they come then."""
    V, F = bumpy(600)
    placed, aligned = plans(lambda P: arap_rhs(P, arap_mesh(V, F)), V)
    assert all(a.table is not None for k, a in intermediates(placed))
    assert all(a.is_sequential for k, a in intermediates(aligned))


def test_single_values_stay_together():
    """Those of serial code, thousands maybe, do not get a line each."""

    def serial(x):
        y = [x[0]]
        for i in range(1, 50):
            y.append(np.sqrt(y[-1] + x[i]))
        return np.stack(y)

    placed, aligned = plans(serial, np.ones(50))
    assert aligned.workspace_size <= placed.workspace_size + LINE
