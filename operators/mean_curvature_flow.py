"""Mean-curvature flow of a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

import geoopt
from geoopt.numeric import Numeric

from .cotan_laplacian import cotan_laplacian
from .topology import unreferenced


def mean_curvature_flow(V: Numeric, F: np.ndarray, time: Any) -> Any:
    """Vertex positions after an implicit step along the mean-curvature normals: (M − time L) V_next = M V.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles
    time : length of the step [m²]; features smaller than its square root are smoothed away
    Returns V_next (n, 3) [m]; vertices without triangles stay where they are.
    Desbrun, Meyer, Schröder & Barr 1999, Implicit fairing of irregular meshes using diffusion and curvature flow.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(642)
    >>> W = geoopt.operators.mean_curvature_flow(V, F, 0.01)
    >>> print(round(np.linalg.norm(W, axis=1).mean(), 2))  # [m]: a sphere shrinks by 2 time / radius
    0.98
    """
    L, M = cotan_laplacian(V, F)
    alone = unreferenced(F, V.shape[0])
    return geoopt.solve(M - time * L, M @ V, fixed=alone, values=V[alone])
