"""`Fillable`: NumPy's arrays that traced code creates, until a symbolic value is put into them.

``out = np.zeros(n)`` is an array of known numbers; ``out[i] = x`` makes it, and all views of it, a symbolic one. Until
then it is NumPy's own in every respect, so that code which computes structure from floats works as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TracingError, UnsupportedError
from ..graph import Graph
from ..integers.ids import Ids
from . import FILLABLE, MASKS, Symbolic, guards, is_condition
from .arithmetic import as_symbolic, graph_of
from .dispatch import flattened, is_symbolic
from .np_matrix import MatrixLike

# methods that read the memory of an array, past NumPy's protocols
_READING = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "compress", "conj"),
    *("conjugate", "copy", "cumprod", "cumsum", "diagonal", "dump", "dumps", "fill", "flatten", "item"),
    *("max", "mean", "min", "nonzero", "partition", "prod", "put", "ravel", "repeat", "reshape", "round"),
    *("searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "tobytes", "tofile", "tolist", "trace"),
    *("transpose", "var", "__bool__", "__complex__", "__contains__", "__copy__", "__deepcopy__", "__float__"),
    *("__format__", "__int__", "__iter__", "__reduce__", "__repr__", "__str__"),
    # what SciPy's matrices answer before NumPy does
    *("__add__", "__sub__", "__mul__", "__matmul__", "__radd__", "__rsub__", "__rmul__", "__rmatmul__"),
)
_BITS = np.uint64(0x7FF8_6765_6F6F_7074)  # of a NaN that no arithmetic makes
HIDDEN = _BITS.view(np.float64)  # what is in the memory of an array that has become symbolic
_CHANGING = (np.copyto, np.put, np.fill_diagonal)  # their first argument
_CHANGING_METHODS = ("fill", "partition", "put", "sort")


class Fillable(np.ndarray):
    """An array of known floats that traced code has created."""

    _filled: Symbolic | None = None  # of an array with memory of its own: what that has become, in C order

    def now(self) -> Symbolic | np.ndarray:
        """What it has become; NumPy's own array if it is known."""
        found = symbolic_of(self)
        return self.view(np.ndarray) if found is None else found

    def __getitem__(self, key: Any) -> Any:
        now = symbolic_of(self)
        if now is None and is_condition(key):
            key = MASKS[0].condition_of(key)
            now = as_symbolic(graph_of(flattened(key)), self.view(np.ndarray))
        return super().__getitem__(key) if now is None else now[key]

    def dot(self, other: Any, out: Any = None) -> Any:
        """NumPy's own asks nobody."""
        return np.dot(self.now(), resolved(other), out)

    def __setitem__(self, key: Any, value: Any) -> None:
        key, value = resolved(key), resolved(value)
        if is_condition(key):
            key = MASKS[0].condition_of(key)
        if is_symbolic(value) or is_symbolic(key):
            _become(self, (value, key))
        _become_under_conditions(self)
        now = symbolic_of(self)
        if now is None:
            super().__setitem__(key, value)
        else:
            now[key] = value

    @property
    def T(self) -> Any:
        return self.transpose()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if any(type(x) is MatrixLike for x in inputs):
            return NotImplemented  # which knows what it is to others
        changed = out or (inputs[:1] if method == "at" else ())
        for target in changed:
            _become_under_conditions(target)
        given = [resolved(x) for x in inputs]
        call = getattr(ufunc, method)
        if is_symbolic(given):
            for target in changed:
                _become(target, given)
            given = [_plain(resolved(x)) for x in inputs]
        elif not any(is_symbolic(resolved(o)) for o in out):
            if out:
                call(*map(_plain, given), out=tuple(map(_plain, out)), **kwargs)
                return out[0] if len(out) == 1 else out
            return fillable(call(*map(_plain, given), **kwargs))
        if not out:
            return call(*given, **kwargs)
        call(*map(_plain, given), out=tuple(map(resolved, out)), **kwargs)
        return out[0]

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        for target in (args[0] if function in _CHANGING else None, kwargs.get("out")):
            _become_under_conditions(target)
        given, named = resolved(args), {k: resolved(v) for k, v in kwargs.items()}
        if not is_symbolic([*given, *named.values()]):
            found = super().__array_function__(function, types, args, kwargs)
            return fillable(found) if isinstance(found, np.ndarray) and found.base is None else found
        if function in _CHANGING:
            _become(args[0], [*given, *named.values()])
            given = resolved(args)
        if isinstance(kwargs.get("out"), Fillable):
            _become(kwargs["out"], [*given, *named.values()])
            named["out"] = resolved(kwargs["out"])
        result = function(*_plain(given), **{k: _plain(v) for k, v in named.items()})
        return kwargs["out"] if isinstance(kwargs.get("out"), Fillable) else result

    @staticmethod
    def reject_hidden(values: np.ndarray) -> None:
        """Refuse numbers that came out of the memory of an array which has become symbolic, past NumPy's protocols."""
        if values.dtype == np.float64 and (np.ascontiguousarray(values).view(np.uint64) == _BITS).any():
            what = "a library read the numbers of an array that symbolic values were put into"
            raise TracingError(what, "write that computation with NumPy's functions, or do it before")


def _reading(name: str) -> Callable:
    known = getattr(np.ndarray, name)

    def method(self: Fillable, *args: Any, **kwargs: Any) -> Any:
        if name in _CHANGING_METHODS:
            _become_under_conditions(self)
        now = symbolic_of(self)
        return known(self, *args, **kwargs) if now is None else getattr(now, name)(*args, **kwargs)

    method.__name__ = name
    return method


