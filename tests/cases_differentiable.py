"""What the tests of `geoopt.jax` and `geoopt.torch` share: a small mesh, functions, and every operator."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.sparse as sp

import geoopt
from geoopt import differentiable
from geoopt.differentiable import flattened
from geoopt.differentiable.runner import Runner
from geoopt.evaluate import evaluate
from geoopt.meshes import icosphere
from geoopt.operators import cotan_laplacian
from geoopt.trace import trace

from .cases_operators import CASES, SOLVING, case
from .conftest import is_thorough
from .test_operators_energies import ENERGIES

RNG = np.random.default_rng(3)
V, F = icosphere(12)
V = V + 0.05 * RNG.normal(size=V.shape)
L = sp.csr_array(cotan_laplacian(V, F)[0])
B = RNG.normal(size=len(V))


def poisson(V, b):
    L, M = cotan_laplacian(V, F)
    return geoopt.solve(M - 0.1 * L, M @ b)


def twice(A, x):
    return A @ (A @ x)


def near(got, want, tolerance=1e-9):
    want = np.asarray(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max(initial=1e-30))


def interpret(monkeypatch):
    """Programs are evaluated, and not compiled."""
    monkeypatch.setattr(differentiable, "compile", Interpreted)
    monkeypatch.setattr(flattened, "compile", Interpreted)


def watch_preparation(monkeypatch) -> list[str]:
    """The names of the functions whose programs are prepared from now on."""
    prepared = []
    for module in (differentiable, flattened):

        def watched(function, *arguments, compile=module.compile, **how):
            prepared.append(function.__name__)
            return compile(function, *arguments, **how)

        monkeypatch.setattr(module, "compile", watched)
    return prepared


def watch_runs(monkeypatch) -> list[Runner]:
    """The programs that are run from now on."""
    ran = []
    for name in ("__call__", "run_at"):
        run = getattr(Runner, name)
        monkeypatch.setattr(Runner, name, lambda self, *how, run=run: ran.append(self) or run(self, *how))
    return ran


class Interpreted:
    """A program that is not compiled, but evaluated: to compile all second derivatives takes minutes."""

    of_item = None

    def __init__(self, function, *examples, dtype, options):
        self.traced, self.signature = trace(function, examples)
        self.machine, self.dtype = self, np.dtype(dtype)
        self.output_shapes = tuple(o.shape for o in self.traced.outputs)

    def flat(self, array):
        return array

    def output(self, number, inputs):
        return np.empty(math.prod(self.output_shapes[number]))

    def run(self, inputs, outputs):
        for output, values in zip(outputs, evaluate(self.traced, inputs), strict=True):
            output[:] = np.ravel(values)


ALL = sorted({*CASES, *SOLVING, *ENERGIES} - {"L²", "stretch and shear", "arap_rhs with rims", "arap_energy with rims"})
NO_FLOATS = {"ArapMesh", "Cloth", "arap_mesh", "cloth", "edges", "interior_edges"}  # what makes structure
# to trace the second derivatives of the others takes 1 to 60 s each; they are of the thorough profile, see conftest.py
TWICE = {
    "mass_matrix",
    "edge_lengths",
    "face_areas",
    "face_normals",
    "vertex_normals",
    "stretch_shear_energy",
    "springs",
}
TWICE |= {"mean_curvature_flow", "harmonic", "area", "L V", "L³"}
IS_THOROUGH = is_thorough()


def operator(name):
    """A function and its arguments."""
    if name in ENERGIES:
        function, x, others = ENERGIES[name]
        return function, (x, *others)
    return case(name)


@dataclasses.dataclass
class Parts:
    lengths: object
    total: object


def many_forms(x, k):
    matrix = sp.csc_array((x, ([0, 1, 2], [1, 0, 2])), shape=(3, 3))
    return {"a": (x * k, 3.0), "b": Parts(np.sqrt(x), x.sum()), "c": [x > 1, 4, sp.eye(3, format="csr")], "d": matrix}
