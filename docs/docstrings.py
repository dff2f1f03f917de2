"""Docstrings of this project, which are plain text with lines such as ``V : (n, 3) positions [m];  F : (m, 3) faces``,
as reStructuredText: such lines become lists, and characters with a meaning in reStructuredText are escaped. Examples
stay as they are, for numpydoc."""

from __future__ import annotations

import re
from typing import Any

NAMES = r"[*A-Za-z_][\w*]*(?:, \w+)*"
ITEM = re.compile(rf"^({NAMES}) : (.*)$")
NEXT = re.compile(rf"[;.]  ?(?={NAMES} : )")


def escaped(line: str) -> str:
    """Special characters outside of backticks escaped."""
    parts = re.split(r"(``.*?``|`[^`]+`)", line)
    return "".join(p if i % 2 else re.sub(r"([|*\\]|_(?!\w))", r"\\\1", p) for i, p in enumerate(parts))


def listed(lines: list[str]) -> list[str]:
    """Lines of a docstring, in which those that begin with names are items of lists."""
    given, in_item = [], False
    for line in lines:
        found = ITEM.match(line)
        if found:
            if not in_item and given and given[-1]:
                given.append("")
            for part in NEXT.split(line):
                name, text = ITEM.match(part).groups()  # type: ignore[union-attr]
                given.append(f"- **{escaped(name)}** : {escaped(text)}")
            in_item = True
        elif in_item and (line.startswith("    ") or _goes_on(given[-1], line)):
            given.append("  " + escaped(line.strip()))
        elif line.startswith(">>>"):
            given += ["", line] if given and given[-1] and not given[-1].startswith(">>>") else [line]
            in_item = False
        else:
            if in_item and line.strip():
                given.append("")
            in_item = False
            given.append(escaped(line))
    return given


def _goes_on(item: str, line: str) -> bool:
    return line[:1].islower() and not item.endswith((".", "]", ")"))


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Of the event ``autodoc-process-docstring``."""
    begin = lines.index("Examples") if "Examples" in lines else len(lines)
    is_numpydoc = any(re.fullmatch(r" *---+", line) for line in lines[:begin])  # inherited from NumPy
    if what != "module" and not is_numpydoc:
        lines[:] = [*listed(lines[:begin]), *lines[begin:]]


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before numpydoc
    return {"parallel_read_safe": True}
