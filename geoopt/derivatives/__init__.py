"""`gradient`, `hessian` and their kin: functions of functions, on symbolic arrays and on floats alike.

On symbolic arguments they extend the graph that is being traced; on floats they trace a graph of their own and
evaluate it at once, for trying things out. `compile` makes them fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..block_ops import PROJECTIONS
from ..errors import ArgumentError
from .calls import Call, Wrt, derivative
from .curvature import sparse_hessian, sparse_jacobian
from .gradients import gradient as gradient
from .gradients import value_and_gradient as value_and_gradient
from .products import hessian_product as hessian_product
from .products import jvp as jvp
from .products import vjp as vjp


def hessian(function: Callable, wrt: Wrt = 0, triangle: str = "full", project: str | None = None) -> Callable:
    """The function that returns the second derivatives of a number as a sparse matrix of fixed pattern.

    function, wrt : as for `gradient`
    triangle : "full", or "lower" for the entries on and below the diagonal only
    project : "psd" makes the Hessian positive semidefinite, as Newton's method wants it: in the second derivatives of
        every element, up to 12 × 12, negative eigenvalues become zero. "abs" takes their absolute values. An element
        without eigenvalues that are negative by more than rounding errors stays as it is, to the last bit. Elements are
        the terms of sums over more than 16: shorter sums, as over coordinates, belong to one element.
    Returns a function of the same arguments. Its result has a row and a column for each entry of the argument, in the
    order of ``x.ravel()``, one argument after the other; a ``csr_array`` of floats. Entries are stored wherever the
    structure of the function allows a second derivative that is not zero.

    Second derivatives of the elements (triangles, edges, ...) behind the sums are computed once each, those that are
    symmetric once, and assembled. Sums that other sums depend on (normals of vertices) are eliminated by sparse
    products. Where that takes more than 2000 multiplications per row (and 20 million in all), as for the product of two
    sums over a mesh, the Hessian is dense by nature: UnsupportedError; use `hessian_product`.
    Raises ArgumentError for another triangle or projection, and as `gradient`.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> H = geoopt.hessian(geoopt.operators.dirichlet_energy)(V[:, 2], V, F)
    >>> L, M = geoopt.operators.cotan_laplacian(V, F)
    >>> np.allclose(H.toarray(), -L.toarray())  # ½ uᵀ (−L) u is the energy
    True
    """
    if triangle not in ("full", "lower"):
        raise ArgumentError(f'hessian(triangle={triangle!r}): choose "full" or "lower"')
    if project not in (None, *PROJECTIONS):
        raise ArgumentError(f"hessian(project={project!r}): choose None, {', '.join(map(repr, PROJECTIONS))}")

    def derived(call: Call) -> Any:
        return sparse_hessian(call.inner(function, "one number"), triangle == "lower", project)

    return derivative(function, "hessian", wrt, derived)


def jacobian(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the derivatives of an array as a sparse matrix of fixed pattern.

    function : returns one array f of floats;  wrt : as for `gradient`
    Returns a function of the same arguments. Its result has a row for each entry of ``f.ravel()`` and a column for each
    entry of ``x.ravel()``, one argument after the other; of a sparse matrix, for each stored value, row by row. Dense
    ones are refused, see `hessian`.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> J = geoopt.jacobian(geoopt.operators.face_areas)(V, F)
    >>> J.shape, J.nnz  # 80 triangles of 9 coordinates each
    ((80, 126), 720)
    >>> np.allclose(J @ V.ravel(), 2 * geoopt.operators.face_areas(V, F))
    True
    """

    def derived(call: Call) -> Any:
        return sparse_jacobian(call.inner(function, "one array"))

    return derivative(function, "jacobian", wrt, derived)
