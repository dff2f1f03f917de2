"""Forces in a cloth, their energy, and the linear system of an implicit time step."""

from __future__ import annotations

from typing import Any

import numpy as np

import geoopt
from geoopt.sparse import from_triplets, triplets

from .cloth import Cloth
from .topology import beside


def cloth_forces(x: Any, v: Any, cloth: Cloth) -> Any:
    """Forces (n, 3) [N] of stretch, shear, bending, their damping, and gravity.

    x : (n, 3) positions [m];  v : (n, 3) velocities [m/s];  cloth : from `cloth`.
    Conditions per triangle: stretch C_c = area (|J_c| − 1) along both axes of the rest plane, shear
    C = area J_0·J_1; each pulls by −∂C/∂x (stiffness C + damping Ċ). Bending is linear. Baraff & Witkin 1998; bending
    as Bergou et al. 2006.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> cloth = geoopt.operators.cloth(V, F, total_mass=2.0)
    >>> f = geoopt.operators.cloth_forces(V, np.zeros_like(V), cloth)
    >>> np.allclose(f.sum(axis=0), [0, 0, -2.0 * 9.81])  # its weight [N]
    True
    """
    J = _deformation(x, cloth)
    along, across = _pulls(J, _deformation(v, cloth), cloth)
    bend = cloth.bend @ (cloth.bending * x + cloth.bend_damping * v)
    return _summed(J, along, across, cloth, x.shape[0]) + bend + cloth.mass * cloth.gravity


def stretch_shear_energy(x: Any, cloth: Cloth) -> Any:
    """The energy ½ Σ stiffness C² of stretch and shear in a cloth; see `cloth_forces`.

    x : (n, 3) positions [m];  cloth : from `cloth`.
    Returns a number [J], 0 at rest. Minus its gradient are the forces without bending, damping and gravity. Baraff &
    Witkin 1998.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> cloth = geoopt.operators.cloth(V, F)
    >>> energies = [geoopt.operators.stretch_shear_energy(x, cloth) for x in (V, V[:, [1, 2, 0]], 1.1 * V)]
    >>> np.round(energies, 6)  # at rest, turned, and stretched [J]
    array([0.  , 0.  , 0.25])
    """
    J = _deformation(x, cloth)
    along, across = _stretch(J, cloth), _shear(J, cloth)
    return 0.5 * (cloth.stretch * np.sum(along * along) + cloth.shear * np.sum(across * across))


def cloth_system(x: Any, v: Any, h: Any, cloth: Cloth, definite: bool = False, lower: bool = False) -> tuple[Any, Any]:
    """The linear system A v_next = b of an implicit Euler step of length h [s]; then x_next = x + h v_next.

    x, v : (n, 3) positions [m] and velocities [m/s];  cloth : from `cloth`.
    Returns A, sparse (3n, 3n), and b (3n,), degrees of freedom in the order of ``x.ravel()``: 3 i + p for axis p of
    vertex i. A = M − h (D + h K) [kg] and b = M v + h (F − D v) [N s] with the forces F, D = ∂F/∂v and K = ∂F/∂x, both
    symmetric and near rest negative semidefinite, so that A is positive definite there. K leaves out the derivative
    of damping that is not symmetric. Baraff & Witkin 1998.
    definite : leave out of K what compression and shear add to it that is not negative semidefinite: A is positive
    definite at all positions and velocities, the forces are the same.
    lower : A is the lower triangle alone, of all entries with row ≥ column.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> A, b = geoopt.operators.cloth_system(V, np.zeros_like(V), 0.01, geoopt.operators.cloth(V, F))
    >>> A.shape, np.allclose(A.toarray(), A.T.toarray())
    ((75, 75), True)
    >>> bool((np.linalg.eigvalsh(A.toarray()) > 0).all())  # at rest
    True
    """
    n = x.shape[0]
    J = _deformation(x, cloth)
    along, across = _pulls(J, _deformation(v, cloth), cloth)
    # the blocks h (D + h K) of a triangle, first by the columns of J, then by its corners
    H = _stiffness(J, along, across, h, cloth, definite)
    blocks = np.einsum("mjd,midpq->mijpq", cloth.B, np.einsum("mic,mcdpq->midpq", cloth.B, H))
    diagonal = beside(cloth.F, np.arange(n))
    M = cloth.mass * _on_axes(from_triplets(diagonal, diagonal, np.ones(n), (n, n)))
    bend = _on_axes(h * (cloth.bend_damping + h * cloth.bending) * cloth.bend, lower)
    A = M - _assembled(blocks, cloth, n, lower) - bend
    # D v are the forces of damping, so that F − D v are the forces without it
    along, across = cloth.stretch * _stretch(J, cloth), cloth.shear * _shear(J, cloth)
    forces = _summed(J, along, across, cloth, n) + cloth.bend @ (cloth.bending * x)
    b = cloth.mass * v + h * (forces + cloth.mass * cloth.gravity)
    return A, b.reshape(3 * n)


