"""What leaves a trace is an error of geoopt's that names a line of the user's, and what to do there instead."""

from __future__ import annotations

import fractions
import json
import operator
import statistics
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.sparse as sp
import scipy.spatial.transform

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import edges

V, F = bumpy(50)
E = edges(F)
TREE = scipy.spatial.cKDTree(V)


def size(V):
    return np.sum(np.linalg.norm(V[E[:, 0]] - V[E[:, 1]], axis=1))


def graph(V):
    lengths = np.linalg.norm(V[E[:, 0]] - V[E[:, 1]], axis=1)
    return sp.csr_array((lengths, (E[:, 0], E[:, 1])), (len(V), len(V)))


def doubled(V):
    while np.sum(V) < 1000:
        V = np.concatenate([V, V])
    return V


def ordered(V):
    return np.stack([np.stack(sorted([v[0], v[1], v[2]])) for v in V[:20]])


def above(V):
    return V[V[:, 2] > 0]


BEFORE, AROUND, INTEGERS, INDICES = "before, and give", "goes around a program", "integers are structure", "the indices"
REFUSED = {
    # SciPy, by what its modules are for
    "brentq": (lambda V: scipy.optimize.brentq(lambda s: s - size(V), 0, 1e3), AROUND),
    "bisect": (lambda V: scipy.optimize.bisect(lambda s: s - size(V), 0, 1e3), AROUND),
    "newton": (lambda V: scipy.optimize.newton(lambda s: s - size(V), 1.0), AROUND),
    "minimize": (lambda V: scipy.optimize.minimize(lambda s: np.sum((s - V[0]) ** 2), np.ones(3)).x, AROUND),
    "nnls": (lambda V: scipy.optimize.nnls(V, np.ones(len(V)))[0], AROUND),
    "linprog": (lambda V: scipy.optimize.linprog(V[0], A_ub=np.eye(3), b_ub=np.ones(3)).x, AROUND),
    "odeint": (lambda V: scipy.integrate.odeint(lambda y, t: -y, V[0], [0, 1.0]), AROUND),
    "dijkstra": (lambda V: sp.csgraph.dijkstra(graph(V)), BEFORE),
    "connected": (lambda V: sp.csgraph.connected_components(graph(V)), BEFORE),
    "tree": (lambda V: scipy.spatial.KDTree(V).query(V), BEFORE),
    "known tree": (lambda V: TREE.query(V), BEFORE),
    "kmeans": (lambda V: scipy.cluster.vq.kmeans(V, 3), BEFORE),
    "rotation": (lambda V: scipy.spatial.transform.Rotation.from_rotvec(V).as_matrix(), BEFORE),
    "lfilter": (lambda V: scipy.signal.lfilter([1.0], [1.0, 0.5], V[:, 0]), BEFORE),
    "spline": (lambda V: scipy.interpolate.CubicSpline(np.arange(len(V)), V[:, 0])(0.5), BEFORE),
    "cho_factor": (lambda V: scipy.linalg.cho_factor(V.T @ V), "solved by geoopt.solve"),
    "expm": (lambda V: scipy.linalg.expm(V[:3]), "solved by geoopt.solve"),
    # Python's own
    "json": (lambda V: json.dumps(V.tolist()), BEFORE),
    "struct": (lambda V: struct.pack("d", V[0, 0]), BEFORE),
    "mean": (lambda V: statistics.mean(V[:, 0]), BEFORE),
    "fraction": (lambda V: fractions.Fraction(V[0, 0]), "geoopt coverage"),
    "index": (lambda V: operator.index(V[0, 0]), INTEGERS),
    "range": (lambda V: range(V[0, 0]), INTEGERS),
    "list": (lambda V: [1, 2, 3][V[0, 0]], INTEGERS),
    "int": (lambda V: np.zeros(int(V.max())), INTEGERS),
    "entry": (lambda V: V[int(V[0, 0])], INTEGERS),
    "shape": (lambda V: V.reshape(V[0, 0]), INTEGERS),
    # branches
    "while": (doubled, "one step, and keep the loop"),
    "sorted": (ordered, r"np\.sort\(np\.stack"),
    "max by key": (lambda V: max(V, key=lambda v: v[2]), INDICES),
    "comprehension": (lambda V: np.stack([v for v in V if v[2] > 0.5]), INDICES),
    "element": (lambda V: np.stack([v[0] if v[0] > 0 else v[:2] for v in V]), r"np\.where\(condition, a, b\)"),
    # NumPy's
    "mask": (lambda V: F[V[F[:, 0], 0] > 0], "keep all rows"),
    "vectorize": (lambda V: np.vectorize(lambda x: x * 2)(V[:, 0]), "a loop"),
    "unique": (lambda V: np.unique(V), BEFORE),
    "percentile": (lambda V: np.percentile(V, 5), BEFORE),
    "lstsq": (lambda V: np.linalg.lstsq(V, V[:, 0])[0], "full rank"),
    "mask given back": (above, "the condition beside them"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_has_the_users_line_and_the_remedy_that_fits(name):
    function, remedy = REFUSED[name]
    with pytest.raises(geoopt.GeooptError, match=remedy) as caught:
        geoopt.compile(function, V)
    assert f"\n  at {__file__}:" in str(caught.value) and "geoopt.compile(function" not in str(caught.value)


def test_what_is_wrong_without_geoopt_as_well_stays_what_it_is():
    for function, kind in ((lambda V: [].pop(), IndexError), (lambda V: V * (1 // 0), ZeroDivisionError)):
        with pytest.raises(kind) as caught:
            geoopt.compile(function, V)
        assert not isinstance(caught.value, geoopt.GeooptError)


def test_triangles_of_floats_are_named():
    with pytest.raises(geoopt.TracingError, match=r"'F' is an array of floats, so it varies: give F\.astype\(int\)"):
        geoopt.jit(lambda V, F: V[F[:, 0]])(V, F.astype(float))


def test_lines_of_libraries_come_after_the_users(tmp_path, monkeypatch):
    """As if a folder were that of installed packages."""
    (tmp_path / "packaged.py").write_text("def largest(V):\n    return int(V.max())\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("geoopt.callers._INSTALLED", (*geoopt.callers._INSTALLED, str(tmp_path)))
    import packaged  # type: ignore[import-not-found]

    with pytest.raises(geoopt.BranchError) as caught:
        geoopt.compile(lambda V: V * packaged.largest(V), V)
    first, second = str(caught.value).splitlines()[1:3]
    assert f"at {__file__}:" in first and second.startswith(f"  in {tmp_path}") and "int(V.max())" in second


def test_a_line_that_doubles_the_paths_again_and_again_is_refused_soon():
    calls = []

    def rotations(V):
        calls.append(0)
        for f in F[:30]:
            yield U if np.linalg.det(U := V[f]) < 0 else -U

    start = time.perf_counter()
    with pytest.raises(geoopt.BranchError, match=r"30 times at one line[^$]*stacks of them") as caught:
        geoopt.compile(lambda V: np.stack(list(rotations(V))), V)
    assert len(calls) < 40 and time.perf_counter() - start < 30 and "if np.linalg.det" in str(caught.value)


QHULL = """
import numpy as np, scipy.interpolate as I, scipy.spatial as S, geoopt
from geoopt.meshes import bumpy

V, F = bumpy(50)
known = S.Delaunay(V[:, :2].copy(), incremental=True)
cases = [
    lambda V: S.ConvexHull(V).volume,
    lambda V: S.Delaunay(V[:, :2]).points,
    lambda V: S.Voronoi(points=V).points,
    lambda V: S.HalfspaceIntersection(np.array([[-1.0, 0, 0], [0, -1, 0], [1, 1, -4]]), V[0, :2]),
    lambda V: known.add_points(V[:, :2]),
    lambda V: I.griddata(V[:, :2], V[:, 2], np.ones((1, 2))),
    lambda V: I.LinearNDInterpolator(V[:, :2], V[:, 2]),
    lambda V: I.CloughTocher2DInterpolator(V[:, :2], V[:, 2]),
    *(lambda V, kind=kind: kind(*(V,) * n) for kind in {**vars(S), **vars(I)}.values()
      if isinstance(kind, type) and not issubclass(kind, Exception) for n in (1, 2)),
]
for case in cases[:8]:
    try:
        geoopt.compile(case, V)
    except geoopt.UnsupportedError as error:
        assert "before, and give the result as an argument" in str(error)
    else:
        raise AssertionError("not refused")
for case in cases[8:]:
    try:
        geoopt.compile(case, V)
    except (geoopt.GeooptError, TypeError, ValueError, IndexError):
        pass
assert S.ConvexHull(V).volume > 0
"""


def test_classes_that_read_memory_refuse_what_has_none():
    """In a process of its own: what fails here ends the interpreter."""
    ended = subprocess.run([sys.executable, "-c", QHULL], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("ask", [int, float, lambda x: np.unique(np.stack([x, x]))])
def test_code_that_makes_another_error_of_the_text_of_one_tells_it(ask):
    """As libraries do that add to messages: ``raise type(error)(str(error))``."""

    def asking(x):
        try:
            return ask(x[0])
        except Exception as error:
            raise type(error)(str(error)) from None

    with pytest.raises(geoopt.errors.TracingError) as whole:
        geoopt.compile(lambda x: ask(x[0]), np.ones(3))
    with pytest.raises(geoopt.errors.TracingError) as told:
        geoopt.compile(asking, np.ones(3))
    first, last = str(whole.value).splitlines()[0], str(whole.value).splitlines()[-1]
    assert str(told.value).splitlines()[0] == first and str(told.value).splitlines()[-1] == last


def test_functions_compiled_by_numba_are_refused():
    numba = pytest.importorskip("numba")
    with pytest.raises(geoopt.errors.TracingError, match="compiled code does not take unknown values"):
        geoopt.compile(numba.njit(lambda x: x + 1.0), np.ones(3))
