"""The LLVM IR that computes with the values of a compiled function, statement by statement."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from .values import BOOL, FLOAT, INT, REGISTERS, WORD, Array, Arrays, Type, Value, constant, element, part_types

_OF_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
# by Python's sign: what it does to constants, and LLVM's instructions for integers and for words
_OPERATIONS: dict[str, tuple[Callable, str, str]] = {
    "+": (operator.add, "add nsw", "add"),
    "-": (operator.sub, "sub nsw", "sub"),
    "*": (operator.mul, "mul nsw", "mul"),
    "/": (operator.truediv, "", ""),
    "//": (operator.floordiv, "", "udiv"),
    "%": (operator.mod, "", "urem"),
    "&": (operator.and_, "and", "and"),
    "|": (operator.or_, "or", "or"),
    "^": (operator.xor, "xor", "xor"),
    "<<": (operator.lshift, "shl", "shl"),
    ">>": (operator.rshift, "ashr", "lshr"),
}


class Code:
    """The text of a function. Variables are memory on the stack, which LLVM turns into registers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[str] = []
        self._fresh, self._is_reached = 0, True

    def name(self) -> str:
        self._fresh += 1
        return f"v{self._fresh}"

    def let(self, expression: str) -> str:
        name = f"%{self.name()}"
        self.do(f"{name} = {expression}")
        return name

    def do(self, statement: str) -> None:
        if self._is_reached:
            self.lines.append(f"  {statement}")

    def label(self, name: str) -> None:
        """A place that `go` and `branch` name; what stands above goes on there, too."""
        self.go(name)
        self.lines.append(f"{name}:")
        self._is_reached = True

    def go(self, label: str) -> None:
        """Go on elsewhere: what follows up to the next label is never reached, and not written."""
        self.do(f"br label %{label}")
        self._is_reached = False

    def branch(self, condition: Value, yes: str, no: str) -> None:
        self.do(f"br i1 {condition.text}, label %{yes}, label %{no}")
        self._is_reached = False

    # -- variables --------------------------------------------------------------------------------------

    def variable(self, kind: Type) -> Value:
        """Room for a value of a type; its parts are addresses."""
        names = [f"%{self.name()}" for _ in part_types(kind)]
        self.variables += [f"  {n} = alloca {t}" for n, t in zip(names, part_types(kind), strict=True)]
        return Value(kind, tuple(names))

    def get(self, variable: Value) -> Value:
        places = zip(part_types(variable.type), variable.parts, strict=True)
        return Value(variable.type, tuple(self.let(f"load {t}, ptr {place}") for t, place in places))

    def set(self, variable: Value, value: Value) -> None:
        value = self.as_type(value, variable.type)
        for t, part, place in zip(part_types(variable.type), value.parts, variable.parts, strict=True):
            self.do(f"store {t} {part}, ptr {place}")

    # -- arrays -----------------------------------------------------------------------------------------

    def view(self, array: Value, indices: list[Value]) -> Value:
        """The part of an array at some places of its first axes."""
        kind = array.type
        assert isinstance(kind, Array)
        rest = replace(kind, axes=kind.axes - len(indices))
        lengths = array.parts[1 : 1 + kind.axes]
        indices = [self.to_int(i) for i in indices]
        if kind.is_contiguous:
            at = indices[0].text
            for index, length in zip([*indices[1:], *[None] * rest.axes], lengths[1:], strict=True):
                at = self.let(f"mul nsw i64 {at}, {length}")
                at = self.let(f"add nsw i64 {at}, {index.text}") if index else at
            address = self.let(f"getelementptr inbounds {element(kind.dtype)}, ptr {array.text}, i64 {at}")
            return Value(rest, (address, *lengths[len(indices) :]))
        address, strides = array.text, array.parts[1 + kind.axes :]
        for index, stride in zip(indices, strides, strict=False):
            address = self.let(f"getelementptr i8, ptr {address}, i64 {self.let(f'mul i64 {index.text}, {stride}')}")
        return Value(rest, (address, *lengths[len(indices) :], *strides[len(indices) :]))

    def sliced(self, array: Value, begin: Value | None, end: Value | None) -> Value:
        """Consecutive places of the first axis: up to its end, where they are said to go beyond."""
        length = Value(INT, (array.parts[1],))
        begin = self.as_int(begin) if begin else constant(0)
        end = self.least([end, length]) if end else length
        count = self.most([self.binary("-", end, begin), constant(0)])
        return Value(array.type, (self.view(array, [begin]).text, count.text, *array.parts[2:]))

    def entry(self, array: Value, indices: list[Value]) -> Value:
        """What an array holds somewhere: a number, or a part of it."""
        if isinstance(array.type, Arrays):
            return self._member(array, *indices)
        part = self.view(array, indices)
        assert isinstance(part.type, Array)
        if part.type.axes:
            return part
        dtype = part.type.dtype
        loaded = self.let(f"load {element(dtype)}, ptr {part.text}")
        if dtype.kind == "b":
            return Value(BOOL, (self.let(f"icmp ne i8 {loaded}, 0"),))
        if dtype.kind == "f":
            return Value(FLOAT, (loaded if dtype.itemsize == 8 else self.let(f"fpext float {loaded} to double"),))
        if dtype.itemsize == 8:
            return Value(INT if dtype.kind == "i" else WORD, (loaded,))
        widen = "sext" if dtype.kind == "i" else "zext"
        return Value(INT, (self.let(f"{widen} {element(dtype)} {loaded} to i64"),))

    def _member(self, arrays: Value, number: Value) -> Value:
        """One array of a tuple."""
        assert isinstance(arrays.type, Arrays)
        kind = arrays.type.kind
        first = self.let(f"mul i64 {self.as_int(number).text}, {kind.parts}")
        return self.listed(kind, arrays.text, first)

    def listed(self, kind: Type, block: str, first: str) -> Value:
        """A value whose parts are listed in memory from some place on."""
        start = self.let(f"getelementptr i64, ptr {block}, i64 {first}")
        places = [self.let(f"getelementptr i64, ptr {start}, i64 {i}") for i in range(len(part_types(kind)))]
        return self.get(Value(kind, tuple(places)))

    def put(self, array: Value, indices: list[Value], value: Value) -> None:
        """Store a number, converted as NumPy does it."""
        place = self.view(array, indices)
        assert isinstance(place.type, Array)
        dtype = place.type.dtype
        if place.type.axes:
            raise TypeError("entries are assigned one by one")
        if dtype.kind == "f":
            value = self.as_type(value, FLOAT)
        elif value.type == FLOAT or (dtype.kind == "b" and value.type != BOOL):
            raise TypeError(f"{value.type} cannot be put into an array of {dtype}")
        text, bits = value.text, 8 * dtype.itemsize
        if value.type == BOOL:
            text = self.let(f"zext i1 {text} to i{bits}")
        elif bits < 64:
            text = self.let(f"{'fptrunc double' if dtype.kind == 'f' else 'trunc i64'} {text} to {element(dtype)}")
        self.do(f"store {element(dtype)} {text}, ptr {place.text}")

    # -- numbers ----------------------------------------------------------------------------------------

    def as_int(self, value: Value) -> Value:
        """A bool counts as 0 or 1."""
        if value.type == BOOL:
            return Value(INT, (self.let(f"zext i1 {value.text} to i64"),))
        if value.type != INT:
            raise TypeError(f"an integer is needed, not {value.type}; np.int64(...) makes one")
        return value

    def to_int(self, value: Value) -> Value:
        """What ``np.int64`` makes of a number."""
        return Value(INT, value.parts) if value.type == WORD else self.as_int(value)._replace(constant=None)

    def as_word(self, value: Value) -> Value:
        """What ``np.uint64`` makes of a number."""
        return value if value.type == WORD else Value(WORD, self.as_int(value).parts)

    def as_type(self, value: Value, kind: Type) -> Value:
        """As what is assigned to a variable."""
        if kind == WORD and value.is_literal:
            return self.as_word(value)
        if kind == INT and value.type == BOOL:
            return self.as_int(value)
        if kind == FLOAT and value.type == INT:
            return Value(FLOAT, (self.let(f"sitofp i64 {value.text} to double"),))
        if value.type != kind:
            raise TypeError(f"a variable has one type: {kind}, not {value.type}")
        return value

    def truth(self, value: Value) -> Value:
        if value.type == BOOL:
            return value
        return self.compare("!=", value, constant(0))

    def alike(self, values: list[Value]) -> list[Value]:
        """The values in the one type that they have together."""
        kinds = {v.type for v in values if not v.is_literal}
        if len(kinds) == 1 and kinds < {WORD, FLOAT}:
            return [self.as_type(v, *kinds) for v in values]
        return [self.as_int(v) for v in values]

    def binary(self, sign: str, one: Value, other: Value) -> Value:
        if one.constant is not None and other.constant is not None:
            return constant(_OPERATIONS[sign][0](one.constant, other.constant))
        if FLOAT in (one.type, other.type) or sign == "/":
            return self._of_floats(sign, one, other)
        _, of_ints, of_words = _OPERATIONS[sign]
        if one.type == other.type == BOOL and sign in "&|^":
            return Value(BOOL, (self.let(f"{of_ints} i1 {one.text}, {other.text}"),))
        one, other = self.alike([one, other])
        if one.type == INT and sign in ("//", "%"):
            return self._divided(sign, one, other)
        return Value(one.type, (self.let(f"{of_ints if one.type == INT else of_words} i64 {one.text}, {other.text}"),))

    def _of_floats(self, sign: str, one: Value, other: Value) -> Value:
        if sign not in _OF_FLOATS:
            raise TypeError(f"floats have no {sign}")
        one, other = self.as_type(one, FLOAT), self.as_type(other, FLOAT)
        return Value(FLOAT, (self.let(f"{_OF_FLOATS[sign]} double {one.text}, {other.text}"),))

    def _divided(self, sign: str, one: Value, other: Value) -> Value:
        """Rounded down, as Python does it."""
        by = other.constant
        if isinstance(by, int) and by > 0 and by & (by - 1) == 0:
            how = f"ashr i64 {one.text}, {by.bit_length() - 1}" if sign == "//" else f"and i64 {one.text}, {by - 1}"
            return Value(INT, (self.let(how),))
        quotient = self.let(f"sdiv i64 {one.text}, {other.text}")
        rest = self.let(f"sub i64 {one.text}, {self.let(f'mul i64 {quotient}, {other.text}')}")
        differs = self.let(f"icmp slt i64 {self.let(f'xor i64 {rest}, {other.text}')}, 0")
        is_below = self.let(f"and i1 {self.let(f'icmp ne i64 {rest}, 0')}, {differs}")
        if sign == "//":
            return Value(INT, (self.let(f"sub i64 {quotient}, {self.let(f'zext i1 {is_below} to i64')}"),))
        return Value(INT, (self.let(f"add i64 {rest}, {self.let(f'select i1 {is_below}, i64 {other.text}, i64 0')}"),))

    def compare(self, sign: str, one: Value, other: Value) -> Value:
        one, other = self.alike([one, other])
        how = _COMPARISONS[sign]
        if one.type == FLOAT:
            return Value(BOOL, (self.let(f"fcmp {'u' if how == 'ne' else 'o'}{how} double {one.text}, {other.text}"),))
        signed = "" if how in ("eq", "ne") else "s" if one.type == INT else "u"
        return Value(BOOL, (self.let(f"icmp {signed}{how} i64 {one.text}, {other.text}"),))

    def least(self, values: list[Value]) -> Value:
        return self._extreme("<", values)

    def most(self, values: list[Value]) -> Value:
        return self._extreme(">", values)

    def _extreme(self, sign: str, values: list[Value]) -> Value:
        found, *others = self.alike(values)
        for value in others:
            is_better = self.compare(sign, value, found)
            t = REGISTERS[found.type]  # type: ignore[index]
            found = Value(found.type, (self.let(f"select i1 {is_better.text}, {t} {value.text}, {t} {found.text}"),))
        return found
