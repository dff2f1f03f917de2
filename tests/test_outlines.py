"""What texts of kernels depend on, and what programs therefore share."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.codegen.llvm import module, printed
from geoopt.codegen.vectors import Vectors
from geoopt.meshes import bumpy, cloth, icosphere
from geoopt.operators import arap_mesh, arap_rhs, cotan_laplacian, edges
from geoopt.pipeline import planned

from .conftest import outlines_of

DOUBLE = np.dtype(np.float64)
VECTORS = Vectors(4, DOUBLE, reads_what_it_writes=True)


def lengths(V, F):
    E = edges(F)
    return np.linalg.norm(V[E[:, 0]] - V[E[:, 1]], axis=1)


FUNCTIONS = {
    "cotan": cotan_laplacian,
    "arap": lambda V, F: arap_rhs(V, arap_mesh(V, F)),
    "lengths": lengths,
    "smoothed": lambda V, F: cotan_laplacian(V, F)[0] @ (cotan_laplacian(V, F)[0] @ V),
}


def outlines(function, mesh, dtype=DOUBLE):
    return outlines_of(planned(function, *mesh, options=geoopt.Options(lanes=4)).plan, dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_mesh_has_the_same_outlines(name):
    """Whose buffers have other sizes, whose intermediates lie elsewhere, and whose tables hold other numbers."""
    first, second = (set(outlines(FUNCTIONS[name], bumpy(n))) for n in (2500, 2700))
    assert first == second


@pytest.mark.parametrize("mesh", [bumpy(600), icosphere(642), cloth(700)], ids=["bumpy", "icosphere", "cloth"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_outlines_have_one_text(name, mesh):
    """So that none has to be printed again: nothing else is looked at."""
    known = {found: printed.__wrapped__(found, VECTORS) for found in outlines(FUNCTIONS[name], bumpy(2500))}
    for found in outlines(FUNCTIONS[name], mesh):
        assert printed.__wrapped__(found, VECTORS) == known.setdefault(found, printed(found, VECTORS))


def test_an_outline_tells_what_texts_depend_on():
    """The type of columns, whether buffers stay in cache, the signs of zeros."""
    one, other = (outlines(lambda x, y, c=c: np.copysign(x, c) + y, (np.ones(9), np.ones(9))) for c in (0.0, -0.0))
    assert one != other
    small, large = (outlines(lambda x: 2 * x, (np.ones(n),)) for n in (1 << 10, 1 << 21))
    assert small != large

    def permuted(n):
        order = np.random.default_rng(0).permutation(n)
        return outlines(lambda x: 2 * x[order], (np.ones(n),))

    short, long = permuted(1 << 9), permuted(1 << 18)
    assert short != long


def test_offsets_that_a_mesh_decides_are_of_arrays_not_of_texts():
    def parts(x, n):
        return x[:n] + x[n : 2 * n] * x[n + 1 : 2 * n + 1]

    found = [outlines(lambda x, n=n: parts(x, n), (np.ones(2 * n + 1),)) for n in (1000, 2000)]
    assert found[0] == found[1]
    assert [[first for _, first in kernel.places] for [kernel] in found] == [[0, 1000, 0], [0, 2000, 0]]


def test_programs_share_the_code_of_kernels():
    """Another function, on another mesh, has only those compiled that are new."""
    laplacian = geoopt.compile(cotan_laplacian, *bumpy(2500))
    both = geoopt.compile(lambda V, F: (cotan_laplacian(V, F), np.tan(V)), *bumpy(2700))
    new = both.machine.code.keys() - laplacian.machine.code.keys()
    assert len(new) == 1 < len(both.machine.code)
    V = bumpy(2700)[0]
    np.testing.assert_allclose(both(V)[1], np.tan(V), rtol=1e-13)


def test_short_texts_are_compiled_together():
    """A module takes some milliseconds, whatever is in it."""
    program = geoopt.compile(lambda x: tuple(np.sin(x[k:]) + k for k in range(0, 40, 2)), np.ones(50))
    assert len(program.machine.code) < len({kernel.size for kernel in program.machine.plan.kernels}) == 20


def test_a_module_names_each_function_once():
    texts = [printed(found, VECTORS) for found in outlines(cotan_laplacian, bumpy(2500))]
    text = module(texts)
    assert all(text.count(f"define void @k{n}(") == 1 for n in range(len(texts))) and "<kernel>" not in text
