"""Meshes that need no file, each told how many vertices it should have, about.

All have consistently oriented elements (triangles counter-clockwise seen from outside, tetrahedra of positive
volume) and an order in which neighbours are near each other. Sizes are in metres.
"""

from __future__ import annotations

import itertools

import numpy as np

from geoopt.errors import ArgumentError

Mesh = tuple[np.ndarray, np.ndarray]


def icosphere(vertices: int) -> Mesh:
    """The unit sphere: an icosahedron whose edges are split into k parts; 10 k² + 2 vertices, valence 6 and 5.

    vertices : how many, about.  Returns V (n, 3) [m] and F (m, 3), counter-clockwise seen from outside.
    Raises ArgumentError for fewer than 12 vertices.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> V.shape, F.shape
    ((42, 3), (80, 3))
    >>> np.allclose(np.linalg.norm(V, axis=1), 1)
    True
    """
    _at_least(vertices, 12)
    corners, faces = _icosahedron()
    k = max(round(np.sqrt((vertices - 2) / 10)), 1)
    i, j = (g.ravel() for g in np.meshgrid(np.arange(k + 1), np.arange(k + 1), indexing="ij"))
    inside = i + j <= k
    weights = np.stack([k - i - j, i, j], axis=1)[inside]
    number = np.full((k + 2, k + 2), -1)
    number[i[inside], j[inside]] = np.arange(len(weights))
    upward = _grid_triangles(number, [(0, 0), (1, 0), (0, 1)])
    downward = _grid_triangles(number, [(1, 0), (1, 1), (0, 1)])
    local = np.concatenate([upward, downward])
    # a point is the same on two faces when it has the same weights on the same corners
    salts = np.random.default_rng(1).integers(1, 2**60, 12, dtype=np.uint64)
    with np.errstate(over="ignore"):
        keys = (weights.astype(np.uint64)[None] * salts[faces][:, None, :]).sum(axis=2).ravel()
    points = np.einsum("pw,fwd->fpd", weights / k, corners[faces]).reshape(-1, 3)
    triangles = (local[None] + len(weights) * np.arange(20)[:, None, None]).reshape(-1, 3)
    V, F = _welded(points, triangles, keys)
    return V / np.linalg.norm(V, axis=1, keepdims=True), F


def torus(vertices: int, radius: float = 2.0, tube: float = 1.0) -> Mesh:
    """A torus around the z axis on a k × k grid; k² vertices, all of valence 6.

    vertices : how many, about;  radius, tube : of the circle, and around it [m]
    Returns V (n, 3) [m] and F (m, 3), counter-clockwise seen from outside.
    Raises ArgumentError for fewer than 9 vertices, and for sizes that are not positive.

    Examples
    --------
    >>> V, F = geoopt.meshes.torus(400, radius=3.0, tube=0.5)
    >>> V.shape, F.shape
    ((400, 3), (800, 3))
    >>> len(V) - len(geoopt.operators.edges(F)) + len(F)  # as of every torus
    0
    """
    _at_least(vertices, 9)
    _positive(radius=radius, tube=tube)
    k = max(round(np.sqrt(vertices)), 3)
    u, v = np.meshgrid(np.arange(k), np.arange(k), indexing="ij")
    a, b = 2 * np.pi * u.ravel() / k, 2 * np.pi * v.ravel() / k
    ring = radius + tube * np.cos(b)
    V = np.stack([ring * np.cos(a), ring * np.sin(a), tube * np.sin(b)], axis=1)
    number = u * k + v
    east, north = np.roll(number, -1, 0), np.roll(number, -1, 1)
    quads = np.stack([number, east, np.roll(east, -1, 1), north], axis=-1).reshape(-1, 4)
    return V, quads[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3).astype(np.int32)