def cloth_step(x: Any, v: Any, h: Any, cloth: Cloth, held: Any = (), definite: bool = True) -> tuple[Any, Any]:
    """Positions and velocities after an implicit Euler step of length h [s].

    x, v : (n, 3) positions [m] and velocities [m/s];  cloth : from `cloth`
    held : numbers of vertices that stay where they are;  definite : see `cloth_system`
    Returns ``(x + h v_next, v_next)``, both (n, 3) [m], [m/s]. Baraff & Witkin 1998.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> cloth = geoopt.operators.cloth(V, F)
    >>> x, v = geoopt.operators.cloth_step(V, np.zeros_like(V), 0.1, cloth)
    >>> np.allclose(v, [0, 0, -0.981])  # [m/s], after a tenth of a second of free fall
    True
    >>> x, v = geoopt.operators.cloth_step(V, np.zeros_like(V), 0.1, cloth, held=[0, 4])
    >>> np.allclose(x[[0, 4]], V[[0, 4]])
    True
    """
    A, b = cloth_system(x, v, h, cloth, definite)
    fixed = 3 * np.asarray(held, int)[:, None] + np.arange(3)
    v = geoopt.solve(A, b, fixed=fixed.ravel()).reshape(x.shape)
    return x + h * v, v


def _deformation(x: Any, cloth: Cloth) -> Any:
    """J (m, 2, 3): the images of the two axes of the rest planes."""
    return np.einsum("mic,mip->mcp", cloth.B, x[cloth.F])


def _stretch(J: Any, cloth: Cloth) -> Any:
    return cloth.area[:, None] * (np.linalg.norm(J, axis=2) - 1)


def _shear(J: Any, cloth: Cloth) -> Any:
    return cloth.area * np.sum(J[:, 0] * J[:, 1], axis=1)


def _pulls(J: Any, rate: Any, cloth: Cloth) -> tuple[Any, Any]:
    """stiffness C + damping Ċ of stretch (m, 2) and of shear (m,); rate : (m, 2, 3) the time derivative of J."""
    along = cloth.area[:, None] * np.sum(_unit(J) * rate, axis=2)
    across = cloth.area * np.sum(J[:, ::-1] * rate, axis=(1, 2))
    return (
        cloth.stretch * _stretch(J, cloth) + cloth.stretch_damping * along,
        cloth.shear * _shear(J, cloth) + cloth.shear_damping * across,
    )


def _unit(J: Any) -> Any:
    return J / np.linalg.norm(J, axis=2)[:, :, None]


def _summed(J: Any, along: Any, across: Any, cloth: Cloth, n: int) -> Any:
    """Forces (n, 3) of the triangles, −∂C/∂x times what pulls, at the vertices."""
    stress = cloth.area[:, None, None] * (along[:, :, None] * _unit(J) + across[:, None, None] * J[:, ::-1])
    on_corners = -np.einsum("mic,mcp->mip", cloth.B, stress)
    m = len(cloth.F)
    corners = from_triplets(cloth.F.ravel(), np.arange(3 * m), np.ones(3 * m), (n, 3 * m))
    return corners @ on_corners.reshape(3 * m, 3)


def _stiffness(J: Any, along: Any, across: Any, h: Any, cloth: Cloth, definite: bool) -> Any:
    """h (D + h K) of triangles (m, 2, 2, 3, 3), by two columns of J and their axes.

    D and h K share −∂C ∂Cᵀ; K has −pull ∂²C besides: with u = J_c / |J_c|, that of stretch is
    area (1 − u uᵀ) / |J_c| in column c, that of shear is area 1 between the columns.
    """
    stretch = h * (cloth.stretch_damping + h * cloth.stretch) * cloth.area**2
    shear = h * (cloth.shear_damping + h * cloth.shear) * cloth.area**2
    bent = h**2 * cloth.area[:, None] * (np.maximum(along, 0.0) if definite else along) / np.linalg.norm(J, axis=2)
    twisted = h**2 * cloth.area * across
    unit, identity = _unit(J), beside(cloth.F, np.eye(3))
    own = (stretch[:, None] - bent)[..., None, None] * unit[:, :, :, None] * unit[:, :, None, :]
    both = shear[:, None, None, None, None] * J[:, ::-1, None, :, None] * J[:, None, ::-1, None, :]
    if definite:  # the positive semidefinite half of (0 t; t 0)
        bent, twisted = bent + 0.5 * np.abs(twisted)[:, None], 0.5 * twisted
    own = own + bent[..., None, None] * identity
    between = twisted[:, None, None] * identity
    rows = [[own[:, 0], between], [between, own[:, 1]]]
    return -both - np.stack([np.stack(row, axis=1) for row in rows], axis=1)


def _assembled(blocks: Any, cloth: Cloth, n: int, lower: bool) -> Any:
    """The (3n, 3n) matrix of the blocks (m, 3, 3, 3, 3) of triangles, by corners and their axes."""
    place = 3 * cloth.F[:, :, None] + beside(cloth.F, np.arange(3))
    rows = np.broadcast_to(place[:, :, None, :, None], blocks.shape)
    cols = np.broadcast_to(place[:, None, :, None, :], blocks.shape)
    return _from_triplets(rows, cols, blocks, 3 * n, lower)


def _on_axes(matrix: Any, lower: bool = False) -> Any:
    """The matrix (n, n) on each of the three axes: (3n, 3n)."""
    *places, values = triplets(matrix)
    rows, cols = (3 * index[:, None] + np.arange(3) for index in places)
    values = np.repeat(values[:, None], 3, axis=1)
    return _from_triplets(rows, cols, values, 3 * matrix.shape[0], lower)


def _from_triplets(rows: np.ndarray, cols: np.ndarray, values: Any, size: int, lower: bool) -> Any:
    """Triplets of a square matrix, or those of its lower triangle, summed."""
    kept = rows >= cols if lower else ...
    return from_triplets(rows[kept], cols[kept], values[kept], (size, size))
