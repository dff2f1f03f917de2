"""`Plan` to a library for C and C++: a header, a source file, and tables: bytes, or in the source where they are few.

The library allocates nothing and keeps nothing: ``NAME_open`` finds the tables, ``NAME`` evaluates all in the thread
that calls it, and ``NAME_part`` a part of what may run at once, for callers with threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import Template
from typing import NamedTuple

import numpy as np

from ..plan import Schedule
from ..plan.forms import RELISTED, refuse
from ..plan.planned import PlannedKernel
from ..plan.task import BEGIN, KERNEL
from .c import HEAD, arrays_of, body, buffers_of, parameters, table_text, table_type
from .c_block_routines import ROUTINES
from .c_text import CText
from .c_vector_types import definitions
from .c_vectors import VectorText
from .numbers import TYPES

EMBEDDED = 1 << 20  # bytes of tables up to which they are in the source file
LINE = 64  # bytes: where tables begin
MAGIC = b"geoopt C tables\n"

ARRAYS = "const $scalar *const *inputs, $scalar *const *outputs, $scalar *workspace"
HEADER = f"""\
/* $comment
$arrays
   Arrays are contiguous, the last index first, and must not overlap. */
#ifndef ${{macro}}_H
#define ${{macro}}_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

enum {{ ${{macro}}_INPUTS = $inputs, ${{macro}}_OUTPUTS = $outputs }};
$sizes
#define ${{macro}}_WORKSPACE ((size_t)$workspace) /* numbers of scratch that a call needs */
#define ${{macro}}_PHASES $phases /* one after the other */

/* Where the tables are; ${{name}}_open fills it. */
typedef struct {{
$members
}} ${{name}}_tables;

/* Finds the tables. bytes, size: $where.
   Gives 0; 1 where these are not the tables, 2 where they begin elsewhere, 3 where the processor stores numbers the
   other way round. The bytes must stay while they are used. */
int ${{name}}_open(${{name}}_tables *tables, const void *bytes, size_t size);

/* Evaluates all. Threads may call it at once with the same tables, but with outputs and a workspace of their own. */
void ${{name}}(const ${{name}}_tables *tables, {ARRAYS});

/* Evaluates part 0, 1, ..., parts - 1 of phase 0, 1, ..., ${{macro}}_PHASES - 1. The parts of a phase may run in
   any threads at once; a phase begins when all parts of the one before are done. */
void ${{name}}_part(const ${{name}}_tables *tables, {ARRAYS},
          int phase, int part, int parts);

#ifdef __cplusplus
}}
#endif
#endif
"""
KERNEL_FUNCTION = """\
static void k$number(const ${name}_tables *tables, $given) {
  int64_t from = task[$begin];
#ifdef __GNUC__
  from = k${number}_vectors($names);
#endif
  (void)tables;
$lines
}
"""
OPEN = """\
int ${name}_open(${name}_tables *tables, const void *bytes, size_t size) {
  const char *const at = bytes;
  const int32_t one = 1;
  if (!bytes || size != $size || memcmp(at, $magic, $length)) return 1;
  if ((uintptr_t)at % 8) return 2;
  if (*(const char *)&one != 1) return 3; /* a processor that stores numbers the other way round */
$found
  return 0;
}
"""
OPEN_EMBEDDED = """\
int ${name}_open(${name}_tables *tables, const void *bytes, size_t size) {
  (void)bytes, (void)size;
$found
  return 0;
}
"""
EVALUATE = f"""\
void ${{name}}_part(const ${{name}}_tables *tables, {ARRAYS},
          int phase, int part, int parts) {{
  (void)inputs, (void)outputs, (void)workspace;
  const int64_t *const shares = tables->shares + (int64_t)phase * ($workers + 1);
  for (int share = part; share < $workers; share += parts) {{
    for (int64_t n = shares[share]; n < shares[share + 1]; ++n) {{
      const int64_t *const task = tables->tasks + $width * n;
      switch (task[{KERNEL}]) {{
$calls
      }}
    }}
  }}
}}

