"""`Plan` to LLVM IR with explicit vectors: one function per kernel, or for several that are alike.

``void k(ptr buffers, ptr task)`` evaluates the members of a task; ``buffers`` are the addresses of those of the plan's
buffers that the kernel reads and writes. Kernels that differ in what they read and write only, as those of the steps of
a loop, have one function.
"""

from __future__ import annotations

from typing import NamedTuple

from ...plan import Plan
from ...plan.forms import AFTER_SEQUENCES, refuse
from ..simd import functions_of
from ..vectors import Vectors
from .printer import Printer

NAME = "<kernel>"  # of a function, before it is known which it is; no name in LLVM's text


class Module(NamedTuple):
    """text : of the functions k0, k1, ...;  functions : the number of each kernel's
    buffers : per kernel, those whose addresses its function takes"""

    text: str
    functions: list[int]
    buffers: list[list[int]]


def emit(plan: Plan, vectors: Vectors) -> Module:
    refuse("llvm", plan.forms(), AFTER_SEQUENCES)
    declarations: dict[str, None] = {}
    numbers: dict[str, int] = {}
    made = [functions_of(plan, kernel, vectors) for kernel in plan.kernels]
    functions = []
    for kernel in made:
        printers = [Printer(NAME, function, kernel.types, vectors, declarations) for function in kernel.functions]
        text = "\n".join(printer.function() for printer in printers)
        functions.append(numbers.setdefault(text, len(numbers)))
    named = [text.replace(f"@{NAME}", f"@k{number}") for text, number in numbers.items()]
    return Module("\n".join([*named, *declarations, ""]), functions, [kernel.buffers for kernel in made])
