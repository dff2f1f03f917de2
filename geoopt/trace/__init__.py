"""Stage `trace`: run NumPy-style code on symbolic arguments, once for each of its paths.

Takes: a function and example arguments.
Gives: `Traced`, the graph behind every array of the result.
Ensures: the number of nodes depends on the code, not on the mesh; equal nodes are one.
Paper: symbolic program execution; memoised constructors (DAG compression).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import remedies
from ..callers import is_installed, scipy_remedy
from ..errors import (
    ArgumentError,
    BranchError,
    GeooptError,
    MissingAttributeError,
    TracingError,
    none_swallowed,
    unsupported,
)
from ..graph import Graph, Node, Traced
from ..signature import Argument, Signature
from ..sparse.matrix import stand_in
from ..symbolic import Symbolic, aliases, floats, guards, kinds, symbolic
from ..symbolic import functions as _functions  # noqa: F401 - to import it makes NumPy's functions known
from .both_sides.functions import Rewritten
from .both_sides.while_loops import GIVEN_UP
from .branches import as_given, chosen_result, is_raised_by_user, unchanged
from .interrupts import allowed
from .results import flatten
from .scipy_functions import loaded
from .substitutes import ask, substituted


def is_tracing() -> bool:
    """Whether this thread runs code on symbolic arguments: its stack tells, also after interrupts."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _traced.__code__:
            return True
        frame = frame.f_back
    return False


@dataclass(frozen=True)
class Fixed:
    """A floating-point argument that is part of the program: see `fixed`."""

    value: Any


def fixed(value: Any) -> Fixed:
    """Mark a floating-point argument of `compile` as structure: its values become constants.

    Rest shapes and stiffness tables are typical; the compiler folds what depends on them alone.

    Examples
    --------
    >>> rest, F = geoopt.meshes.icosphere(42)
    >>> moved = geoopt.compile(lambda x, X: np.sum((x - X) ** 2), rest, geoopt.fixed(rest))
    >>> print(round(moved(1.1 * rest), 6))  # of x alone: 42 vertices have moved by 0.1
    0.42
    """
    return Fixed(value)


def block(*arrays: Any) -> Any:
    """Tag arrays as a block: one kernel evaluates all their values of a mesh element, shared values once.

    geoopt finds blocks by itself; the tag is for the author who wants to insist. On numbers it does nothing.
    Returns its arguments. Paper: explicit intermediate tagging.

    Examples
    --------
    >>> tagged = geoopt.compile(lambda x: geoopt.block(x[1:] - x[:-1], x[1:] + x[:-1]), np.ones(6))
    >>> apart = geoopt.compile(lambda x: (x[1:] - x[:-1], x[1:] + x[:-1]), np.ones(6))
    >>> len(tagged.plan.kernels), len(apart.plan.kernels)
    (1, 2)
    """
    tagged = [a for a in arrays if isinstance(a, Symbolic)]
    if tagged:
        tagged[0].graph.blocks.append(tuple(a.ids for a in tagged))
    return arrays if len(arrays) != 1 else arrays[0]


def trace(function: Callable, arguments: tuple, keywords: dict | None = None) -> tuple[Traced, Signature]:
    """Run ``function`` on symbolic stand-ins for its floating-point arguments; once more, and both sides of its
    branches, where these are too many to follow."""
    with GIVEN_UP.of_one_trace():
        return _trace(function, arguments, keywords)


