"""Plain Python functions with loops over arrays, in LLVM IR.

What there is: assignments to names and to entries of arrays, ``for`` over ranges and arrays, ``while``, ``if``,
``break``, ``continue``, ``return``; arithmetic and comparisons of integers and words (see `values`); floats, in
double precision; entries, rows, slices and shapes of arrays, tuples of arrays of one type; ``len``, ``min``, ``max``,
``abs``, ``np.int64``, ``np.uint64``; constants of the module, as they are when the function is compiled; and calls of
other such functions, which are inlined. A name has one type. Places in arrays are not checked, and never count from the
end. What there is not is a `SyntaxError` that names file and line.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import linecache
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..sources import syntax_of
from .code import Code
from .instructions import fetch, read_through, trailing_zeros
from .tile_code import WRITERS, Tiles
from .values import BOOL, INT, TASK, Array, Type, Value, constant, part_types

_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
LINE = 64  # bytes of memory that come together
_DECLARATIONS = """declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.cttz.i64(i64, i1)
declare double @llvm.sqrt.f64(double)
declare float @llvm.sqrt.f32(float)"""

Result = Value | list[Value] | None  # a list for a tuple


def translated(function: Callable, kinds: tuple[Type, ...], symbol: str) -> tuple[str, Type | None]:
    """The text of ``i64 symbol(ptr, ptr)``, which is given where the parts of all arguments are listed and where the
    words of a task are, and what it returns.

    kinds : of the arguments
    """
    code, listed = Code(), kinds[:-1] if kinds[-1:] == (TASK,) else kinds
    ends = itertools.accumulate((len(part_types(k)) for k in listed), initial=0)
    arguments = [code.listed(kind, "%arguments", str(first)) for kind, first in zip(listed, ends, strict=False)]
    if len(listed) < len(kinds):
        arguments.append(Value(Array(np.dtype(np.int64), 1, True), ("%task", "0")))
    result = _Function(code, function).inlined(arguments)
    if isinstance(result, list) or (result and not isinstance(result.type, str)):
        raise TypeError(f"{function.__name__}: what is called from Python returns a number or nothing")
    returned = code.as_int(result).text if result and result.type == BOOL else result.text if result else "0"
    head = [f"define i64 @{symbol}(ptr %arguments, ptr %task) {{", *code.variables]
    text = "\n".join([_DECLARATIONS, *head, *code.lines, f"  ret i64 {returned}", "}"])
    return text, result.type if result else None


@functools.cache
def _parsed(function: FunctionType) -> ast.FunctionDef:
    """The syntax of a function, without the rest of its file."""
    lines = linecache.getlines(function.__code__.co_filename)[function.__code__.co_firstlineno - 1 :]
    indent = len(lines[0]) - len(lines[0].lstrip())
    lines = [line[indent:] or "\n" for line in lines]
    body = next(n for n, line in enumerate(lines) if line.startswith("def ")) + 1
    end = next((n for n, line in enumerate(lines[body:], body) if line[0] not in " )#\n"), len(lines))
    (found,) = syntax_of("".join(lines[:end])).body
    assert isinstance(found, ast.FunctionDef)
    return found


class _Function:
    """One function, written into the text of that which calls it."""

    def __init__(self, code: Code, function: Any):
        self.code, self.function = code, getattr(function, "python", function)
        self.tree = _parsed(self.function)
        self.assigned = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.names: dict[str, Value] = {}  # of parameters that stay what they are
        self.variables: dict[str, Value] = {}
        self.results: list[Value] | None = None
        self.exit, self.returns_tuple = code.name(), False
        self.loops: list[tuple[str, str]] = []  # where the next turn of each begins, and where it ends

    def inlined(self, arguments: list[Value]) -> Result:
        """What the function returns."""
        parameters = [a.arg for a in self.tree.args.args]
        if len(parameters) != len(arguments):
            raise TypeError(f"{self.function.__name__} takes {len(parameters)} arguments, not {len(arguments)}")
        for name, value in zip(parameters, arguments, strict=True):
            if name in self.assigned:
                self.assign(name, value)
            else:
                self.names[name] = value
        self.block(self.tree.body)
        self.code.label(self.exit)
        if self.results is None:
            return None
        found = [self.code.get(r) for r in self.results]
        return found if self.returns_tuple else found[0]

    # -- statements -------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            try:
                self._handler(statement, "do")(statement)
            except TypeError as error:
                path, first = self.function.__code__.co_filename, self.function.__code__.co_firstlineno
                line = first + statement.lineno - 1
                raise SyntaxError(str(error), (path, line, None, linecache.getline(path, line))) from error

    def _handler(self, node: ast.AST, prefix: str) -> Callable[[Any], Any]:
        found = getattr(self, f"{prefix}_{type(node).__name__}", None)
        if found is None:
            raise TypeError(f"compiled functions have no {type(node).__name__}")
        return found

    def assign(self, name: str, value: Value) -> None:
        if name not in self.variables:
            self.variables[name] = self.code.variable(value.type)
        self.code.set(self.variables[name], value)

    def put(self, target: ast.expr, value: Result) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, list) and len(value) == len(target.elts):
            for part, of_part in zip(target.elts, value, strict=True):
                self.put(part, of_part)
        elif isinstance(target, ast.Name) and isinstance(value, Value):
            self.assign(target.id, value)
        elif isinstance(target, ast.Subscript) and isinstance(value, Value):
            self.code.put(self.value(target.value), self._indices(target), value)
        else:
            raise TypeError(f"{ast.unparse(target)} cannot be assigned to")

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.result(node.value)
        for target in node.targets:
            self.put(target, value)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        before = self.value(node.target)
        self.put(node.target, self.code.binary(self._sign(node.op), before, self.value(node.value)))

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.result(node.value)

    def do_Return(self, node: ast.Return) -> None:
        value = self.result(node.value) if node.value else None
        found = value if isinstance(value, list) else [value] if value else []
        if self.results is None and found:
            self.results, self.returns_tuple = [self.code.variable(v.type) for v in found], isinstance(value, list)
        for place, part in zip(self.results or [], found, strict=True):
            self.code.set(place, part)
        self.code.go(self.exit)

    def do_If(self, node: ast.If) -> None:
        yes, no, after = (self.code.name() for _ in range(3))
        self.code.branch(self.truth(node.test), yes, no)
        self.code.label(yes)
        self.block(node.body)
        self.code.go(after)
        self.code.label(no)
        self.block(node.orelse)
        self.code.label(after)

    def do_While(self, node: ast.While) -> None:
        again, body, after = (self.code.name() for _ in range(3))
        self.code.label(again)
        self.code.branch(self.truth(node.test), body, after)
        self._turn(node, body, again, after)
        self.code.go(again)
        self.code.label(after)

    def _turn(self, node: ast.While | ast.For, body: str, again: str, after: str) -> None:
        """What a loop does in one turn."""
        if node.orelse:
            raise TypeError("loops have no else")
        self.code.label(body)
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()

    def do_For(self, node: ast.For) -> None:
        begin, end, step, item = self._range(node.iter)
        counter = self.code.variable(INT)
        self.code.set(counter, begin)
        head, body, again, after = (self.code.name() for _ in range(4))
        self.code.label(head)
        number = self.code.get(counter)
        self.code.branch(self.code.compare("<" if step > 0 else ">", number, end), body, after)
        self.code.label(body)
        self.put(node.target, item(number))
        self._turn(node, self.code.name(), again, after)
        self.code.label(again)
        self.code.set(counter, self.code.binary("+", number, constant(step)))
        self.code.go(head)
        self.code.label(after)

    def _range(self, node: ast.expr) -> tuple[Value, Value, int, Callable[[Value], Value]]:
        """Where a loop begins and ends, by how much it steps, and what it goes through, by number."""
        if isinstance(node, ast.Call) and self.known(node.func) is range:
            bounds = [self.code.as_int(self.value(a)) for a in node.args]
            begin, end, step = [constant(0), *bounds, constant(1)] if len(bounds) == 1 else [*bounds, constant(1)][:3]
            if not step.is_literal:
                raise TypeError("ranges step by constants")
            return begin, end, step.constant, lambda number: number  # type: ignore[return-value]
        array = self.value(node)
        if not isinstance(array.type, Array):
            raise TypeError("loops go through ranges and arrays")
        return constant(0), Value(INT, (array.parts[1],)), 1, lambda number: self.code.entry(array, [number])

    def do_Break(self, node: ast.Break) -> None:
        self.code.go(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.code.go(self.loops[-1][0])

    # -- expressions ------------------------------------------------------------------------------------

    def result(self, node: ast.expr) -> Result:
        return self._handler(node, "of")(node)

    def value(self, node: ast.expr) -> Value:
        found = self.result(node)
        if not isinstance(found, Value):
            raise TypeError(f"{ast.unparse(node)} is no single value")
        return found

    def truth(self, node: ast.expr) -> Value:
        """Of a condition."""
        if isinstance(node, ast.BoolOp):
            return self.of_BoolOp(node)
        return self.code.truth(self.value(node))

    def known(self, node: ast.expr) -> Any:
        """What a name of the module stands for."""
        if isinstance(node, ast.Attribute):
            return getattr(self.known(node.value), node.attr, None)
        name = node.id if isinstance(node, ast.Name) else ""
        if name in self.assigned or name in self.names or not name:
            raise TypeError(f"{ast.unparse(node)} is not known before the function runs, or not yet")
        return self.function.__globals__.get(name, getattr(builtins, name, None))

    def of_Name(self, node: ast.Name) -> Value:
        if node.id in self.variables:
            return self.code.get(self.variables[node.id])
        return self.names[node.id] if node.id in self.names else constant(self.known(node))

    def of_Constant(self, node: ast.Constant) -> Value:
        return constant(node.value)

    def of_Attribute(self, node: ast.Attribute) -> Value:
        return constant(self.known(node))

    def of_Tuple(self, node: ast.Tuple) -> list[Value]:
        return [self.value(part) for part in node.elts]

    def of_Subscript(self, node: ast.Subscript) -> Value:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return Value(INT, (self.value(node.value.value).parts[1:][ast.literal_eval(node.slice)],))
        array = self.value(node.value)
        *indices, last = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(last, ast.Slice):
            return self.code.entry(array, self._indices(node))
        if last.step:
            raise TypeError("slices have no steps")
        if indices:
            array = self.code.entry(array, [self.value(i) for i in indices])
        bounds = (self.value(bound) if bound else None for bound in (last.lower, last.upper))
        return self.code.sliced(array, *bounds)

    def _indices(self, node: ast.Subscript) -> list[Value]:
        return [self.value(i) for i in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])]

    def of_BinOp(self, node: ast.BinOp) -> Value:
        return self.code.binary(self._sign(node.op), self.value(node.left), self.value(node.right))

    def _sign(self, node: ast.AST) -> str:
        if type(node) not in _SIGNS:
            raise TypeError(f"compiled functions have no {type(node).__name__}")
        return _SIGNS[type(node)]

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.code.compare("==", self.truth(node.operand), constant(False))
        if not isinstance(node.op, ast.USub):
            raise TypeError(f"compiled functions have no {type(node.op).__name__}")
        return self.code.binary("-", constant(0), self.value(node.operand))

    def of_Compare(self, node: ast.Compare) -> Value:
        values = [self.value(part) for part in [node.left, *node.comparators]]
        pairs = zip(node.ops, itertools.pairwise(values), strict=True)
        return functools.reduce(
            lambda one, other: self.code.binary("&", one, other),
            [self.code.compare(self._sign(op), *pair) for op, pair in pairs],
        )

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        """A truth; what follows the first that decides is not evaluated."""
        found, after = self.code.variable(BOOL), self.code.name()
        for part in node.values:
            self.code.set(found, self.truth(part))
            more = self.code.name()
            self.code.branch(self.code.get(found), *((more, after) if isinstance(node.op, ast.And) else (after, more)))
            self.code.label(more)
        self.code.label(after)
        return self.code.get(found)

    def of_IfExp(self, node: ast.IfExp) -> Value:
        yes, no, after = (self.code.name() for _ in range(3))
        self.code.branch(self.truth(node.test), yes, no)
        self.code.label(yes)
        value = self.value(node.body)
        found = self.code.variable(value.type)
        self.code.set(found, value)
        self.code.go(after)
        self.code.label(no)
        self.code.set(found, self.value(node.orelse))
        self.code.label(after)
        return self.code.get(found)

    def of_Call(self, node: ast.Call) -> Result:
        called = self.known(node.func)
        if node.keywords:
            raise TypeError("arguments are given in order")
        arguments = [self.value(a) for a in node.args]
        if called in _FUNCTIONS:
            return _FUNCTIONS[called](self.code, arguments)
        if not isinstance(getattr(called, "python", called), FunctionType):
            raise TypeError(f"{ast.unparse(node.func)} is no function that can be compiled")
        return _Function(self.code, called).inlined(arguments)


def _length(code: Code, arguments: list[Value]) -> Value:
    return Value(INT, (arguments[0].parts[1],))


def _magnitude(code: Code, arguments: list[Value]) -> Value:
    return code.most([arguments[0], code.binary("-", constant(0), arguments[0])])


def _fetched(code: Code, arguments: list[Value]) -> None:
    place = code.view(arguments[0], [arguments[1]])
    code.do(f"call void @llvm.prefetch.p0(ptr {place.text}, i32 0, i32 3, i32 1)")  # to read, to keep, data


def _read(code: Code, arguments: list[Value]) -> None:
    """One number of each line of memory."""
    array, begin, end = arguments
    tiles = Tiles(code, array)
    line = LINE // tiles.size
    count = tiles.whole("sdiv", tiles.whole("add", tiles.whole("sub", end.text, begin.text), line - 1), line)
    with tiles.summing(count, []) as (turn, _, _):
        place = tiles.at(array, tiles.whole("add", begin.text, tiles.whole("mul", turn, line)))
        code.let(f"load volatile {tiles.scalar}, ptr {place}, align {tiles.size}")


def _zeros(code: Code, arguments: list[Value]) -> Value:
    return Value(INT, (code.let(f"call i64 @llvm.cttz.i64(i64 {arguments[0].text}, i1 true)"),))


_FUNCTIONS: dict[Any, Callable[[Code, list[Value]], Value | None]] = {
    len: _length,
    min: lambda code, arguments: code.least(arguments),
    max: lambda code, arguments: code.most(arguments),
    abs: _magnitude,
    np.int64: lambda code, arguments: code.to_int(*arguments),
    np.uint64: lambda code, arguments: code.as_word(*arguments),
    fetch: _fetched,
    read_through: _read,
    trailing_zeros: _zeros,
    **WRITERS,
}
