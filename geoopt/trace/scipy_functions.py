"""SciPy's functions on symbolic arrays, of modules that have been loaded: nobody else loads them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..remedies import BEFORE
from ..symbolic import filters
from ..symbolic.dispatch import all_symbolic, is_symbolic, require_default
from ..symbolic.fillable import resolved
from .solving_functions import ANSWERS as OF_SOLVERS
from .solving_functions import SOLVERS


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    terms = np.exp(a - (largest := _finite_max(a, axis)))
    total = np.log(np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)) + largest
    return total if keepdims else np.squeeze(total, axis)


def _softmax(x: Any, axis: Any = None) -> Any:
    terms = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    below = x - _finite_max(x, axis)
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


def _finite_max(x: Any, axis: Any) -> Any:
    largest = np.max(x, axis=axis, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


def _block_diag(*arrs: Any) -> Any:
    blocks = [np.atleast_2d(a) for a in all_symbolic(*arrs)]
    rows = []
    for i, block in enumerate(blocks):
        rows.append([b if i == j else np.zeros((block.shape[0], b.shape[1])) for j, b in enumerate(blocks)])
    return np.block(rows)


def _cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.cholesky(a, upper=not lower)


_METRICS: dict[str, Callable[..., Any]] = {  # of differences of coordinates, and what each counts for
    "euclidean": lambda apart, w=1.0: np.sqrt(np.sum(w * (apart * apart), axis=-1)),
    "sqeuclidean": lambda apart, w=1.0: np.sum(w * (apart * apart), axis=-1),
    "cityblock": lambda apart, w=1.0: np.sum(w * np.abs(apart), axis=-1),
    "minkowski": lambda apart, p=2, w=1.0: np.sum(w * np.abs(apart) ** p, axis=-1) ** (1 / p),
    "chebyshev": lambda apart: np.max(np.abs(apart), axis=-1),
}


def _distances(apart: Any, metric: Any, given: dict[str, Any]) -> Any:
    if metric not in _METRICS:
        raise UnsupportedError(f"distances by {metric!r} are not supported", f"choose {', '.join(_METRICS)}")
    known = [*inspect.signature(_METRICS[metric]).parameters][1:]
    if others := given.keys() - set(known):
        remedy = f"give {' or '.join(known)}" if known else "leave it out"
        raise UnsupportedError(f"{metric} distances with {', '.join(sorted(others))}= are not supported", remedy)
    return _METRICS[metric](apart, **{name: value for name, value in given.items() if value is not None})


def _cdist(XA: Any, XB: Any, metric: Any = "euclidean", **given: Any) -> Any:
    first, second = all_symbolic(XA, XB)
    return _distances(first[:, None] - second[None], metric, given)


def _pdist(X: Any, metric: Any = "euclidean", **given: Any) -> Any:
    first, second = np.triu_indices(len(X), 1)
    return _distances(X[first] - X[second], metric, given)


def _squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """Distances of pairs to a matrix, with zeros on its diagonal, or back; ``checks`` asks for nothing here."""
    if force != "no":
        raise UnsupportedError(f"squareform with force={force!r} is not supported", "leave it out: the axes tell")
    if X.ndim == 2:
        return X[np.triu_indices(len(X), 1)]
    n = round((1 + np.sqrt(1 + 8 * len(X))) / 2)
    if n * (n - 1) // 2 != len(X):
        raise ShapeError(f"{len(X)} distances are not those of all pairs", "give n (n - 1) / 2 for n points")
    place = np.full((n, n), len(X))
    first, second = np.triu_indices(n, 1)
    place[first, second] = place[second, first] = np.arange(len(X))
    return np.concatenate([X, [0.0]])[place]


def _of_numpy(name: str, *taken: str, **always: Any) -> Callable:
    """NumPy's function of the same name, of the first argument and others taken; checking for NaN, and writing over
    arguments, asks for nothing. always : what NumPy has other defaults for"""

    def answer(*args: Any, **kwargs: Any) -> Any:
        signature = inspect.signature(getattr(sys.modules["scipy.linalg"], name))
        first, *others = signature.bind(*args, **kwargs).arguments.items()
        passed = {key: value for key, value in others if not key.startswith(("overwrite_", "check_"))}
        for key in passed.keys() - set(taken):
            require_default(f"scipy.linalg.{name}", key, passed.pop(key), signature)
        return getattr(np.linalg, name)(first[1], **passed, **always)

    return answer


ANSWERS: dict[str, dict[str, Callable]] = {
    "scipy.special": {"logsumexp": _logsumexp, "softmax": _softmax, "log_softmax": _log_softmax},
    "scipy.ndimage": filters.ANSWERS,
    "scipy.spatial.distance": {"cdist": _cdist, "pdist": _pdist, "squareform": _squareform},
    "scipy.linalg": {
        "block_diag": _block_diag,
        "cholesky": _cholesky,
        **{name: _of_numpy(name) for name in ("det", "eigh", "eigvalsh", "inv", "svdvals")},
        "norm": _of_numpy("norm", "ord", "axis", "keepdims"),
        "pinv": _of_numpy("pinv", rtol=None),
        "solve": _of_numpy("solve", "b"),
        "svd": _of_numpy("svd", "full_matrices", "compute_uv"),
    },
    **OF_SOLVERS,
}


_OF_QHULL = ("ConvexHull", "Delaunay", "HalfspaceIntersection", "Voronoi")


def guarded() -> list[tuple[type, str, Callable]]:
    """Methods of SciPy's classes that read the memory of what they are given, whatever that is; each with what refuses
    symbolic values."""
    return _guarded() if "scipy.spatial._qhull" in sys.modules else []


@functools.cache
def _guarded() -> list[tuple[type, str, Callable]]:
    classes = [getattr(sys.modules["scipy.spatial._qhull"], name) for name in _OF_QHULL]
    names = ("__init__", "add_points", "add_halfspaces")
    return [(c, name, _refusing(getattr(c, name))) for c in classes for name in names if name in vars(c)]


def _refusing(method: Callable) -> Callable:
    @functools.wraps(method)
    def substitute(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_symbolic([resolved(value) for value in (*args, *kwargs.values())]):
            what = f"scipy.spatial.{type(self).__name__} gives structure that depends on values"
            raise UnsupportedError(what, BEFORE)
        return method(self, *args, **kwargs)

    return substitute


def loaded() -> tuple[str, ...]:
    """The modules that are there."""
    return tuple(name for name in ANSWERS if name in sys.modules)


def of_scipy(modules: tuple[str, ...], in_python: bool) -> list[tuple[ModuleType, str, Callable, Callable]]:
    """Modules, names, functions, and what answers instead for symbolic values. in_python : those functions whose code
    can be replaced, as that of SciPy's solvers; else all others"""
    return [
        (sys.modules[module], name, function, ours)
        for module in modules
        for name, ours in ANSWERS[module].items()
        if (function := getattr(sys.modules[module], name))
        if in_python == (module == SOLVERS and type(function) is FunctionType and function.__closure__ is None)
    ]