def _trace(function: Callable, arguments: tuple, keywords: dict | None) -> tuple[Traced, Signature]:
    is_first, rewritten = True, Rewritten()
    refusal: BranchError | None = None
    while True:
        wanted, known = len(floats.WANTED), loaded()
        try:
            with (
                nullcontext() if is_first else unchanged(),
                rewritten.installed(),
                guards.outside(),
                aliases.of_one_trace(),
            ):
                found = _traced(function, arguments, keywords)
        except BaseException as error:
            if isinstance(error, BranchError) and error.code and rewritten.add(error.code):
                refusal = error
                GIVEN_UP.running.clear()
            elif isinstance(error, Exception) and GIVEN_UP.add():
                pass
            elif refusal and _is_of_both_sides(error):
                raise refusal from error
            else:
                if isinstance(error, kinds.OF_TYPES):
                    kinds.ask(error)
                    ask(error)
                # also where the code has loaded what now is answered for
                if len(floats.WANTED) == wanted and loaded() == known and not isinstance(error, floats.Again):
                    raise
        else:
            if len(floats.WANTED) == wanted:  # else the code has caught `Again`
                return found
        is_first = False


def _is_of_both_sides(error: BaseException) -> bool:
    """Whether an error may come of a side that is run and that no value takes, such as an endless recursion."""
    return isinstance(error, Exception) and not (isinstance(error, GeooptError) or is_raised_by_user(error))


def _traced(function: Callable, arguments: tuple, keywords: dict | None) -> tuple[Traced, Signature]:
    graph = Graph()
    names = argument_names(function, arguments)
    found: list[tuple[Argument, Node]] = []
    positional = [_stand_in(graph, n, a, found) for n, a in zip(names, arguments, strict=True)]
    named = {n: _stand_in(graph, n, a, found) for n, a in (keywords or {}).items()}
    stand_ins: dict[str, Any] = {}

    def run() -> Any:
        args, kwargs = [make() for make in positional], {n: make() for n, make in named.items()}
        stand_ins.update({**dict(zip(names, args, strict=True)), **kwargs})
        with substituted(function), none_swallowed(), allowed():
            return function(*args, **kwargs)

    try:
        result, paths = chosen_result(graph, run)
    except Exception as error:
        if ours := _in_our_words(error):
            raise ours from (None if ours is error.__cause__ else error)
        raise
    if result is None:
        raise _returns_nothing(function, stand_ins)
    arrays: list[Symbolic] = []
    parts, numbers, comparisons = flatten(result, arrays, function)
    graph.finish()
    graph.given, graph.values = {}, None
    taken = tuple(argument for argument, _ in found)
    signature = Signature(_label(function), taken, parts, numbers, comparisons, paths)
    return Traced(graph, tuple(n for _, n in found), tuple(a.ids for a in arrays)), signature


def _in_our_words(error: Exception) -> Exception | None:
    """What says why symbolic values do not do, of an error whose own words do not; None for all others."""
    if isinstance(error, GeooptError):
        return None
    if isinstance(error.__cause__, TracingError) and _hides_its_cause(error):
        return error.__cause__
    if isinstance(error, AttributeError):
        if not isinstance(error.obj, Symbolic) or str(error.name).startswith("_"):
            return None
        if hasattr(np.float64, str(error.name)):  # as it is where a number stands in for one
            return unsupported(f"x.{error.name}", MissingAttributeError, error)
        what = f"NumPy's arrays have no attribute {error.name!r}"
        return MissingAttributeError(what, "NumPy refuses this, too", error)
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if remedy := scipy_remedy(error):
        return TracingError(f"SciPy refuses this call: {said}", f"if a value is symbolic: {remedy}", error)
    if _is_of_compiled_code(error):
        what = f"compiled code does not take unknown values: {said}"
        remedy = f"call what is written in Python, with NumPy's functions; or {remedies.BEFORE}"
        if "must be numpy.ndarray, not" in str(error):  # as SuperLU says
            remedy += "; factors: call splu or factorized inside, a known matrix is factored while preparing"
        return TracingError(what, remedy, error)
    return None


def _hides_its_cause(error: Exception) -> bool:
    """Whether NumPy, or Python itself, was told why, and tells of itself."""
    return isinstance(error, SystemError) or "setting an array element" in str(error)


_STAND_INS = ("Symbolic", "Scalar", "Fillable", "NumberLook", "ArrayLook", "object __array__ method")


