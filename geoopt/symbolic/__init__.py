"""`Symbolic`: the array that stands in for floats while user code is traced.

A symbolic array is a view over ids (`integers.ids.Ids`) into a graph. Whatever only moves data changes the view;
arithmetic adds one node to the graph. NumPy's protocols route ``np.sqrt(x)`` and ``np.cross(x, y)`` here.

Arrays can be changed in place, as NumPy's can: other scalars take the places of those assigned to. A slice, a
transpose or a reshaped array sees what happens to the array that it was taken from, and the other way round.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..callers import user_line
from ..errors import ShapeError, TracingError, UnsupportedError, unsupported
from ..graph import Graph
from ..integers.ids import Ids
from ..remedies import BEFORE
from . import guards
from .aliases import Links, Lost, changes
from .asking import whole_variable
from .changing import Changing
from .look import ArrayLook
from .operands import KNOWN, bound, own_signature, with_strangers, written
from .reshaping import Reshaping, fits
from .unknown import Refused, Unknown

# filled by the other files of this folder and by `sparse`, which import this one
FUNCTIONS: dict[Callable, Callable] = {}
UFUNCS: dict[np.ufunc, Callable] = {}
SPECIAL: list[Callable] = []  # finds the answer to a ufunc of `scipy.special`, or None
UFUNC_METHODS: dict[tuple[np.ufunc, str], Callable] = {}
CREATED: dict[Callable, Callable] = {}  # what ``like=`` routes here; given the array
AS_SPARSE: list[Callable] = []  # turns a matrix of SciPy into one of the graph
SOLUTIONS: list[Callable] = []  # solves a system of one matrix that is too large to be unrolled
ASSIGNED: list[Callable] = []  # turns what is assigned into an element or a slice into a symbolic array
MASKS: list[Any] = []  # the module `masked`, which knows what an index by a condition means
MATRICES: dict[type, Callable] = {}  # the kinds of ``np.matrix``; makes that for symbolic values of a graph's values
SUBCLASSES: list[Callable] = []  # makes of a symbolic array one that is seen as of a subclass of NumPy's
FILLABLE: list[type] = []  # of NumPy's arrays, those that become symbolic when symbolic values are put into them

_new = object.__new__
SMALL = 4  # times the size of a view that is small beside its owner

_OPERATORS = {
    **{np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul},
    **{np.divide: operator.truediv, np.matmul: operator.matmul},
}


def _method(function: Callable) -> Callable[..., Symbolic]:
    """NumPy's function as the method of the same name, which takes the same arguments."""
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


