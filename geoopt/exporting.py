"""`Program.export`: a program as a library for C and C++, in a folder."""

from __future__ import annotations

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
from .results import OfArray, OfComparison, OfMatrix, OfNumber, Part
from .signature import Argument, Signature
from .stored_matrices import INDICES, index_arrays

# names that C, C++, their libraries or CMake have for something else; words of the library are looked up in its text
TAKEN = frozenset(
    "auto bool break case char const continue default do double else enum extern false float for goto if inline "
    "int long register restrict return short signed sizeof static struct switch true typedef union unsigned void "
    "volatile while asm catch class constexpr delete explicit export friend mutable namespace new noexcept "
    "nullptr operator private protected public template this throw try typename typeid typeof using virtual and "
    "or not xor main linux unix I NULL INFINITY NAN isnan isinf isfinite signbit index y0 y1 yn j0 j1 jn lgamma "
    "gamma tgamma logb scalb significand abs labs div malloc calloc realloc free exit abort memcmp memcpy memset "
    "strlen remove rename signal time clock rand pow fmod modf ldexp frexp ceil floor trunc rint round exp exp2 "
    "expm1 log log2 log10 log1p sqrt cbrt hypot fma fmin fmax fabs fdim sin cos tan asin acos atan atan2 sinh "
    "cosh tanh asinh acosh atanh erf erfc nan copysign nextafter remainder remquo stdint stddef stdbool string "
    "math tgmath stdio all install clean test help package edit_cache rebuild_cache list_install_components".split()
)
NAME = "a_name_that_nothing_has"  # of the library, while it is looked for other words that are its name
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
    name = re.sub(r"\W", "_", signature.function, flags=re.ASCII) if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) or name in TAKEN:
        raise ArgumentError(f"export(name={name!r}): choose a name that C and C++ take for a function, and nothing has")
    plan = relist(schedule.plan)
    described = _described(signature, dtype, plan.output_shapes)
    library = emit(replace(schedule, plan=plan), dtype, described)
    code = re.sub(r"/\*.*?\*/", "", library.header + library.source, flags=re.DOTALL)  # without comments
    if {name, name.upper()} & set(re.findall(r"\w+", code)):
        raise ArgumentError(f"export(name={name!r}): choose another name, the library has this one for something else")
    named = [t.replace(NAME, name).replace(NAME.upper(), name.upper()) for t in (library.header, library.source)]
    texts = dict(zip((f"{name}.h", f"{name}.c", "CMakeLists.txt"), (*named, CMAKE.format(name=name)), strict=True))
    files = {folder / file: text.encode() for file, text in texts.items()}
    files |= {} if library.tables is None else {folder / f"{name}.bin": library.tables}
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is no folder; give another name")
    refuse_existing(list(files) if folder.exists() else [], force)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        write_whole(path, lambda file, content=content: file.write(content))
    return list(files)


def _described(signature: Signature, dtype: np.dtype, shapes: tuple[tuple[int, ...], ...]) -> Described:
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
        f"[{part.entry}] {place}" if isinstance(part, OfNumber) else f"from [{part.begin}] on {place}, 0 where false"
        for place, part in _placed("result", signature.result)
        if isinstance(part, OfNumber | OfComparison)
    ]
    if numbers:
        outputs[-1] = f"{outputs[-1]}: {', '.join(numbers)}"
    comment = f"{signature.function}, prepared by geoopt for one structure of its arguments, in {dtype}"
    return Described(
        NAME, _commented(comment), tuple(map(_commented, inputs)), tuple(map(_commented, outputs)), patterns
    )


def _commented(text: str) -> str:
    """Text that a comment of C can hold."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable.replace("*/", "* /").replace("/*", "/ *")


def _input(number: int, argument: Argument, patterns: dict[str, np.ndarray]) -> str:
    if argument.pattern is None:
        return f"{argument.name}, {_shape(argument.shape)}"
    matrix: Any = argument.pattern
    where = _pattern(f"input{number}", matrix, patterns)
    return f"{argument.name}, the values of a matrix {_shape(matrix.shape)} by rows: {where}"


def _pattern(name: str, matrix: Any, patterns: dict[str, np.ndarray]) -> str:
    """Adds the index arrays of a matrix to the tables; gives their names as text."""
    names = INDICES[matrix.format]
    patterns |= {f"{name}_{key}": np.asarray(a) for key, a in zip(names, index_arrays(matrix), strict=True)}
    return ", ".join(f"tables.{name}_{key}" for key in names)


def _shape(shape: tuple[int, ...]) -> str:
    return "one number" if not shape else " x ".join(map(str, shape))


def _placed(place: str, part: Part) -> Iterator[tuple[str, Part]]:
    """A part and all parts inside of it, with the Python expressions for them."""
    yield place, part
    for after, inner in part.inner():
        yield from _placed(place + after, inner)
