"""Signatures and results as plain data. Arrays are named; dataclasses are found among the classes that are given."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError
from ..results import (
    Known,
    OfArray,
    OfComparison,
    OfDataclass,
    OfDict,
    OfMatrix,
    OfNumber,
    OfNumPyMatrix,
    OfSequence,
    Part,
)
from ..signature import Argument, Signature
from ..stored_matrices import INDICES, index_arrays, without_values
from .archive import DamagedError
from .records import Reader

KINDS = {f"{format}_{kind}": getattr(sp, f"{format}_{kind}") for format in INDICES for kind in ("array", "matrix")}
PLAIN = (bool, int, float, str, type(None))
READER = Reader(())

Add = Callable[[np.ndarray], str]  # an array to the archive; gives its name
Types = Mapping[str, type]  # dataclasses and named tuples by name


def signature_data(signature: Signature, add: Add) -> dict[str, Any]:
    named_types(types_of(signature.result))  # refuses two of one name
    return {
        "function": signature.function,
        "arguments": [
            {"name": a.name, "shape": list(a.shape), "pattern": None if a.pattern is None else _pattern(a.pattern, add)}
            for a in signature.arguments
        ],
        "result": _data(signature.result, add),
        "has_numbers": signature.has_numbers,
        "has_comparisons": signature.has_comparisons,
        "paths": signature.paths,
    }


def _pattern(matrix: Any, add: Add) -> dict[str, Any]:
    """A matrix without its values."""
    arrays = [add(np.asarray(a)) for a in index_arrays(matrix)]
    kind = type(matrix).__name__
    return {"kind": kind, "shape": list(matrix.shape), "count": list(np.shape(matrix.data)), "indices": arrays}


def _data(part: Part, add: Add) -> list[Any]:
    match part:
        case OfArray(output):
            return ["array", output]
        case OfMatrix(output, pattern):
            return ["sparse", output, _pattern(pattern, add)]
        case OfNumber(entry):
            return ["number", entry]
        case OfComparison(begin, shape):
            return ["comparison", begin, list(shape)]
        case OfNumPyMatrix(inner):
            return ["np.matrix", _data(inner, add)]
        case OfSequence(kind, parts):
            return ["sequence", type_name(kind), list(getattr(kind, "_fields", ())), [_data(p, add) for p in parts]]
        case OfDict(keys, parts):
            return ["dict", [_known(k, add) for k in keys], [_data(p, add) for p in parts]]
        case OfDataclass(kind, names, parts):
            return ["dataclass", type_name(kind), list(names), [_data(p, add) for p in parts]]
        case Known(value):
            return ["known", _known(value, add)]
    raise ArgumentError(f"a program whose result has a {type(part).__name__} cannot be saved")


def type_name(kind: type) -> str:
    return kind.__name__ if kind in (tuple, list) else f"{kind.__module__}.{kind.__qualname__}"


def named_types(types: Iterable[type]) -> dict[str, type]:
    """Dataclasses and named tuples by name; ArgumentError where there are two of one name, or what is no class."""
    found: dict[str, type] = {}
    for kind in [types] if isinstance(types, type) else types:
        if not isinstance(kind, type):
            raise ArgumentError(f"types must be classes, not a {type(kind).__name__}")
        if found.setdefault(type_name(kind), kind) is not kind:
            raise ArgumentError(f"two classes of the result are named {type_name(kind)}; give them different names")
    return found


def types_of(part: Part) -> list[type]:
    """The dataclasses and named tuples of a result."""
    own = [part.kind] if isinstance(part, OfSequence | OfDataclass) and part.kind not in (tuple, list) else []
    return list(dict.fromkeys([*own, *(kind for _, inner in part.inner() for kind in types_of(inner))]))


def _known(value: Any, add: Add) -> list[Any]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb" and type(value) is np.ndarray:
        array = value.view(np.uint8) if value.dtype == bool else value
        return ["array", value.dtype.str, list(value.shape), add(np.ascontiguousarray(array).ravel())]
    if isinstance(value, np.generic) and value.dtype.kind in "iufb":
        return ["scalar", *_known(np.asarray(value), add)]
    if sp.issparse(value) and value.format in INDICES and value.ndim == 2:  # pyright: ignore[reportAttributeAccessIssue]
        return ["matrix", _pattern(value, add), _known(np.asarray(value.data), add)]
    if isinstance(value, float):
        return ["float", value.hex()]
    if type(value) in PLAIN:
        return ["plain", value]
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return [type(value).__name__, *(_known(v, add) for v in value)]
    raise ArgumentError(
        f"the result holds a {type(value).__name__} that does not depend on the variables, which a file cannot hold: "
        "return arrays, numbers and texts"
    )


class PartReader:
    """arrays : of the archive;  types : the dataclasses and named tuples that a result may be made of
    sizes : of the outputs"""

    def __init__(self, arrays: Mapping[str, np.ndarray], types: Types, sizes: list[int]):
        self.arrays, self.types, self.sizes = arrays, types, sizes

    def signature(self, data: dict[str, Any]) -> Signature:
        read, has_numbers = READER.read, READER.read(data["has_numbers"], bool)
        arguments = tuple(self._argument(a) for a in data["arguments"])
        result = self.part(data["result"])
        has_comparisons, paths = read(data["has_comparisons"], bool), read(data["paths"], int)
        function = read(data["function"], str)
        return Signature(function, arguments, result, has_numbers, has_comparisons, paths)

    def _argument(self, data: dict[str, Any]) -> Argument:
        name, shape = READER.read(data["name"], str), READER.read(data["shape"], tuple[int, ...])
        if data["pattern"] is None:
            return Argument(name, shape)
        empty = self._pattern(data["pattern"])
        if empty.format != "csr" or shape != (empty.nnz,):
            raise DamagedError(f"the pattern of {name!r:.40} is not one of rows")
        return Argument(name, shape, sp.csr_array((np.zeros(shape), *index_arrays(empty)), shape=empty.shape))

    def _pattern(self, data: dict[str, Any]) -> Any:
        """A matrix of SciPy's without values, with each entry once, in order."""
        matrix, places, count = self._matrix(data)
        if matrix.format in ("csr", "csc"):
            require_canonical(matrix)
        return without_values(type(matrix), count, places, matrix.shape)

    def _matrix(self, data: dict[str, Any]) -> tuple[Any, tuple[np.ndarray, ...], tuple[int, ...]]:
        """A matrix of zeros whose entries lie inside of it, its index arrays, and the shape of its values."""
        shape, count = (READER.read(data[name], tuple[int, ...]) for name in ("shape", "count"))
        kind, places = KINDS[data["kind"]], tuple(self.arrays[name] for name in data["indices"])
        if any(a.dtype.kind != "i" or a.ndim != 1 for a in places) or len(shape) != 2 or min(*shape, *count) < 0:
            raise DamagedError("a matrix is not of integer rows and columns")
        zeros = np.broadcast_to(np.int8(0), count)
        matrix = kind((zeros, places) if data["kind"].startswith("coo") else (zeros, *places), shape=shape)
        if matrix.format in ("csr", "csc"):
            require_whole(matrix)
        return matrix, places, count

    def part(self, data: list[Any]) -> Part:
        match data:
            case ["array", output]:
                self._size(output)
                return OfArray(output)
            case ["sparse", output, pattern]:
                return self._sparse(output, pattern)
            case ["number", entry]:
                return self._number(entry)
            case ["comparison", begin, shape]:
                return self._comparison(begin, READER.read(shape, tuple[int, ...]))
            case ["np.matrix", inner]:
                return OfNumPyMatrix(self.part(inner))
            case ["sequence", name, names, parts]:
                return self._sequence(name, READER.read(names, tuple[str, ...]), parts)
            case ["dict", keys, parts]:
                return OfDict(tuple(map(self._known_value, keys)), tuple(map(self.part, parts)))
            case ["dataclass", name, names, parts]:
                return self._dataclass(name, READER.read(names, tuple[str, ...]), parts)
            case ["known", known]:
                value = self._known_value(known)
                return Known(value, isinstance(value, np.ndarray) or sp.issparse(value))
        raise DamagedError(f"there is no result {data!r:.40}")

    def _size(self, output: Any) -> int:
        """The entries of an output, the last one by -1."""
        if not -1 <= READER.read(output, int) < len(self.sizes):
            raise DamagedError("a result is of an output that there is not")
        return self.sizes[output]

    def _sparse(self, output: Any, data: Any) -> Part:
        empty = self._pattern(data)
        if self._size(output) != math.prod(np.shape(empty.data)):
            raise DamagedError("a matrix of the result has not as many values as it has entries")
        return OfMatrix(output, empty)

    def _number(self, entry: Any) -> Part:
        if not 0 <= READER.read(entry, int) < self._size(-1):
            raise DamagedError("a number of the result lies outside of its output")
        return OfNumber(entry)

    def _comparison(self, begin: Any, shape: tuple[int, ...]) -> Part:
        if not 0 <= READER.read(begin, int) <= begin + math.prod(shape) <= self._size(-1):
            raise DamagedError("a comparison of the result lies outside of its output")
        return OfComparison(begin, shape)

    def _sequence(self, name: Any, names: tuple[str, ...], data: Any) -> Part:
        kind = self._type(name)
        if names != getattr(kind, "_fields", ()):
            raise _other_fields(name, names)
        return OfSequence(kind, tuple(map(self.part, data)))

    def _dataclass(self, name: Any, names: tuple[str, ...], data: Any) -> Part:
        kind = self._type(name)
        if not dataclasses.is_dataclass(kind) or names != tuple(f.name for f in dataclasses.fields(kind)):
            raise _other_fields(name, names)
        return OfDataclass(kind, names, tuple(map(self.part, data)))

    def _type(self, name: Any) -> type:
        builtin = {"tuple": tuple, "list": list}.get(READER.read(name, str))
        found = builtin or self.types.get(name)
        if found is None:
            *_, short = name.split(".")
            raise ArgumentError(f"the result is a {name}; give the class, as in geoopt.load(path, types=[{short}])")
        return found

    def _known_value(self, data: Any) -> Any:
        kind, *rest = data
        if kind == "array":
            dtype, shape, name = rest
            dtype = np.dtype(READER.read(dtype, str))
            if dtype.kind not in "iufb":
                raise DamagedError("the result holds an array that is not of numbers")
            array = self.arrays[name].reshape(READER.read(shape, tuple[int, ...]))
            return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array.astype(dtype)
        if kind == "scalar":
            return self._known_value(rest)[()]
        if kind == "matrix":
            matrix, _, _ = self._matrix(rest[0])
            matrix.data = self._known_value(rest[1])
            return matrix
        if kind == "float":
            return READER.read(rest[0], float)
        if kind in ("tuple", "list"):
            return {"tuple": tuple, "list": list}[kind](map(self._known_value, rest))
        if kind != "plain" or type(rest[0]) not in PLAIN:
            raise DamagedError(f"there is no known value {kind!r:.40}")
        return rest[0]


def _other_fields(name: str, names: tuple[str, ...]) -> ArgumentError:
    return ArgumentError(f"{name} has other fields than when the program was saved: {', '.join(names)}")


def require_whole(matrix: Any) -> None:
    """DamagedError unless a matrix by rows, or columns, has an index inside of it for each value."""
    matrix.check_format(full_check=True)
    if matrix.data.shape != matrix.indices.shape or matrix.indptr[-1] != len(matrix.indices):
        raise DamagedError("a matrix has not as many values as its rows have entries")


def require_canonical(matrix: Any) -> None:
    """DamagedError unless the rows, or columns, of a matrix have each entry once, in order."""
    if not matrix.has_canonical_format:
        raise DamagedError("the rows of a matrix have entries twice, or in no order")
