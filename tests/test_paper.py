"""The worked examples of Herholz et al. 2022, literally."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.template import listing

NUMBERS = (0.3, 0.7, 1.1, 1.9)


def toy(a, b, c, d):
    """Section 4.2.3: three expressions of different structure, one member each."""
    return (
        np.sqrt(a * a + b * b) + a,
        c * (a + d) * np.sqrt(a * a + b * b) + c * (a + d) + np.sin(a + d),
        a * a + b * b + a * b,
    )


def kernels(function, *arguments, **options):
    """Level and template of every kernel; r is memory between kernels, out the result, a, b, c, d the arguments."""
    seen = {}
    program = geoopt.compile(function, *arguments, options=geoopt.Options(**options), watch=seen.__setitem__)
    np.testing.assert_allclose(program(*arguments), function(*arguments), rtol=1e-14)
    plan = seen["place"]

    def name(address):
        if address.buffer < 4:
            return "abcd"[address.buffer]
        return f"{'r' if address.buffer == plan.workspace else 'out'}[{address.offset}]"

    found = []
    for kernel in plan.kernels:
        reads = [name(a) for a in kernel.reads]
        text = listing(list(kernel.roots), lambda i, reads=reads: reads[i]).splitlines()
        for i, places in enumerate(kernel.writes):
            text = [line.replace(f"y{i} =", f"{name(places[0].address)} =") for line in text]
        found.append((kernel.level, text))
    return found


def test_global_and_local_decomposition():
    found = kernels(toy, *NUMBERS, blocks=False, t_complexity=0)
    assert found == [
        (1, ["r[0] = ((a * a) + (b * b))"]),  # i1
        (2, ["r[1] = sqrt(r[0])"]),  # i2
        (2, ["out[2] = (r[0] + (a * b))"]),  # k3
        (3, ["out[0] = (a + r[1])"]),  # k1
        (3, ["r0 = (a + d)", "r1 = (r0 * c)", "out[1] = (r1 + (sin(r0) + (r[1] * r1)))"]),  # k2
    ]


def test_without_a_complexity_threshold_nothing_cheap_is_merged_and_with_one_it_is():
    assert len(kernels(toy, *NUMBERS, blocks=False, t_complexity=0)) == 5
    assert len(kernels(toy, *NUMBERS, blocks=False, t_complexity=10)) == 4  # sqrt stays, a*a + b*b is merged
    assert len(kernels(toy, *NUMBERS, blocks=False, t_complexity=1000)) == 3


def test_blocks_are_found_without_tags():
    assert len(kernels(toy, *NUMBERS)) == 1


def test_a_tagged_block_is_one_kernel():
    def untagged(a, b, c, d):
        y = np.sqrt(a * a + b * b)
        return np.stack([b * y + a, a * y + b])

    def with_tag(a, b, c, d):
        y = np.sqrt(a * a + b * b)
        first, second = geoopt.block(np.stack([b * y + a]), np.stack([a * y + b]))
        return np.concatenate([first, second])

    options = {"blocks": False, "t_complexity": 4}
    assert ["r[0] = sqrt(((a * a) + (b * b)))"] in [t for _, t in kernels(untagged, *NUMBERS, **options)]
    [(_, text)] = kernels(with_tag, *NUMBERS, **options)
    assert len(text) == 3 and text[0] == "r0 = sqrt(((a * a) + (b * b)))"


def trees(v):
    """Figure 4 and appendix B: two structurally equivalent trees."""
    a, b, c, d = (v[i] for i in range(4))
    return [(b + b) * (2 + a) + 3.1 * a, (c + c) * (2 + d) + 2.7 * d]


def test_the_leaf_table():
    lines = geoopt.view(trees, np.ones(4), stage="harvest").splitlines()
    assert lines[:2] == ["kernel 0: level 1, 2 members", "y0 = ((x0 * c0) + ((x1 + x1) * (x0 + 2)))"]
    table = [line.split() for line in lines[2:]]
    assert table[0] == ["l0", "l1", "l2", "l3", "l4", "l5"]
    a, b, c, d = (f"v[{i}]" for i in range(4))
    assert table[1] == ["member", "0", a, "3.1", b, b, a, "2"]
    assert table[2] == ["member", "1", d, "2.7", c, c, d, "2"]
    assert table[3] == ["x0", "c0", "x1", "x1", "x0", "2"]
    assert table[4:] == [["x0", "c0", "x1"], ["member", "0", a, "3.1", b], ["member", "1", d, "2.7", c]]


@pytest.mark.parametrize("power", [2, 3])
def test_powers_of_a_laplacian(power):
    """Table 3: 21 kernels for the third power; an irregular closed mesh."""
    L, _ = cotan_laplacian(*bumpy(800))
    function = (lambda L: L @ L) if power == 2 else (lambda L: L @ L @ L)
    program = geoopt.compile(function, L)
    assert len(program.plan.kernels) <= 22
    assert abs(program(L) - function(L)).max() < 1e-12 * abs(function(L)).max()
