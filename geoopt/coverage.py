"""What traced code may call: NumPy's, SciPy's and Python's public functions, and what becomes of each.

The rows are found by asking the tables by which calls are answered, so that they say what happens. ``python -m
geoopt.coverage`` prints the page of the documentation.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from . import remedies, symbolic
from .errors import ArgumentError
from .ops import BY_UFUNC
from .sparse import constructors
from .sparse.matrix import SparseMatrix
from .symbolic import Symbolic, special
from .symbolic import functions as _functions  # noqa: F401 - to import it makes NumPy's functions known
from .symbolic.dispatch import signature_of
from .symbolic.unknown import Refused
from .trace import numpy_functions, python_functions, scipy_functions, substitutes

State = Literal["supported", "refused", "without values"]
# functions that take arrays and do not ask these who answers; others of this kind make or describe structure
_TAKING_ARRAYS = ("asarray_chkfinite", "fromiter", "frompyfunc", "load", "loadtxt", "genfromtxt", "require")
_OF_SHAPES = (
    *("arange", "indices", "tri", "tril_indices", "triu_indices", "diag_indices", "broadcast_shapes", "mask_indices"),
)
_CALLING_OTHERS = ("asmatrix", "bmat", "fromfunction", "row_stack")  # which are answered
_OF_SCIPY = (  # of which few functions, and no classes, take symbolic values
    *("scipy.ndimage", "scipy.linalg", "scipy.sparse.linalg", "scipy.optimize", "scipy.integrate", "scipy.spatial"),
    *("scipy.spatial.transform", "scipy.interpolate", "scipy.fft", "scipy.signal", "scipy.sparse.csgraph"),
    *("scipy.cluster.vq", "scipy.cluster.hierarchy"),
)
_NOTES = {"scipy.sparse.csr_array.eliminate_zeros": "keeps the pattern"}
_OTHER_FUNCTIONS = (
    "of these there are the error functions, gamma, the logistic function, x log y and sums of exponentials"
)


@dataclass(frozen=True)
class Row:
    """One public function.

    state : "supported"; "refused", in an error of geoopt's; "without values": it takes and gives structure alone, and
    is what it always is
    note : of a supported one, the arguments that it does not take; of a refused one, what to do instead
    """

    module: str
    name: str
    state: State
    note: str = ""


def rows() -> list[Row]:
    """All of them, module by module."""
    found: list[Row] = []
    for module in ("numpy", "numpy.linalg", "numpy.fft"):
        found += _of_numpy(module)
    found += [Row("numpy.random", name, "supported", "drawn once, with a warning") for name in numpy_functions.DRAWING]
    found += _of_ufunc_methods()
    found += _of_class("numpy.ndarray", np.ndarray, Symbolic)
    found += [Row("builtins", name, "supported") for name in ("abs", "divmod", "max", "min", "pow", "round", "sum")]
    found += [Row("builtins", "bool", "supported", "the code is run along a path for either")]
    found += [Row("builtins", "float", "supported", "not in modules that ask `type(x) is float`")]
    found += [Row("builtins", "int", "refused", "leave it out: numbers stay symbolic; of conditions it is supported")]
    of_math = [name for name, f in vars(math).items() if callable(f) and not name.startswith("_")]
    found += _of_known("math", of_math, python_functions.OF_MATH, "write it with NumPy's functions")
    found += _of_sparse()
    found += _of_class("scipy.sparse.csr_array", sp.csr_array, SparseMatrix)
    special_known = special.FUNCTIONS.keys() | scipy_functions.ANSWERS["scipy.special"].keys()
    found += _of_known("scipy.special", _functions_of("scipy.special", of_ufuncs=True), special_known, _OTHER_FUNCTIONS)
    for module in _OF_SCIPY:
        names = _functions_of(module, of_classes=True)
        found += _of_known(module, names, scipy_functions.ANSWERS.get(module, ()), remedies.of_scipy(module))
    return found


def chosen(of: str = "", refused: bool = False) -> list[Row]:
    """The rows of a module, or whose full names have ``of`` as a part; raises ArgumentError where there are none."""
    listed = rows()
    found = [row for row in listed if row.module == of] or [r for r in listed if of in f"{r.module}.{r.name}"]
    found = [row for row in found if row.state == "refused" or not refused]
    if not found:
        raise ArgumentError(f"no function has {of!r} in its name; give a module such as numpy.linalg, or nothing")
    return found


def summary(found: list[Row]) -> str:
    """How many there are of each state."""
    counts = Counter(row.state for row in found)
    return ", ".join(f"{count} {state}" for state, count in counts.most_common())


def printed(found: list[Row], console: Console) -> None:
    """Tables for a terminal, one for each module."""
    for module in dict.fromkeys(row.module for row in found):
        table = Table("function", "", "", title=module, title_justify="left")
        for row in found:
            if row.module == module:
                table.add_row(row.name, row.state, row.note)
        console.print(table)
    console.print(summary(found))


def page(found: list[Row]) -> str:
    """Lists in Markdown, for each module by what becomes of a function."""
    lines = [
        "# What traced code may call",
        "",
        f"NumPy {np.__version__}, SciPy {scipy.__version__}: {summary(found)}.",
        "",
    ]
    for module in dict.fromkeys(row.module for row in found):
        mine = [row for row in found if row.module == module]
        lines += [f"## {module}", ""]
        for state in ("supported", "refused", "without values"):
            by_note: dict[str, list[str]] = {}
            for row in mine:
                if row.state == state:
                    by_note.setdefault(row.note, []).append(f"`{row.name}`")
            for note, names in sorted(by_note.items()):
                lines.append(f"- **{state}**{f' ({note})' if note else ''}: {', '.join(names)}")
        lines.append("")
    return "\n".join(lines).rstrip()


def _of_numpy(module: str) -> Iterator[Row]:
    home = importlib.import_module(module)
    for name in sorted(home.__all__):
        function = getattr(home, name)
        if isinstance(function, np.ufunc):
            yield Row(module, name, "supported") if _is_answered(function) else _refused(module, name)
        elif callable(function) and function in symbolic.FUNCTIONS:
            yield Row(module, name, "supported", _not_taken(function))
        elif name in (*numpy_functions.MAKING, *_CALLING_OTHERS):
            yield Row(module, name, "supported")
        elif isinstance(function, substitutes.DISPATCHING) or name in _TAKING_ARRAYS:
            yield _refused(module, name)
        elif inspect.isroutine(function) or name in _OF_SHAPES:
            yield Row(module, name, "without values")


def _is_answered(ufunc: np.ufunc) -> bool:
    return ufunc in BY_UFUNC or ufunc in symbolic.UFUNCS or (ufunc, "__call__") in symbolic.UFUNC_METHODS


def _refused(module: str, name: str) -> Row:
    called = f"{module}.{name}".replace("numpy", "np", 1)
    return Row(module, name, "refused", remedies.FOURIER if module == "numpy.fft" else remedies.of_numpy(called))


def _not_taken(function: Callable) -> str:
    """The arguments that what answers a function takes only as their defaults."""
    answer = symbolic.FUNCTIONS[function]
    ours = getattr(answer, "__wrapped__", None)
    if ours is None:
        return ""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    theirs = [p.name for p in signature_of(function, ours).parameters.values() if p.kind not in kinds]
    left_out = [name for name in theirs if name not in (*inspect.signature(ours).parameters, "dtype", "out")]
    return f"without {', '.join(left_out)}" if left_out else ""


def _of_ufunc_methods() -> Iterator[Row]:
    for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
        known = sorted({u.__name__ for u, m in symbolic.UFUNC_METHODS if m == method})
        yield Row("numpy.ufunc", method, "supported", f"of {', '.join(known)}")


def _of_class(called: str, theirs: type, ours: type) -> Iterator[Row]:
    for name in sorted(n for n in dir(theirs) if not n.startswith("_")):
        is_there = hasattr(ours, name) and not isinstance(getattr(ours, name), Refused)
        kind: Any = "supported" if is_there else "refused"
        note = _NOTES.get(f"{called}.{name}", "") if is_there else remedies.of_numpy(f"x.{name}")
        yield Row(called, name, kind, note)


def _of_sparse() -> Iterator[Row]:
    for name in _functions_of("scipy.sparse", of_classes=True):
        function = getattr(sp, name)
        if inspect.isclass(function):
            is_made = hasattr(function, "format") or issubclass(function, (sp.sparray, sp.spmatrix))
            yield Row("scipy.sparse", name, "supported" if is_made else "without values")
        elif name in constructors.FUNCTIONS:
            yield Row("scipy.sparse", name, "supported")
        elif name.startswith(("eye", "identity", "rand", "get_index", "is", "load", "save", "safely")):
            yield Row("scipy.sparse", name, "without values")
        else:
            yield Row("scipy.sparse", name, "refused", remedies.MATRICES)


def _of_known(module: str, names: Iterable[str], known: Container[str], remedy: str) -> Iterator[Row]:
    """Functions of which the known ones are supported."""
    for name in names:
        yield Row(module, name, "supported") if name in known else Row(module, name, "refused", remedy)


def _functions_of(module: str, of_classes: bool = False, of_ufuncs: bool = False) -> list[str]:
    home = importlib.import_module(module)
    public = {name: getattr(home, name) for name in sorted(home.__all__) if not name.startswith("_")}
    return [
        name
        for name, f in public.items()
        if inspect.isroutine(f) or (of_classes and _is_data(f)) or (of_ufuncs and isinstance(f, np.ufunc))
    ]


def _is_data(kind: Any) -> bool:
    """Whether it is a class, and none of errors."""
    return inspect.isclass(kind) and not issubclass(kind, BaseException)


if __name__ == "__main__":
    print(page(rows()))