def bumpy(vertices: int, seed: int = 0) -> Mesh:
    """A closed surface of sphere topology with bumps and irregular valence (3 to 8); 6 k² + 2 vertices.

    vertices : how many, about;  seed : of the diagonals, which are drawn at random
    Returns V (n, 3) [m] and F (m, 3), counter-clockwise seen from outside.
    Raises ArgumentError for fewer than 8 vertices.

    Examples
    --------
    >>> V, F = geoopt.meshes.bumpy(100)
    >>> V.shape, F.shape
    ((98, 3), (192, 3))
    >>> len(V) - len(geoopt.operators.edges(F)) + len(F)  # as of a sphere
    2
    """
    _at_least(vertices, 8)
    k = max(round(np.sqrt((vertices - 2) / 6)), 1)
    points, quads = _cube(k)
    keys = (points @ np.array([1, 2 * k + 3, (2 * k + 3) ** 2])).astype(np.int64)
    flip = np.random.default_rng(seed).random(len(quads)) < 0.5
    triangles = np.where(flip[:, None], quads[:, [1, 2, 3, 1, 3, 0]], quads[:, [0, 1, 2, 0, 2, 3]])
    P, F = _welded(points.astype(float), triangles.reshape(-1, 3), keys)
    P = np.tan(P / k * (np.pi / 4))  # equal angles make the quads of the projected cube more even
    P /= np.linalg.norm(P, axis=1, keepdims=True)
    x, y, z = P.T
    radius = 1 + 0.1 * np.sin(7 * x + 1) * np.cos(6 * y) + 0.06 * np.sin(11 * z - 2 * x) + 0.03 * np.cos(17 * y + 9 * z)
    return P * radius[:, None], F


def cloth(vertices: int, width: float = 1.0, height: float = 1.0) -> Mesh:
    """A flat rectangle in the plane z = 0 with alternating diagonals, from the origin on, and with a boundary.

    vertices : how many, about;  width, height : along x and y [m]
    Returns V (n, 3) [m], row by row along x, and F (m, 3), counter-clockwise seen from above.
    Raises ArgumentError for fewer than 4 vertices, and for sizes that are not positive.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25, width=2.0)
    >>> V.shape, F.shape
    ((28, 3), (36, 3))
    >>> print(round(geoopt.operators.surface_area(V, F), 6))
    2.0
    """
    _at_least(vertices, 4)
    _positive(width=width, height=height)
    columns = max(round(np.sqrt(vertices * width / height)), 2)
    rows = max(round(vertices / columns), 2)
    y, x = np.meshgrid(np.linspace(0, height, rows), np.linspace(0, width, columns), indexing="ij")
    V = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    number = np.arange(rows * columns).reshape(rows, columns)
    quads = np.stack([number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]], axis=-1)
    flip = (np.indices(quads.shape[:2]).sum(axis=0) % 2 == 1)[..., None]
    triangles = np.where(flip, quads[..., [1, 2, 3, 1, 3, 0]], quads[..., [0, 1, 2, 0, 2, 3]])
    return V, triangles.reshape(-1, 3).astype(np.int32)


