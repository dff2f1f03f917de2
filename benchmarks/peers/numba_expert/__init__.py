"""Numba by hand: what an expert writes for one operator once the structure is known.

Everything that depends on the structure alone is computed beforehand: no triplets, no search, no allocation per call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

from .arap import arap as arap
from .arap import rotations as rotations
from .cloth_system import cloth_hessian as cloth_hessian
from .cloth_system import cloth_system as cloth_system
from .cotan import cotan as cotan
from .dirichlet import dirichlet as dirichlet
from .dirichlet import dirichlet_blocks as dirichlet_blocks
from .dual_laplacian import dual_laplacian as dual_laplacian
from .product import product as product
from .sparse import sparse as sparse
from .stencils import stencil as stencil


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Numba's own switch."""
    before = numba.get_num_threads()
    numba.set_num_threads(n)
    try:
        yield
    finally:
        numba.set_num_threads(before)
