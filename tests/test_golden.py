"""Golden text of the kernels of two triangles: reviewed like code when it changes. ``make golden`` rewrites it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import geoopt
from geoopt.codegen import TARGETS
from geoopt.codegen.vectors import Vectors
from geoopt.meshes import bumpy, torus
from geoopt.operators import cotan_laplacian
from geoopt.pipeline import planned

from .conftest import two_triangles

GOLDEN = Path(__file__).parent / "golden"


def compare(path: Path, text: str, update: bool) -> None:
    if update:
        path.write_text(text)
    assert path.read_text() == text, f"{path.name} changed; if it should, run make golden and review the difference"


DOUBLE = np.dtype(np.float64)
TEXTS = {
    "expression": lambda found: str(found["sequences"].plan),
    "llvm": lambda found: TARGETS["cpu"](found["sequences"].plan, Vectors(4, DOUBLE)).text,
    "cuda": lambda found: TARGETS["cuda"](found["spread"], DOUBLE),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_kernels_of_two_triangles(kind, update_golden):
    found = {}
    device = "cuda" if kind == "cuda" else "cpu"
    planned(cotan_laplacian, *two_triangles(), device=device, watch=found.__setitem__)
    text = TEXTS[kind](found)
    compare(GOLDEN / f"cotan_two_triangles.{kind}.txt", text.rstrip() + "\n", update_golden)


@pytest.mark.parametrize("kind", ["cuda"])
def test_kernels_of_a_product(kind, update_golden):
    """L² of two triangles: sums of several terms."""
    found = {}
    options, L = geoopt.Options(unrolled_terms=0), cotan_laplacian(*two_triangles())[0]
    planned(lambda L: L @ L, L, device="cuda", options=options, watch=found.__setitem__)
    compare(GOLDEN / f"square_two_triangles.{kind}.txt", TEXTS[kind](found).rstrip() + "\n", update_golden)


@pytest.mark.parametrize("make", [torus, bumpy])
def test_kernels_of_a_closed_mesh_are_few(make):
    program = geoopt.compile(cotan_laplacian, *make(50_000))
    assert len(program.plan.kernels) <= 8