def tetrahedral_ball(vertices: int) -> Mesh:
    """The unit ball in tetrahedra: a cube of k³ vertices, six tetrahedra per cell, mapped smoothly to the ball.

    vertices : how many, about.  Returns V (n, 3) [m] and T (m, 4), of positive volume.
    Raises ArgumentError for fewer than 8 vertices.

    Examples
    --------
    >>> V, T = geoopt.meshes.tetrahedral_ball(125)
    >>> V.shape, T.shape
    ((125, 3), (384, 4))
    >>> print(round(np.linalg.det(V[T[:, 1:]] - V[T[:, :1]]).sum() / 6, 2))  # of the ball, 4π / 3 = 4.19
    3.92
    """
    _at_least(vertices, 8)
    k = max(round(vertices ** (1 / 3)), 2)
    number = np.arange(k**3).reshape(k, k, k)
    cells = []
    for axes in itertools.permutations(range(3)):  # Kuhn's subdivision: one tetrahedron per order of the axes
        corner = np.zeros((4, 3), int)
        for step, axis in enumerate(axes):
            corner[step + 1 :, axis] += 1
        odd = np.linalg.det(corner[1:] - corner[0]) < 0
        path = [number[c[0] : c[0] + k - 1, c[1] : c[1] + k - 1, c[2] : c[2] + k - 1] for c in corner]
        cells.append(np.stack([path[0], path[2], path[1], path[3]] if odd else path, axis=-1))
    T = np.stack(cells, axis=-2).reshape(-1, 4).astype(np.int32)
    x, y, z = (g.ravel() for g in np.meshgrid(*[np.linspace(-1, 1, k)] * 3, indexing="ij"))
    squares = x * x, y * y, z * z

    def squeezed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.sqrt(1 - a / 2 - b / 2 + a * b / 3)

    xx, yy, zz = squares
    return np.stack([x * squeezed(yy, zz), y * squeezed(zz, xx), z * squeezed(xx, yy)], axis=1), T


def _at_least(vertices: int, least: int) -> None:
    if vertices < least:
        raise ArgumentError(f"asked for {vertices} vertices; this mesh needs at least {least}")


def _positive(**sizes: float) -> None:
    for name, size in sizes.items():
        if not 0 < size < np.inf:
            raise ArgumentError(f"{name} is {size}; give a positive number")


def _welded(points: np.ndarray, triangles: np.ndarray, keys: np.ndarray) -> Mesh:
    """Make points with equal keys one vertex; number vertices, and sort triangles, in bands from bottom to top."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    V = points[first]
    x, y, z = (V / np.linalg.norm(V, axis=1, keepdims=True)).T
    band = np.floor((z + 1) / 2 * np.sqrt(len(V)) / 2)
    order = np.lexsort((np.arctan2(y, x), band))
    rank = np.empty(len(V), np.int32)
    rank[order] = np.arange(len(V), dtype=np.int32)
    F = rank[inverse][triangles]
    return V[order], F[np.argsort(F.max(axis=1), kind="stable")]


def _grid_triangles(number: np.ndarray, steps: list[tuple[int, int]]) -> np.ndarray:
    """Triangles of a triangular grid, one per cell whose three corners exist."""
    k = number.shape[0] - 1
    corners = np.stack([number[a : a + k, b : b + k] for a, b in steps], axis=-1).reshape(-1, 3)
    return corners[(corners >= 0).all(axis=1)]


def _icosahedron() -> Mesh:
    g = (1 + np.sqrt(5)) / 2
    V = np.array([p for s in (1, -1) for t in (g, -g) for p in ((0, s, t), (s, t, 0), (t, 0, s))], float)
    near = np.linalg.norm(V[:, None] - V[None], axis=2) < 2.1
    F = [f for f in itertools.combinations(range(12), 3) if all(near[a, b] for a, b in itertools.combinations(f, 2))]
    outward = [f if np.linalg.det(V[list(f)]) > 0 else f[::-1] for f in F]
    return V, np.array(outward)


def _cube(k: int) -> Mesh:
    """The surface of the cube [-k, k]³ in steps of 2 as integer points and outward quads, face by face."""
    line = np.arange(-k, k + 1, 2)
    a, b = (g.ravel() for g in np.meshgrid(line, line, indexing="ij"))
    number = np.arange((k + 1) ** 2).reshape(k + 1, k + 1)
    quad = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], axis=-1).reshape(-1, 4)
    points, quads = [], []
    for axis, side in itertools.product(range(3), (-1, 1)):
        face = np.empty((len(a), 3), int)
        face[:, axis], face[:, (axis + 1) % 3], face[:, (axis + 2) % 3] = side * k, a, b
        points.append(face)
        quads.append((quad if side > 0 else quad[:, ::-1]) + len(a) * (len(points) - 1))
    return np.concatenate(points), np.concatenate(quads)