class Symbolic(Unknown, Reshaping, NDArrayOperatorsMixin):
    """An array of unknown numbers with known structure. Read it with NumPy's own functions.

    Examples
    --------
    >>> def doubled(x):
    ...     print(isinstance(x, geoopt.Symbolic), x.shape)
    ...     return 2 * x
    >>> geoopt.compile(doubled, np.ones((2, 3)))(np.ones((2, 3)))
    True (2, 3)
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """

    __slots__ = (
        *("_added", "_changing", "_derive", "_graph", "_ids", "_is_bool", "_owner", "_version"),
        *("links", "__weakref__"),
    )
    __array_priority__ = 1000.0
    number_type: type[Any]  # the type of arrays without axes ...
    condition_type: type[Any]  # ... and that of comparisons among them
    __class__ = property(lambda self: ArrayLook)  # type: ignore[assignment]

    def __init__(self, graph: Graph, ids: Ids, is_bool: bool = False):
        self._graph = graph
        self._ids = ids
        self._is_bool = is_bool
        self._owner: Symbolic | None = None  # the array whose memory a NumPy view would share
        self._derive: Callable[[Ids], Ids] | None = None  # from the owner's ids to ours
        self._version = 0  # of the owner's ids that ours come from; of an owner, how often it was changed
        self._added: Any = None  # see `added`
        self._changing: Changing | Lost | None = None  # of an owner that was changed since it was last read as a whole
        self.links: Links | None = None  # of an owner that is a choice between others, or that another may be

    # -- structure, known while tracing -------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._ids.shape

    @property
    def ndim(self) -> int:
        return self._ids.ndim

    @property
    def size(self) -> int:
        return self._ids.size

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(bool) if self._is_bool else np.dtype(np.float64)

    @property
    def T(self) -> Symbolic:
        return self.transpose()

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def ids(self) -> Ids:
        owner = self if self._owner is None else self._owner
        owner._added = None  # what is read between two additions keeps them apart
        if owner is self and self._changing is not None:
            self._ids, self._changing = self._changing.all(self._graph.size), None
        if owner is not self and owner._version != self._version:
            self._ids, self._version = self._derived(owner), owner._version
        return self._ids

    def _derived(self, owner: Symbolic) -> Ids:
        """What a view is now; a small one of an array that changes entry by entry does not list the whole array."""
        if owner._changing is None or SMALL * self.size > owner.size:
            return self._derive(owner.ids)  # type: ignore[misc]
        return owner._changing.at(self.memory)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Symbolic(shape={self.shape})"

    # -- moving data: never a node --------------------------------------------------------------------

    def reading(self, ids: Ids) -> Symbolic:
        """Other ids of the same graph, as a new array."""
        return symbolic(self._graph, ids, self._is_bool)

    def listed(self, places: np.ndarray) -> Symbolic:
        """``self.ravel()[places]`` for valid places (k,), an array of the caller's own that is overwritten with ids."""
        return self.reading(self.ids.compose(Ids.explicit(places), given=True))

    def sharing(self, derive: Callable[[Ids], Ids], derived: Ids | None = None) -> Symbolic:
        """What NumPy would return as a view of the same memory; ``derived`` are the ids now, where they are known."""
        result = self.reading(derive(self.ids) if derived is None else derived)
        if result.shape:
            before = self._derive
            result._owner = self if self._owner is None else self._owner
            result._derive = derive if before is None else lambda ids: derive(before(ids))
            result._version = result._owner._version
        return result

    def __getitem__(self, key: object) -> Symbolic:
        keys = key if type(key) is tuple else (key,)
        if self._changing is not None:
            scalar = self._changing.entry(keys)
            if scalar >= 0:
                self._added = None
                return number(self._graph, scalar, self._is_bool)
            if all(isinstance(k, (int, np.integer, slice)) for k in keys) and len(keys) < self.ndim:
                self._added = None
                return self.sharing(lambda ids: ids[key], self._changing.at(Ids.contiguous(0, self.shape)[key]))
        ids = self.ids
        if len(keys) == len(ids.shape):
            scalar = ids.entry(keys)
            if scalar >= 0:
                return number(self._graph, scalar, self._is_bool)
        basic = ids.basic(keys)
        if basic is not None:
            return self.sharing(lambda ids: ids[key], basic)
        if is_condition(key):
            return MASKS[0].chosen(self, key)
        _reject_symbolic_index(keys)
        try:
            return self.reading(ids[key])
        except IndexError as error:
            raise IndexError(f"{error}\n  at {user_line()}") from None

    def __setitem__(self, key: object, value: object) -> None:
        keys = key if type(key) is tuple else (key,)
        whole = Ids.contiguous(0, self.shape)
        places = whole.basic(keys)
        if places is None:
            if is_condition(key):
                MASKS[0].store(self, key, value)
                return
            _reject_symbolic_index(keys)
            try:
                places = whole[key]
            except IndexError as error:
                raise IndexError(f"{error}\n  at {user_line()}") from None
        self.assign(places, ASSIGNED[0](self._graph, value))

    def assign(self, places: Ids, value: Symbolic) -> None:
        """Put a value, broadcast, at some places (counted in C order) of the array."""
        if value._is_bool != self._is_bool:
            value = value.astype(self.dtype)
        shape = value.shape[next((i for i, n in enumerate(value.shape) if n != 1), value.ndim) :]
        if not fits(shape, places.shape):
            what = f"cannot assign an array of shape {value.shape} to a part of shape {places.shape}"
            raise ShapeError(what, "shapes align from the right")
        ids = value.ids.reshape(shape).broadcast_to(places.shape)
        if self._owner is not None:
            mine = self._derive(Ids.contiguous(0, self._owner.shape))  # type: ignore[misc]
            places = mine.compose(places.reshape((places.size,)))
            self._owner._replace(places, ids.reshape((ids.size,)))
        else:
            self._replace(places, ids)

    def _replace(self, places: Ids, ids: Ids) -> None:
        if self.links is not None:
            changes(self)
        if (condition := guards.current(of=self, is_changed=True)) is not None:
            ids = self._guarded(places, ids, condition)
        self._version, self._added = self._version + 1, None
        if places.size == self.size and places.offset == 0 and places.is_contiguous():
            self._ids, self._changing = ids.reshape(self.shape), None
            return
        self._changing = self._changing or Changing(self._ids)
        self._changing.put(places, ids)

    def _guarded(self, places: Ids, ids: Ids, condition: Symbolic) -> Ids:
        """What comes to some places: where the condition does not hold under which the code runs, all stays."""
        at = self._ids.compose if self._changing is None else self._changing.at
        before = at(places.reshape((places.size,))).reshape(places.shape)
        if before.key == ids.key:
            return ids
        return guards.chosen(condition, self.reading(ids), self.reading(before)).ids

    @property
    def owner(self) -> Symbolic:
        """The array whose memory this is."""
        return self if self._owner is None else self._owner

    @property
    def was_changed(self) -> bool:
        """Whether anything was put into an array that is no view."""
        return self._owner is None and bool(self.ndim) and self._version > 0

    @property
    def added(self) -> Any:
        """What the last change added to the array, if that was `np.add.at` and nobody has read the array since; never
        known of views."""
        return self._added

    @added.setter
    def added(self, what: Any) -> None:
        self._added = what if self._owner is None else None

    def view(self, kind: Any = None) -> Any:
        """The array itself, seen as one of a type that NumPy's arrays of floats may be of."""
        if kind is np.matrix:
            return MATRICES[kind](self._graph, self)
        if isinstance(kind, type) and issubclass(kind, np.ndarray) and kind is not np.ndarray:
            return SUBCLASSES[0](self, kind)
        is_type = isinstance(kind, (type, str, np.dtype))
        if kind is None or kind is np.ndarray or (is_type and np.issubdtype(np.dtype(kind), np.floating)):
            return self.sharing(lambda ids: ids)
        raise UnsupportedError(f"a view of unknown values as {kind}", "compute with the array itself")

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:
        if np.dtype(dtype) == bool:
            return self.copy() if self._is_bool else np.not_equal(self, 0.0)  # type: ignore[return-value]
        if self._is_bool and np.dtype(dtype).kind in "iuf":  # 0 and 1 are floats that integers are computed with alike
            return np.where(self, 1.0, 0.0)  # type: ignore[return-value]
        if not np.issubdtype(np.dtype(dtype), np.floating):
            raise UnsupportedError(f"cannot convert unknown values to {np.dtype(dtype)}", "keep them floating-point")
        return self.copy() if copy or np.dtype(dtype) != self.dtype else self

    # -- reductions and products, by NumPy's names ------------------------------------------------------

    sum, mean, var, std = (_method(f) for f in (np.sum, np.mean, np.var, np.std))
    prod, cumsum, cumprod = (_method(f) for f in (np.prod, np.cumsum, np.cumprod))
    all, any, argmax, argmin = (_method(f) for f in (np.all, np.any, np.argmax, np.argmin))
    max, min, clip, dot, round = (_method(f) for f in (np.max, np.min, np.clip, np.dot, np.round))
    take, repeat, swapaxes, squeeze = (_method(f) for f in (np.take, np.repeat, np.swapaxes, np.squeeze))
    diagonal, trace, put, nonzero = (_method(f) for f in (np.diagonal, np.trace, np.put, np.nonzero))
    device = "cpu"  # as NumPy says
    itemsize, nbytes = np.dtype(float).itemsize, property(lambda self: self.size * self.itemsize)
    conj = conjugate = lambda self, out=None: self
    real, imag, mT = property(np.real), property(np.imag), property(np.matrix_transpose)

    # -- what has no meaning before the values are known ------------------------------------------------

    def fill(self, value: Any) -> None:
        self[...] = value

    flags = property(lambda self: np.empty((2,) * self.ndim).flags)  # of an array in C's order

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Nothing: they can always be written to."""

    __hash__ = None  # type: ignore[assignment]

    # -- NumPy's functions --------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if len(inputs) == 1 and method == "__call__" and not kwargs and ufunc in UFUNCS:
            return UFUNCS[ufunc](self)
        if any(isinstance(x, FILLABLE[0]) for x in (*inputs, *kwargs.get("out", ()))):
            return NotImplemented  # it knows what it has become
        if any(type(x) in MATRICES for x in inputs):
            return MATRICES[np.matrix](self._graph, self).__array_ufunc__(ufunc, method, *inputs, **kwargs)
        if any(scipy.sparse.issparse(x) for x in inputs) and ufunc in _OPERATORS and not kwargs:
            return _OPERATORS[ufunc](*(AS_SPARSE[0](self._graph, x) if scipy.sparse.issparse(x) else x for x in inputs))
        operands = inputs[::2] if method == "at" else inputs  # all but the index
        if any(not isinstance(x, (Symbolic, *KNOWN)) for x in operands):
            return with_strangers(ufunc, method, inputs, kwargs)
        out, where = kwargs.pop("out", None), kwargs.pop("where", True)
        function = UFUNC_METHODS.get((ufunc, method))
        if function is None and method == "__call__":
            function = UFUNCS.get(ufunc) or SPECIAL[0](ufunc)
        called = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
        if function is None:
            known = ", ".join(sorted(u.__name__ for u in UFUNCS)) if method == "__call__" else "the plain function"
            raise UnsupportedError(f"{called} is not supported on symbolic arrays", f"use {known}")
        if kwargs or method != "__call__":  # else NumPy has counted them
            bound(called, own_signature(function), inputs, kwargs)
        result = function(*inputs, **kwargs)
        if where is not True:
            if out is None:
                what = f"{called} with where= and without out= leaves entries that nobody has set"
                raise UnsupportedError(what, "give out=np.zeros_like(x), or choose with np.where")
            result = np.where(where, result, out[0])
        return result if out is None else written(called, result, out[0])

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if FILLABLE[0] in types:
            return NotImplemented
        if not MATRICES.keys().isdisjoint(types):
            return MATRICES[np.matrix](self._graph, self).__array_function__(function, types, args, kwargs)
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        if function in CREATED:
            return CREATED[function](self, *args, **kwargs)
        if function not in FUNCTIONS:
            raise unsupported(name)
        return FUNCTIONS[function](*args, **kwargs)

    def __mul__(self, other: Any) -> Any:
        if type(other) in MATRICES and self.ndim:  # the product, to them
            return self.view(np.matrix) * other
        return super().__mul__(other)

    def __rmul__(self, other: Any) -> Any:
        if type(other) in MATRICES and self.ndim:
            return MATRICES[np.matrix](self._graph, other) * self
        return super().__rmul__(other)

    def __rmatmul__(self, other: Any) -> Any:
        if scipy.sparse.issparse(other):
            return AS_SPARSE[0](self._graph, other) @ self
        return np.matmul(other, self)


for _name in dir(np.ndarray):  # not in `__getattr__`: Python looks up every attribute more slowly where there is one
    if not _name.startswith("_") and not hasattr(Symbolic, _name):
        setattr(Symbolic, _name, Refused(_name))


def symbolic(graph: Graph, ids: Ids, is_bool: bool = False) -> Symbolic:
    """A symbolic array, or a number where there are no axes."""
    return Symbolic(graph, ids, is_bool) if ids.shape else number(graph, ids.offset, is_bool)


def number(graph: Graph, scalar: int, is_bool: bool = False) -> Symbolic:
    """A symbolic number, or a comparison of some."""
    made = _new(Symbolic.condition_type if is_bool else Symbolic.number_type)
    made._graph, made._id = graph, scalar
    return made


def is_condition(key: object) -> bool:
    """Whether there is a condition of unknown values in an index, or places where one holds."""
    keys, places = key if type(key) is tuple else (key,), MASKS[0].Places
    return any(isinstance(k, places) or (isinstance(k, Symbolic) and k._is_bool and bool(k.ndim)) for k in keys)


def _reject_symbolic_index(keys: tuple) -> None:
    for key in keys:
        if isinstance(key, Symbolic):
            name = whole_variable(key.graph, key.ids)
            varies = f"; {name!r} is an array of floats, so it varies: give {name}.astype(int)" if name else ""
            raise TracingError(
                f"cannot index with a symbolic value: structure must be known while tracing{varies}",
                f"index with integers or boolean arrays, or {BEFORE}; choose between values with np.where",
            )
