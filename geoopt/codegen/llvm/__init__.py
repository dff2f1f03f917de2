"""`Plan` to LLVM IR with explicit vectors: one function per kernel, or for several that are alike.

``void k(ptr arrays, ptr task)`` evaluates the members of a task; ``arrays`` are the addresses of what the kernel reads
and writes: buffers of the plan, each from some entry on. Kernels that differ in what they read and write only, as those
of the steps of a loop, have one function. What is printed is kept for later programs: kernels of another mesh have
mostly the texts of the first one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ...plan import Plan
from ...plan.forms import AFTER_SEQUENCES, refuse
from ..simd import Outline, functions_of, outline
from ..vectors import Vectors
from .printer import Printer

NAME = "<kernel>"  # of a function, before it is known which it is; no name in LLVM's text
KEPT = 64  # texts: those of some programs
LONG = 1 << 14  # characters of a module: a text of more is one alone


class Text(NamedTuple):
    """Of a kernel: a function called `NAME`, what it calls, and what these need to be declared."""

    functions: str
    declarations: tuple[str, ...]


class Emitted(NamedTuple):
    """texts : all different;  functions : per kernel, the number of its text
    arrays : per kernel, the buffer and the first entry of each array that its function takes"""

    texts: list[Text]
    functions: list[int]
    arrays: list[tuple[tuple[int, int], ...]]

    @property
    def text(self) -> str:
        """One module of all functions, k0, k1, ..."""
        return module(self.texts)

    def modules(self) -> Iterator[list[int]]:
        """The numbers of the texts that are compiled together: those of a kernel by themselves, so that other programs
        find them compiled; or of several short ones, since each module takes some milliseconds."""
        together, length = [], 0
        for number, text in enumerate(self.texts):
            together.append(number)
            length += len(text.functions)
            if length > LONG:
                yield together
                together, length = [], 0
        if together:
            yield together


def emit(plan: Plan, vectors: Vectors) -> Emitted:
    refuse("llvm", plan.forms(), AFTER_SEQUENCES)
    numbers: dict[Text, int] = {}
    outlines = [outline(plan, kernel, vectors.dtype) for kernel in plan.kernels]
    functions = [numbers.setdefault(printed(found, vectors), len(numbers)) for found in outlines]
    return Emitted(list(numbers), functions, [found.places for found in outlines])


@lru_cache(KEPT)
def printed(outline: Outline, vectors: Vectors) -> Text:
    declarations: dict[str, None] = {}
    made = functions_of(outline, vectors)
    printers = [Printer(NAME, function, made.types, vectors, declarations) for function in made.functions]
    return Text("\n".join(printer.function() for printer in printers), tuple(declarations))


def module(texts: Iterable[Text]) -> str:
    """One of some texts, whose functions are k0, k1, ... there."""
    texts = list(texts)
    named = [text.functions.replace(f"@{NAME}", f"@k{number}") for number, text in enumerate(texts)]
    declarations = dict.fromkeys(line for text in texts for line in text.declarations)
    return "\n".join([*named, *declarations, ""])
