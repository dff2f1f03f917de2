"""Expressions, rewritten: ``and``, ``or``, ``not``, ``a if test else b``, chains of comparisons and calls become calls
of `runtime`; and what rewritten code consists of."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

RUNTIME = "geoopt.trace.both_sides.runtime"  # what stands for the module in rewritten code
OWN = "_geoopt_"  # how the names begin that rewritten code has besides the author's
_BY_FRAME = ("super", "locals", "globals", "vars", "eval", "exec", "dir")  # ask whose frame calls them
_COMPARED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}  # of `operator`


class Unrewritable(Exception):
    """Code that has no meaning where values decide whether it runs."""


def rewritten(node: ast.expr) -> Any:
    """An expression, rewritten. Raises Unrewritable."""
    return _Expressions().visit(node)


class _Expressions(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        first, *others = node.values
        name = "both" if isinstance(node.op, ast.And) else "either"
        return at(called(name, first, *map(later, others)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return at(called("inverse", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return at(called("choice", node.test, later(node.body), later(node.orelse)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) > 1 and all(type(op) in _COMPARED for op in node.ops):
            names = ast.Tuple([ast.Constant(_COMPARED[type(op)]) for op in node.ops], ast.Load())
            return at(called("compared", names, node.left, *map(later, node.comparators)), node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            is_same = called("same", node.left, *node.comparators)
            return at(is_same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), is_same), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if function == "sum" and node.args:
            _sum_all(node.args[0])
        self.generic_visit(node)
        if function in _BY_FRAME:
            return node
        return at(ast.Call(own("call"), [node.func, *node.args], node.keywords), node)

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        return at(called("made", node), node) if isinstance(node.ctx, ast.Load) else node

    def visit_Set(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return at(called("made", node), node)

    visit_Dict = visit_ListComp = visit_SetComp = visit_DictComp = visit_Set

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node  # code of its own

    def _refuse(self, node: ast.AST) -> ast.AST:
        raise Unrewritable(type(node).__name__)

    visit_Await = visit_Yield = visit_YieldFrom = _refuse


def at(node: Any, place: ast.AST) -> Any:
    """A new node, which has the place of one in the file."""
    return ast.copy_location(node, place)


def name(of: str) -> ast.Name:
    return ast.Name(of, ast.Load())


def own(of: str) -> ast.Attribute:
    """Something of `runtime`'s."""
    return ast.Attribute(ast.Constant(RUNTIME), of, ast.Load())


def called(function: str, *args: ast.expr) -> ast.Call:
    """The call of a function of `runtime`'s."""
    return ast.Call(own(function), list(args), [])


def variables() -> ast.Call:
    """All that there are in a function."""
    return ast.Call(name("locals"), [], [])


def assigned(to: str, value: ast.expr, place: ast.stmt) -> ast.Assign:
    return at(ast.Assign([at(ast.Name(to, ast.Store()), place)], value), place)


def key(index: ast.expr) -> ast.expr:
    """What stands between brackets, as an expression of its own."""
    if isinstance(index, ast.Slice):
        parts = (index.lower, index.upper, index.step)
        return ast.Call(own("slice"), [x or ast.Constant(None) for x in parts], [])
    if isinstance(index, ast.Tuple):
        return ast.Tuple([key(x) for x in index.elts], ast.Load())
    return index


def stored(target: ast.expr, value: ast.expr) -> ast.Call:
    """``target = value`` for an entry, a slice or an attribute."""
    if isinstance(target, ast.Subscript):
        return called("store", target.value, key(target.slice), value)
    assert isinstance(target, ast.Attribute)
    return called("set_attribute", target.value, ast.Constant(target.attr), value)


def _sum_all(summands: ast.expr) -> None:
    """Make what a comprehension leaves out zero."""
    if isinstance(summands, (ast.GeneratorExp, ast.ListComp)) and (tests := summands.generators[-1].ifs):
        test = tests[0] if len(tests) == 1 else at(ast.BoolOp(ast.And(), tests), tests[0])
        summands.elt = at(ast.IfExp(test, summands.elt, at(ast.Constant(0), test)), summands.elt)
        summands.generators[-1].ifs = []


def later(value: ast.expr) -> ast.Lambda:
    if any(isinstance(part, ast.NamedExpr) for part in ast.walk(value)):
        raise Unrewritable("a name that would be given in a function of its own")
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return at(ast.Lambda(nothing, value), value)


def given_again(names: list[str], of: str, method: str) -> list[ast.stmt]:
    """Code that gives the names to what a method of a branch or a loop says they are, or deletes them."""
    found = method_call(of, method, variables())
    if not names:
        return [ast.Expr(found)]
    given: list[ast.stmt] = [ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], found)]
    for each in names:
        is_unset = ast.Compare(name(each), [ast.Is()], [own("UNSET")])
        given.append(ast.If(is_unset, [ast.Delete([ast.Name(each, ast.Del())])], []))
    return given


def method_call(of: str, method: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(name(of), method, ast.Load()), list(args), [])


def listed(texts: Iterable[str]) -> ast.Tuple:
    return ast.Tuple([*map(ast.Constant, texts)], ast.Load())
