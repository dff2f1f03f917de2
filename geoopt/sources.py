"""The text and the syntax of files with traced code."""

from __future__ import annotations

import ast
import linecache


def source_of(file: str) -> str:
    """The text of a file with code; none if it has none."""
    linecache.checkcache(file)  # it may have been edited and loaded again
    return "".join(linecache.getlines(file))


def syntax_of(source: str) -> ast.Module:
    """The syntax of some code, for the caller alone; SyntaxError where it is no Python.

    CPython before 3.11.8 and 3.12.2 may raise SystemError where two threads parse at a time (its issue 106905), and
    threads of others parse too.
    """
    for _ in range(100):
        try:
            return ast.parse(source)
        except SystemError:
            pass
    return ast.parse(source)


def parts_of(source: str) -> list[ast.AST]:
    """All nodes of the syntax of some code, the outer before the inner; none where it is no Python."""
    try:
        return list(ast.walk(syntax_of(source)))
    except SyntaxError:
        return []
