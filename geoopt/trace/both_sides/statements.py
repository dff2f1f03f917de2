"""Statements, rewritten. Lines stay where they are.

An ``if`` becomes a loop over its sides (`runtime.Branch`). ``return``, ``break`` and ``continue`` become flags: what
comes after a statement that may have set one is a branch itself.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...symbolic.caught import errors_in
from ...symbolic.checks import no_branches
from .changing_statements import MOMENT, Changing
from .contents import SCOPES, always_ends, error_at_end, has, names_given, parts, read_later
from .expressions import (
    OWN,
    Unrewritable,
    assigned,
    at,
    called,
    given_again,
    later,
    listed,
    method_call,
    name,
    own,
    rewritten,
    variables,
)

Function = ast.FunctionDef | ast.Lambda
_LEFT, _VALUE = f"{OWN}left", f"{OWN}value"  # of a function: whether it has returned, and what
_BRANCH, _SIDE = f"{OWN}branch", f"{OWN}side"  # with numbers: none is read after its statement
_UNCHANGED = (*SCOPES, ast.Import, ast.ImportFrom, ast.Pass)


def rewrite(tree: ast.Module, functions: list[Function]) -> None:
    """Rewrite some functions of a module where they are.

    Raises Unrewritable.
    """
    _, complaints, spare = no_branches(tree)
    kept = {id(n) for n in (*complaints, *spare)}
    for function in functions:
        if isinstance(function, ast.Lambda):
            function.body = rewritten(function.body)
        else:
            function.body = _Statements(kept).of(function)
    ast.fix_missing_locations(tree)


@dataclass(frozen=True)
class _Flags:
    """The names of the flags of a loop."""

    broken: str
    skipped: str  # in this turn


class _Statements(Changing):
    """Those of one function. Each method gives what one statement becomes, which itself is no longer what it was."""

    def __init__(self, kept: set[int]):
        super().__init__()
        self.kept = kept  # ids of branches that do nothing but complain, or may be left out
        self.loops: list[_Flags] = []  # around the statement

    def of(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """What the statements of a function become."""
        statements = function.body
        self.wanted = read_later(function)
        returns = {id(n) for n in parts(statements) if isinstance(n, ast.Return)}
        self.has_flag = bool(returns - {id(statements[-1])})
        if not self.has_flag:
            return self._block(statements)
        first, last = statements[0], statements[-1]
        if not always_ends(statements):
            statements = [*statements, at(ast.Return(None), last)]
        begin = [assigned(_LEFT, ast.Constant(False), first), assigned(_VALUE, own("UNSET"), first)]
        return [*begin, *self._block(statements), at(ast.Return(called("returned", name(_VALUE))), last)]

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            flags, rest = self._flags_in(statement), statements[i + 1 :]
            found += self._statement(statement)
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                break  # nobody gets here
            if flags and rest:
                goes_on, raises = called("none", *map(name, flags)), (error_at_end(rest), "")
                return [*found, *self._branch(goes_on, (self._block(rest), []), raises, statement)]
        return found

    def _flags_in(self, statement: ast.stmt) -> list[str]:
        """The flags that a statement may set of the loop around it, and of the function."""
        if id(statement) in self.kept:
            return []
        flags = [_LEFT] if self.has_flag and has(ast.Return, [statement]) else []
        if self.loops:
            flags += [self.loops[-1].broken] if has(ast.Break, [statement], into_loops=False) else []
            flags += [self.loops[-1].skipped] if has(ast.Continue, [statement], into_loops=False) else []
        return flags

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        method = getattr(self, f"_{type(statement).__name__.lower()}", None)
        if method is not None:
            return method(statement)
        if isinstance(statement, _UNCHANGED):
            return [statement]
        raise Unrewritable(type(statement).__name__)

    # -- what decides where the code goes on ----------------------------------------------------------

    def _if(self, statement: ast.If) -> list[ast.stmt]:
        test = rewritten(statement.test)
        if id(statement) in self.kept:
            errors = map(ast.Constant, errors_in(statement))
            statement.test = at(called("complaint", test, *errors), test)
            return [statement]
        raises = (error_at_end(statement.body), error_at_end(statement.orelse))
        return self._branch(test, (self._block(statement.body), self._block(statement.orelse)), raises, statement)

    def _branch(
        self, test: ast.expr, sides: tuple[list, list], raises: tuple[str, str], place: ast.stmt
    ) -> list[ast.stmt]:
        """Code for a branch with two rewritten sides::

        branch = Branch(test, names, locals(), raises)
        for side in branch:
            if side: ...
            else: ...
            names = branch.left(locals())
            if name is UNSET: del name      # for each of the names
        """
        branch, side = self.new(_BRANCH), self.new(_SIDE)
        body, orelse = sides
        names = _variables_given([*body, *orelse])
        each: list[ast.stmt] = [ast.If(name(side), body or [ast.Pass()], orelse)]
        if names:
            each += given_again(names, branch, "left")
            each.append(ast.Expr(variables()))  # a frame's dictionary of them has what it had when it was asked for
        loop = ast.For(ast.Name(side, ast.Store()), name(branch), each, [])
        made = called("Branch", test, listed(names), variables(), listed(raises))
        return [assigned(branch, made, place), at(loop, place)]

    def _for(self, statement: ast.For) -> list[ast.stmt]:
        statement.iter = rewritten(statement.iter)
        if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in ast.walk(statement.target)):
            raise Unrewritable("a loop into parts of things")
        wanted, raises = self.wanted[id(statement)], error_at_end(statement.body)
        body, leaves = self._turn(statement)
        begin, orelse = self._around(statement, leaves)
        if not leaves:
            statement.body, statement.orelse = body, []
            return [statement, *orelse]
        loop, count = self.new(_BRANCH), self.new(f"{OWN}count")
        stays = called("none", *map(name, leaves))
        body = [at(ast.Assign([statement.target], method_call(loop, "item", name(count))), statement), *body]
        turn = self._branch(method_call(loop, "rest", stays), (body, []), (raises, ""), statement)
        turn.append(assigned(count, ast.BinOp(name(count), ast.Add(), ast.Constant(1)), statement))
        begin.append(assigned(count, ast.Constant(0), statement))
        found = self._turns(loop, ("For", [statement.iter]), ([stays, name(count)], turn), wanted, statement)
        return [*begin, *found, *orelse]

    def _while(self, statement: ast.While) -> list[ast.stmt]:
        wanted = self.wanted[id(statement)]
        test, (body, leaves) = rewritten(statement.test), self._turn(statement)
        if leaves:
            test = called("both", called("none", *map(name, leaves)), later(test))
        begin, orelse = self._around(statement, leaves)
        found = self._turns(self.new(_BRANCH), ("While", []), ([test], body), wanted, statement)
        return [*begin, *found, *orelse]

    def _turns(
        self, loop: str, kind: tuple[str, list], turn: tuple[list, list], wanted: frozenset[str], place: ast.stmt
    ) -> list[ast.stmt]:
        """Code for a loop that may run as often as values decide::

        loop = While(names)                 # that are read after the loop, or in the next turn
        for turn in loop:
            names = loop.begin(locals())    # and those that are UNSET are deleted
            if loop.goes_on(test): ...
            names = loop.end(locals())

        kind : of the loop, and what it is made of besides;  turn : the test, and what is done then
        """
        test, body = turn
        names = [n for n in _variables_given([*body, *map(ast.Expr, test)]) if n.startswith(OWN) or n in wanted]
        each = [*given_again(names, loop, "begin"), at(ast.If(method_call(loop, "goes_on", *test), body, []), place)]
        each += [*given_again(names, loop, "end"), ast.Expr(variables())]
        made = assigned(loop, called(kind[0], listed(names), *kind[1]), place)
        return [made, at(ast.For(ast.Name(self.new(_SIDE), ast.Store()), name(loop), each, []), place)]

    def _turn(self, statement: ast.For | ast.While) -> tuple[list[ast.stmt], list[str]]:
        """The code of a turn of a loop, and the flags that it may set so that there is no other."""
        loop = _Flags(self.new(f"{OWN}broken"), self.new(f"{OWN}skipped"))
        leaves = [loop.broken] if has(ast.Break, statement.body, into_loops=False) else []
        leaves += [_LEFT] if self.has_flag and has(ast.Return, statement.body) else []
        skips = has(ast.Continue, statement.body, into_loops=False)
        self.loops.append(loop)
        body = self._block(statement.body)
        self.loops.pop()
        if skips:
            body = [assigned(loop.skipped, ast.Constant(False), statement), *body]
        return body, leaves

    def _around(self, statement: ast.For | ast.While, leaves: list[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What is done before a loop, and what after it if it was not left. leaves : its flags"""
        begin: list[ast.stmt] = [assigned(f, ast.Constant(False), statement) for f in leaves if f != _LEFT]
        raises, orelse = error_at_end(statement.orelse), self._block(statement.orelse)
        if orelse and leaves:
            orelse = self._branch(called("none", *map(name, leaves)), (orelse, []), (raises, ""), statement)
        return begin, orelse

    def _return(self, statement: ast.Return) -> list[ast.stmt]:
        value = rewritten(statement.value) if statement.value else ast.Constant(None)
        if self.has_flag:
            return [assigned(_VALUE, value, statement), assigned(_LEFT, ast.Constant(True), statement)]
        statement.value = at(called("returned", value), statement)
        return [statement]

    def _break(self, statement: ast.Break) -> list[ast.stmt]:
        return [assigned(self.loops[-1].broken, ast.Constant(True), statement)]

    def _continue(self, statement: ast.Continue) -> list[ast.stmt]:
        return [assigned(self.loops[-1].skipped, ast.Constant(True), statement)]

    def _assert(self, statement: ast.Assert) -> list[ast.stmt]:
        statement.test = at(called("assertion", rewritten(statement.test)), statement.test)
        return [statement]

    def _with(self, statement: ast.With) -> list[ast.stmt]:
        for item in statement.items:
            item.context_expr = rewritten(item.context_expr)
        statement.body = self._block(statement.body)
        return [statement]

    def _try(self, statement: ast.Try) -> list[ast.stmt]:
        for part in (statement, *statement.handlers):
            part.body = self._block(part.body)
        statement.orelse, statement.finalbody = self._block(statement.orelse), self._block(statement.finalbody)
        return [statement]


def _variables_given(statements: list[ast.stmt]) -> list[str]:
    """The names that rewritten statements give to values which are read after them."""
    return sorted(n for n in names_given(statements) if not n.startswith((_BRANCH, _SIDE, MOMENT)))