def _is_of_compiled_code(error: Exception) -> bool:
    """Whether a function that is no code of the user's was given what stands in for an array, and said so, or raised
    what only compiled code defines."""
    words = (*_STAND_INS, "No matching signature found", "can't unbox", "bad argument type")  # Cython's, Numba's, C's
    own = type(error).__module__ in ("struct", "_struct") or type(error).__qualname__ == "error"
    return (own or any(word in str(error) for word in words)) and not is_raised_by_user(error, is_installed)


def _label(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _returns_nothing(function: Callable, stand_ins: dict[str, Any]) -> ArgumentError:
    filled = [repr(name) for name, x in stand_ins.items() if isinstance(x, Symbolic) and x.ndim and x.was_changed]
    what = f"; it fills {', '.join(filled)}" if filled else ""
    return ArgumentError(f"{_label(function)} returns nothing{what}: return what is to be computed")


def argument_names(function: Callable, arguments: tuple) -> list[str]:
    """What messages, and calls by name, call the arguments that are given by place."""
    try:
        bound = inspect.signature(function).bind_partial(*arguments)
    except (TypeError, ValueError):
        return [f"argument {i}" for i in range(len(arguments))]
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = inspect.signature(function).parameters[name].kind
        names += [f"{name}[{i}]" for i in range(len(value))] if kind is kind.VAR_POSITIONAL else [name]
    return names


def numbers_of(value: Any) -> np.ndarray | None:
    """The numbers of an argument that vary; None for structure."""
    if sp.issparse(value):
        return _canonical(value).data if np.issubdtype(value.dtype, np.floating) else None
    is_float = isinstance(value, (float, np.floating))
    is_float = is_float or (isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating))
    return np.asarray(value) if is_float else None


def variable(name: str, value: Any) -> tuple[Argument, np.ndarray] | None:
    """An argument as a variable of the program, and its numbers; None where it is structure."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            f"argument {name!r}: masked arrays are not supported; give values.filled(number) and a mask"
        )
    if isinstance(value, Fixed):
        return None
    _reject_complex(name, value)
    if sp.issparse(value):
        pattern = _canonical(value) if np.issubdtype(value.dtype, np.floating) else None
        return None if pattern is None else (Argument(name, (pattern.nnz,), pattern), pattern.data)
    numbers = numbers_of(value)
    return None if numbers is None else (Argument(name, numbers.shape), numbers)


def in_form(argument: Argument, value: Any, numbers: Symbolic) -> Any:
    """What code is given for a variable: its numbers, in the form of the value that `compile` was given."""
    if argument.pattern is not None:
        return stand_in(value, argument.pattern, numbers)
    return numbers.view(np.matrix) if type(value) is np.matrix else numbers


def _stand_in(graph: Graph, name: str, value: Any, found: list[tuple[Argument, Node]]) -> Callable[[], Any]:
    """What makes the stand-in of an argument for one run: fresh, since the code may write to it."""
    as_variable = variable(name, value)
    if as_variable is None:
        return lambda: as_given(value.value if isinstance(value, Fixed) else value)
    argument, numbers = as_variable
    node = graph.variable(name, argument.shape)
    graph.given[node.index] = numbers
    found.append((argument, node))
    return lambda: in_form(argument, value, symbolic(graph, node.ids))


def _reject_complex(name: str, value: Any) -> None:
    dtype = getattr(value, "dtype", type(value))
    if isinstance(dtype, np.dtype | type) and np.issubdtype(dtype, np.complexfloating):
        what = "complex numbers are not supported; give real and imaginary parts as two arguments"
        raise ArgumentError(f"argument {name!r}: {what}")


def _canonical(matrix: Any) -> sp.csr_array:
    """A copy in rows, sorted and without duplicates."""
    pattern = sp.csr_array(matrix, copy=True)
    pattern.sum_duplicates()
    return pattern
