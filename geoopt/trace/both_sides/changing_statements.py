"""Statements that change something, rewritten: values are stored by functions of `runtime`."""

from __future__ import annotations

import ast

from .expressions import OWN, assigned, at, called, key, name, rewritten, stored

MOMENT = f"{OWN}moment"  # with a number: what only one statement needs
_IN_PLACE = {  # names of `operator`'s
    **{ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv"},
    **{ast.Mod: "imod", ast.Pow: "ipow", ast.MatMult: "imatmul", ast.BitAnd: "iand", ast.BitOr: "ior"},
    **{ast.BitXor: "ixor", ast.LShift: "ilshift", ast.RShift: "irshift"},
}


class Changing:
    """The part of `statements.rewrite` that is of these. Each method gives what one statement becomes."""

    def __init__(self) -> None:
        self.count = 0
        self.moments: list[str] = []  # names of what one statement needs for a moment

    def _expr(self, statement: ast.Expr) -> list[ast.stmt]:
        statement.value = rewritten(statement.value)
        return [statement]

    def _raise(self, statement: ast.Raise) -> list[ast.stmt]:
        if statement.exc:
            statement.exc = rewritten(statement.exc)
        return [statement]

    def _assign(self, statement: ast.Assign) -> list[ast.stmt]:
        stores: list[ast.stmt] = []
        statement.value = rewritten(statement.value)
        statement.targets = [self._target(t, stores, statement) for t in statement.targets]
        return [statement, *stores, *self._forgotten(statement)] if stores else [statement]

    def _annassign(self, statement: ast.AnnAssign) -> list[ast.stmt]:
        if statement.value is None:
            return [statement]
        return self._assign(at(ast.Assign([statement.target], statement.value), statement))

    def _target(self, target: ast.expr, stores: list[ast.stmt], place: ast.stmt) -> ast.expr:
        """What a value is assigned to: a name, also in the place of an entry or attribute, which it is stored into
        afterwards."""
        if isinstance(target, ast.Name):
            return target
        if isinstance(target, ast.Starred):
            target.value = self._target(target.value, stores, place)
            return target
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(t, stores, place) for t in target.elts]
            return target
        value = self.new(MOMENT)
        stores.append(at(ast.Expr(stored(rewritten(target), name(value))), place))
        return at(ast.Name(value, ast.Store()), target)

    def _augassign(self, statement: ast.AugAssign) -> list[ast.stmt]:
        target, value = statement.target, rewritten(statement.value)
        operation = ast.Constant(_IN_PLACE[type(statement.op)])
        if isinstance(target, ast.Name):
            return [assigned(target.id, called("in_place", operation, name(target.id), value), statement)]
        target = rewritten(target)
        owner = self.new(MOMENT)
        found: list[ast.stmt] = [assigned(owner, target.value, statement)]
        target.value, target.ctx = name(owner), ast.Load()
        if isinstance(target, ast.Subscript):
            index = self.new(MOMENT)
            found.append(assigned(index, key(target.slice), statement))
            target.slice = name(index)
        changed = called("in_place", operation, target, value)
        return [*found, at(ast.Expr(stored(target, changed)), statement), *self._forgotten(statement)]

    def new(self, begin: str) -> str:
        self.count += 1
        made = f"{begin}{self.count}"
        if begin == MOMENT:
            self.moments.append(made)
        return made

    def _forgotten(self, statement: ast.stmt) -> list[ast.stmt]:
        """Code that forgets what only one statement needed, so that what nobody has any more may be changed."""
        names, self.moments = self.moments, []
        return [at(ast.Delete([ast.Name(n, ast.Del()) for n in names]), statement)]
