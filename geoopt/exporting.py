"""`Program.export`: a program as a library for C and C++, in a folder."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .codegen.c_library import Described, emit
from .errors import ArgumentError
from .output import refuse_existing, write_whole
from .plan import Schedule
from .plan.relist import relist
from .results import OfArray, OfComparison, OfDataclass, OfDict, OfMatrix, OfNumber, OfNumPyMatrix, OfSequence, Part
from .signature import Argument, Signature
from .stored_matrices import INDICES, index_arrays

C_WORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main".split()
)
CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project({name} C)
set(CMAKE_BUILD_TYPE Release CACHE STRING "how it is built")
add_library({name} {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({name} PRIVATE -O3 -march=native -fno-math-errno -fno-trapping-math)
endif()
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()
"""


def export(
    schedule: Schedule, signature: Signature, dtype: np.dtype, folder: Path, name: str | None, force: bool
) -> list[Path]:
    """Write the files of a library; gives their paths."""
    name = re.sub(r"\W", "_", signature.function) if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) or name in C_WORDS or keyword.iskeyword(name):
        raise ArgumentError(f"export(name={name!r}): choose a name that C takes for a function")
    plan = relist(schedule.plan)
    described = _described(name, signature, dtype, plan.output_shapes)
    library = emit(replace(schedule, plan=plan), dtype, described)
    texts = {f"{name}.h": library.header, f"{name}.c": library.source, "CMakeLists.txt": CMAKE.format(name=name)}
    files = {folder / file: text.encode() for file, text in texts.items()}
    files |= {} if library.tables is None else {folder / f"{name}.bin": library.tables}
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is no folder; give another name")
    refuse_existing(list(files) if folder.exists() else [], force)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        write_whole(path, lambda file, content=content: file.write(content))
    return list(files)


def _described(name: str, signature: Signature, dtype: np.dtype, shapes: tuple[tuple[int, ...], ...]) -> Described:
    patterns: dict[str, np.ndarray] = {}
    inputs = [_input(number, argument, patterns) for number, argument in enumerate(signature.arguments)]
    outputs = [f"{math.prod(shape)} numbers" for shape in shapes]
    for place, part in _placed("result", signature.result):
        if isinstance(part, OfArray):
            outputs[part.output] = f"{place}, {_shape(shapes[part.output])}"
        elif isinstance(part, OfMatrix):
            matrix: Any = part.pattern
            where = _pattern(f"output{part.output}", matrix, patterns)
            outputs[part.output] = f"{place}, the values of a {type(matrix).__name__} {_shape(matrix.shape)}: {where}"
    numbers = [
        f"[{part.entry if isinstance(part, OfNumber) else part.begin}] {place}"
        for place, part in _placed("result", signature.result)
        if isinstance(part, OfNumber | OfComparison)
    ]
    if numbers:
        outputs[-1] = f"{outputs[-1]}: {', '.join(numbers)}"
    comment = f"{signature.function}, prepared by geoopt for one structure of its arguments, in {dtype}"
    return Described(name, comment, tuple(inputs), tuple(outputs), patterns)


def _input(number: int, argument: Argument, patterns: dict[str, np.ndarray]) -> str:
    if argument.pattern is None:
        return f"{argument.name}, {_shape(argument.shape)}"
    matrix: Any = argument.pattern
    where = _pattern(f"input{number}", matrix, patterns)
    return f"{argument.name}, the values of a matrix {_shape(matrix.shape)} by rows: {where}"


def _pattern(name: str, matrix: Any, patterns: dict[str, np.ndarray]) -> str:
    """Adds the index arrays of a matrix to the tables; says which these are."""
    names = INDICES[matrix.format]
    patterns |= {f"{name}_{key}": np.asarray(a) for key, a in zip(names, index_arrays(matrix), strict=True)}
    return ", ".join(f"tables.{name}_{key}" for key in names)


def _shape(shape: tuple[int, ...]) -> str:
    return "one number" if not shape else " x ".join(map(str, shape))


def _placed(place: str, part: Part) -> Iterator[tuple[str, Part]]:
    """The parts of a result that are made of outputs, and how Python would write where they are in it."""
    if isinstance(part, OfNumPyMatrix):
        yield from _placed(place, part.part)
    elif isinstance(part, OfSequence):
        for number, inner in enumerate(part.parts):
            yield from _placed(f"{place}[{number}]", inner)
    elif isinstance(part, OfDict):
        for key, inner in zip(part.keys, part.parts, strict=True):
            yield from _placed(f"{place}[{_quoted(key)}]", inner)
    elif isinstance(part, OfDataclass):
        for field, inner in zip(part.names, part.parts, strict=True):
            yield from _placed(f"{place}.{field}", inner)
    else:
        yield place, part


def _quoted(key: object) -> str:
    """A key of a dict, in a comment of C."""
    return repr(key).replace("*/", "* /")