for _name in filter(lambda name: hasattr(np.ndarray, name), _READING):
    setattr(Fillable, _name, _reading(_name))


def fillable(array: Any) -> Any:
    """An array of floats as one that symbolic values can be put into; everything else as it is."""
    if type(array) is not np.ndarray or not array.ndim or not array.flags.forc:
        return array
    return guards.made(array.view(Fillable) if np.issubdtype(array.dtype, np.floating) else array)


def symbolic_of(array: Any) -> Symbolic | None:
    """What an array has become, if symbolic values were put into it or into what it is a view of."""
    owner = _owner(array)
    if owner._filled is None or (owner is array and array.flags.c_contiguous):
        return owner._filled
    places, shape = _places(array, owner).reshape((array.size,)), array.shape
    return owner._filled.sharing(lambda ids: ids.reshape((ids.size,)).compose(places).reshape(shape))


def resolved(value: Any) -> Any:
    """A value, in which arrays that have become symbolic are, and what a ``np.matrix`` would be is an array."""
    if isinstance(value, Fillable):
        now = symbolic_of(value)
        return value if now is None else now
    if type(value) is MatrixLike:
        return value.A
    return type(value)(map(resolved, value)) if type(value) in (list, tuple) else value


def _plain(value: Any) -> Any:
    """A value, in which arrays that are known are NumPy's own."""
    if isinstance(value, Fillable):
        return value.view(np.ndarray)
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _owner(array: Fillable) -> Fillable:
    while isinstance(array.base, Fillable):
        array = array.base
    return array


def _places(array: Fillable, owner: Fillable) -> Ids:
    """Where the entries of a view are in an owner."""
    first = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // owner.itemsize
    return Ids(array.shape, first, tuple(s // owner.itemsize for s in array.strides))


def _become(array: Any, values: Any) -> None:
    """Make the array, if it is known yet, one of the graph of some values."""
    if not isinstance(array, Fillable) or symbolic_of(array) is not None:
        return
    owner = _owner(array)
    if not owner.flags.forc:
        what = "symbolic values in an array in the order neither of C nor of Fortran are not supported"
        raise UnsupportedError(what, "make it with order='C'")
    in_memory = owner if owner.flags.c_contiguous else owner.T
    owner._filled = _as_found(graph_of(flattened(values)), np.array(in_memory, subok=False))
    guards.made(owner._filled, by=owner)
    np.ndarray.fill(owner, HIDDEN)


def become_symbolic(array: Any, like: Symbolic) -> Any:
    """What an array of known floats, which traced code has created, is from now on; all else is what it is."""
    _become(array, [like])
    return symbolic_of(array) if isinstance(array, Fillable) else array


def _become_under_conditions(array: Any) -> None:
    """Make an array symbolic that is changed where conditions hold which are unknown."""
    condition = guards.current(of=_owner(array)) if isinstance(array, Fillable) else None
    if condition is not None:
        guards.refuse_in_loop(_owner(array))
        _become(array, [condition])


def _as_found(graph: Graph, values: np.ndarray) -> Symbolic:
    """Known values, in the graph; most arrays to be filled have one value everywhere."""
    first = values.ravel()[:1]
    if values.size and np.array_equal(values, np.broadcast_to(first, values.shape), equal_nan=True):
        return Symbolic(graph, as_symbolic(graph, float(first[0])).ids.broadcast_to(values.shape))
    return as_symbolic(graph, values).copy()


def owner_of(array: Symbolic | Fillable) -> Symbolic | Fillable:
    """The array that an array is a view of, or it itself."""
    return _owner(array) if isinstance(array, Fillable) else array.owner


class Cell:
    """An array of the code's own whose entries may change, and what they were."""

    def __init__(self, array: Symbolic | Fillable):
        self.array = array
        now = symbolic_of(array) if isinstance(array, Fillable) else array
        self.start = np.array(array) if now is None else now.copy()  # what the entries were
        self._links = None if now is None else now.links

    def contents(self) -> Symbolic | np.ndarray:
        """What the entries are."""
        now = symbolic_of(self.array) if isinstance(self.array, Fillable) else self.array
        return np.array(self.array) if now is None else now.copy()

    def is_like(self, contents: Symbolic | np.ndarray) -> bool:
        """Whether the entries are some others."""
        now = self.contents()
        if isinstance(now, Symbolic) and isinstance(contents, Symbolic):
            return now.ids.key == contents.ids.key
        return type(now) is type(contents) and np.array_equal(now, contents, equal_nan=True)

    def restore(self) -> None:
        """Make the entries what they were."""
        if isinstance(self.array, Fillable) and not isinstance(self.start, Symbolic):
            self.array._filled = None
            self.array.view(np.ndarray)[...] = self.start
        elif not self.is_like(self.start):
            self.put(self.start)

    def put(self, contents: Symbolic | np.ndarray) -> None:
        """Change the entries, which is no change that the code makes."""
        memory = self.memory
        if memory is not None:
            memory.links = None
        self.array[...] = contents
        if self.memory is not None:
            self.memory.links = self._links

    @property
    def memory(self) -> Symbolic | None:
        """The symbolic array that it is, or has become."""
        return self.array._filled if isinstance(self.array, Fillable) else self.array

    def free(self) -> None:
        """Have the side of a branch that is run change the entries as if it had made the array."""
        guards.made(self.array)
        if isinstance(self.array, Fillable) and self.array._filled is not None:
            guards.made(self.array._filled)


FILLABLE.append(Fillable)
