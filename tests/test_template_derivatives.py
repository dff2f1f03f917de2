"""Second derivatives through what is affine in the leaves are those by the leaves, with fewer operations."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.derivatives.templates import Value, _hessian_of_leaves, _waist, hessian
from geoopt.meshes import bumpy
from geoopt.operators import cloth, cloth_system, stretch_shear_energy
from geoopt.template import Template, evaluate_template, operations

LEAVES = [0, 1, 2, 3]


def energies():
    """By name: an expression of four leaves and a fifth, which is fixed, and how wide its waist is."""
    template = Template()
    a, b, c, d, k = (Value(template, template.make("leaf", (), n)) for n in range(5))
    u, v = k * (a - b) + c, (c - d) / k
    return template, {
        "two numbers of four": (np.sqrt(u * u + v * v) * u, 2),
        "nested": (np.sqrt(u) * (u + d) * (u + d), 2),
        "a leaf among them": (u * u * np.sqrt(d), 2),
        "affine altogether": (2 * u - v, 1),
        "as many as leaves": (a * b + np.sqrt(c) * d, 4),
        "its own square": ((a - b) * (a - b), 1),
        "a divisor": (k / (a + b + c + d), 1),
    }


@pytest.mark.parametrize("name", energies()[1])
def test_the_hessian_is_the_same_through_the_waist(name):
    template, named = energies()
    energy, width = named[name]
    root = energy.expression
    assert len(_waist(root, set(LEAVES))) == width
    found, direct = hessian(template, root, LEAVES), _hessian_of_leaves(template, root, LEAVES)
    x = np.random.default_rng(4).uniform(0.5, 2, (5, 20))
    x[0] += 5  # so that what is under roots is positive
    keys = sorted(found.keys() | direct.keys())
    for key in keys:
        values = [
            evaluate_template([h[key]], lambda n, _: x[n], None)[0] if key in h else 0.0  # type: ignore[arg-type]
            for h in (found, direct)
        ]
        np.testing.assert_allclose(*np.broadcast_arrays(*values), rtol=1e-11, atol=1e-13)


def test_a_narrow_waist_saves_operations():
    template, named = energies()
    root = named["two numbers of four"][0].expression
    through, direct = hessian(template, root, LEAVES), _hessian_of_leaves(template, root, LEAVES)
    assert operations(list(through.values())) < operations(list(direct.values()))


def test_cloth_differentiated_takes_hardly_more_operations_than_derived_by_hand():
    V, F = bumpy(200)
    record = cloth(V, F, stretch_damping=0.0, shear_damping=0.0, bending=0.0, bend_damping=0.0, total_mass=1e-9)
    by_hand = geoopt.compile(lambda x: cloth_system(x, 0 * x, 1.0, record)[0], V)
    found = geoopt.compile(lambda x: geoopt.hessian(stretch_shear_energy)(x, record), V)
    most = [max(k["operations"] for k in p.report()["kernels"]) for p in (by_hand, found)]
    assert most[1] <= 1.2 * most[0] and most[1] <= 416