void ${{name}}(const ${{name}}_tables *tables, {ARRAYS}) {{
  for (int phase = 0; phase < ${{macro}}_PHASES; ++phase) {{
    ${{name}}_part(tables, inputs, outputs, workspace, phase, 0, 1);
  }}
}}
"""


class Library(NamedTuple):
    """tables : None where the source contains them"""

    header: str
    source: str
    tables: bytes | None


@dataclass(frozen=True)
class Described:
    """What the header says of a program.

    comment : what it is of
    inputs, outputs : a line about each
    patterns : integer arrays by name, such as where the entries of results are
    """

    name: str
    comment: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    patterns: dict[str, np.ndarray]


def emit(schedule: Schedule, dtype: np.dtype, described: Described) -> Library:
    plan = schedule.plan
    refuse("c", plan.forms(), RELISTED)
    tables = {f"b{n}": t for n, t in enumerate(plan.typed_tables(dtype), plan.workspace + 1)}
    tables |= {"tasks": plan.tasks.ravel(), "shares": schedule.shares.astype(np.int64).ravel(), **described.patterns}
    content, places = _packed(tables)
    is_embedded = len(content) <= EMBEDDED
    printer = _Printer(schedule, dtype, described, tables)
    listed = [table_text(key, t, dtype) for key, t in tables.items()] if is_embedded else []
    opened = printer.open_embedded() if is_embedded else printer.open(places, len(content))
    head = f'#include "{described.name}.h"\n#include <string.h>\n{HEAD}'
    source = "\n".join([head, *listed, *printer.kernels(), opened, printer.evaluate()])
    return Library(printer.header(len(content), is_embedded), source, None if is_embedded else content)


def _packed(tables: dict[str, np.ndarray]) -> tuple[bytes, dict[str, int]]:
    """All tables one after the other, and where each begins."""
    content, places = bytearray(MAGIC.ljust(LINE, b"\0")), {}
    for name, table in tables.items():
        places[name] = len(content)
        content += np.ascontiguousarray(table, table.dtype.newbyteorder("<")).tobytes()
        content += bytes(-len(content) % LINE)
    return bytes(content), places


class _Printer:
    """tables : by their names in the text"""

    def __init__(self, schedule: Schedule, dtype: np.dtype, described: Described, tables: dict[str, np.ndarray]):
        self.schedule, self.plan, self.described = schedule, schedule.plan, described
        self.dtype, self.scalar = dtype, TYPES[dtype.name]
        self.types = {name: table_type(table, dtype) for name, table in tables.items()}

    def _text(self, template: str, **words: object) -> str:
        name = self.described.name
        return Template(template).substitute(words, name=name, macro=name.upper(), scalar=self.scalar)

    def header(self, size: int, is_embedded: bool) -> str:
        name, inputs, outputs = self.described.name, self.described.inputs, self.described.outputs
        listed = [f"   inputs[{i}]: {line}" for i, line in enumerate(inputs)]
        listed += [f"   outputs[{i}]: {line}" for i, line in enumerate(outputs)]
        in_file = f"the content of {name}.bin, {size} bytes, which must begin at a multiple of 8"
        return self._text(
            HEADER,
            comment=self.described.comment,
            arrays="\n".join(listed),
            inputs=len(inputs),
            outputs=len(outputs),
            sizes="\n".join(self._sizes()),
            workspace=max(self.plan.workspace_size, 1),
            phases=len(self.schedule.shares),
            members="\n".join(f"  const {kind} *{key};" for key, kind in self.types.items()),
            where="NULL and 0, for they are in the library" if is_embedded else in_file,
        )

    def _sizes(self) -> Iterator[str]:
        for kind, sizes in (("INPUT", self.plan.variable_sizes), ("OUTPUT", self.plan.output_sizes)):
            for number, size in enumerate(sizes):
                yield f"#define {self.described.name.upper()}_{kind}{number} ((size_t){size}) /* numbers */"

    def kernels(self) -> list[str]:
        """The functions of all kernels, and before these what they call."""
        text, functions, routines = CText(self.dtype, self.scalar, "int64_t"), dict[str, str](), dict[tuple, None]()
        vectors, found = [], []
        for number, kernel in enumerate(self.plan.kernels):
            printer = VectorText(self.dtype)
            of = f"{self.described.name}_tables"
            vectors.append(printer.function(f"k{number}_vectors", of, self.plan, kernel, self.types))
            functions |= printer.functions
            routines |= printer.routines
            found.append(self._kernel(number, kernel, text))
        called = [ROUTINES[op](f"{op}{n}", n, self.dtype, "static") for op, n in {**text.routines, **routines}]
        of_vectors = [*functions.values(), *vectors]
        defined = definitions(self.dtype, of_vectors)
        return [*called, "#ifdef __GNUC__", *defined, *of_vectors, "#endif", "", *found]

    def _kernel(self, number: int, kernel: PlannedKernel, text: CText) -> str:
        """Evaluates a task: whole vectors of members, where there are any, and then member by member."""
        fields, lines = body(self.plan, kernel, text, "from")
        words = set(re.findall(r"\bb\d+\b", " ".join(lines)))
        found = [f"  const {kind} *const {key} = tables->{key};" for key, kind in self.types.items() if key in words]
        given = [*parameters(self.plan, kernel, self.scalar), "const int64_t *task"]
        names = ", ".join(["tables", *(f"b{b}" for b in buffers_of(self.plan, kernel)), "task"])
        return self._text(
            KERNEL_FUNCTION,
            number=number,
            given=", ".join(given),
            names=names,
            begin=BEGIN,
            lines="\n".join([*found, *fields, *lines]),
        )

    def open(self, places: dict[str, int], size: int) -> str:
        found = (f"  tables->{key} = (const {kind} *)(at + {places[key]});" for key, kind in self.types.items())
        magic = '"' + MAGIC.decode().replace("\n", "\\n") + '"'
        return self._text(OPEN, size=size, magic=magic, length=len(MAGIC), found="\n".join(found))

    def open_embedded(self) -> str:
        return self._text(OPEN_EMBEDDED, found="\n".join(f"  tables->{key} = {key};" for key in self.types))

    def evaluate(self) -> str:
        calls = [
            f"      case {k}: k{k}({', '.join(['tables', *arrays_of(self.plan, kernel), 'task'])}); break;"
            for k, kernel in enumerate(self.plan.kernels)
        ]
        workers, width = self.schedule.shares.shape[1] - 1, self.plan.tasks.shape[1]
        return self._text(EVALUATE, calls="\n".join(calls), workers=workers, width=width)
