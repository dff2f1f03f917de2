"""The functions whose code is replaced while a function is traced, by code that runs both sides of its branches."""

from __future__ import annotations

import ast
import dis
import functools
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import CodeType, FunctionType

from ...sources import source_of, syntax_of
from ...symbolic.checks import no_branches
from ..interrupts import held
from . import runtime
from .expressions import RUNTIME, Unrewritable
from .statements import Function, rewrite

_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # code of its own that is part of a function
_Place = tuple[str, int]  # name and first line of a function

_JUMPS = {*dis.hasjrel, *dis.hasjabs}

_lock = threading.Lock()
# of functions whose code is replaced: what it was, and how many traces have replaced it
_replaced: dict[FunctionType, tuple[CodeType, int]] = {}


class Rewritten:
    """The functions that are to run both sides of their branches in one trace."""

    def __init__(self) -> None:
        self._places: dict[str, frozenset[_Place]] = {}  # by file
        self._codes: dict[FunctionType, CodeType] = {}

    def add(self, code: CodeType) -> bool:
        """Have the function rewritten that code is, or is part of. Returns whether it can be, and has not been yet."""
        file = code.co_filename
        place, before = _place_of(code), self._places.get(file, frozenset())
        if place is None or place in before:
            return False
        self._places[file] = before | {place}
        codes = _codes(source_of(file), file, self._places[file])
        found = {f: _replacement(_code_of(f), codes) for f in _functions(file)} if codes else {}
        self._codes.update((f, code) for f, code in found.items() if code)
        return any(found.values())

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While this is open, the functions have their other code, under every name and in every place. Threads that
        call them with known values get what they always get. Interrupts wait, but for what is `allowed` within."""
        with held() if self._codes else nullcontext():
            try:
                for function, code in self._codes.items():
                    _put(function, code)
                yield
            finally:
                for function in self._codes:
                    _take_back(function)


def _put(function: FunctionType, code: CodeType) -> None:
    with _lock:
        before, count = _replaced.get(function, (function.__code__, 0))
        _replaced[function] = before, count + 1
        function.__code__ = code


def _take_back(function: FunctionType) -> None:
    with _lock:
        before, count = _replaced.pop(function)
        if count > 1:
            _replaced[function] = before, count - 1
        else:
            function.__code__ = before


def _functions(file: str) -> list[FunctionType]:
    return [x for x in gc.get_objects() if type(x) is FunctionType and _code_of(x).co_filename == file]


def _code_of(function: FunctionType) -> CodeType:
    return _replaced[function][0] if function in _replaced else function.__code__


def _replacement(code: CodeType, codes: dict[CodeType, CodeType]) -> CodeType | None:
    """What code becomes. Test runners compile assertions otherwise than Python does."""
    if code in codes:
        return codes[code]
    place = code.co_name, code.co_firstlineno
    alike = [c for c in codes if (c.co_name, c.co_firstlineno) == place and c.co_freevars == code.co_freevars]
    asserted = _asserted(source_of(code.co_filename)) if alike else frozenset()
    return next((codes[c] for c in alike if _does(c, asserted) == _does(code, asserted)), None)


def _does(code: CodeType, asserted: frozenset[int]) -> list[tuple[str, str]]:
    """The instructions of code, but for those of some lines. Jumps go to where the code between puts their aims."""
    found = [i for i in dis.get_instructions(code) if i.positions and i.positions.lineno not in asserted]
    known = [i for i in found if i.opname != "EXTENDED_ARG"]
    return [(i.opname, "" if i.opcode in _JUMPS or isinstance(i.argval, CodeType) else i.argrepr) for i in known]


@functools.lru_cache(maxsize=8)
def _asserted(source: str) -> frozenset[int]:
    """The lines with assertions."""
    assertions, _, _ = no_branches(syntax_of(source))
    return frozenset(line for a in assertions for line in range(a.lineno, (a.end_lineno or a.lineno) + 1))


def _place_of(code: CodeType) -> _Place | None:
    """Of the function that code is, or is part of; None where its file does not have it."""
    if code.co_name not in _PARTS:
        return code.co_name, code.co_firstlineno
    module = _compiled(source_of(code.co_filename), code.co_filename)
    around = _path_to(code, module) if module else []
    return next(((c.co_name, c.co_firstlineno) for c in reversed(around) if c.co_name not in _PARTS), None)


def _path_to(code: CodeType, around: CodeType) -> list[CodeType]:
    """Of the code that is around other code, the outermost first."""
    for inner in _within(around):
        if inner == code:
            return [around]
        if path := _path_to(code, inner):
            return [around, *path]
    return []


@functools.lru_cache(maxsize=8)
def _compiled(source: str, file: str) -> CodeType | None:
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except SyntaxError:
        return None


@functools.lru_cache(maxsize=8)
def _codes(source: str, file: str, places: frozenset[_Place]) -> dict[CodeType, CodeType]:
    """The code of functions of a file, and of those around them, with what it becomes if they are rewritten; nothing
    where they cannot be."""
    before = _compiled(source, file)
    if before is None or not source:
        return {}
    tree = syntax_of(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, Function) and _place(n) in places]
    try:
        rewrite(tree, functions)
        after = compile(tree, file, "exec", dont_inherit=True)
    except (Unrewritable, SyntaxError):
        return {}
    return dict(_changed(before, _with_module(after)))


def _place(node: Function) -> _Place:
    if isinstance(node, ast.Lambda):
        return "<lambda>", node.lineno
    return node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _within(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _with_module(code: CodeType) -> CodeType:
    """Code in which the module is that rewritten code calls."""
    kinds = {CodeType: _with_module, str: lambda text: runtime if text == RUNTIME else text}
    return code.replace(co_consts=tuple(kinds.get(type(c), lambda x: x)(c) for c in code.co_consts))  # type: ignore


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Code, and what it has become, where that is something else. Lambdas are new in rewritten functions."""
    if before == after or len(before.co_freevars) != len(after.co_freevars):
        return
    yield before, after
    inner, changed = _within(before), _within(after)
    if len(inner) != len(changed):
        inner, changed = ([c for c in codes if not c.co_name.startswith("<")] for codes in (inner, changed))
    for one, other in zip(inner, changed, strict=True):
        yield from _changed(one, other)
