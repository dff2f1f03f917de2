"""What `place` gives: kernels with addresses, and the schedule of tasks; all that a backend needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .template import Expression, bottom_up, evaluate_template, listing

KERNEL, BEGIN, END, COLUMN, SHIFT, APART, LOOPS = range(7)  # columns of the table of tasks
STRIP = 16  # members whose terms lie together in the columns of a loop: no vector is wider


def whole_strips(members: np.ndarray) -> np.ndarray:
    """Numbers of members rounded up to whole strips."""
    return -(-members // STRIP) * STRIP


@dataclass(frozen=True)
class Access:
    """How a kernel reads or writes one value per member (or per term of a loop).

    Without a table entry i is at ``offset + stride * i`` of the buffer: uniform (stride 0), sequential (1) or
    strided. With one it is at ``table[i] + offset``: accesses that share a table are neighbours.
    An access with a *lane* is to the task's own block of intermediates, where `allocate` found room for it:
    ``shift + lane * apart + i``, with shift and apart from the task. A *base* is the number of a base that each
    task carries; the entries of the table count from it.
    """

    buffer: int
    offset: int
    stride: int = 0
    table: int | None = None
    loop: int | None = None
    lane: int | None = None
    base: int | None = None

    def __str__(self) -> str:
        i = "i" if self.loop is None else f"i,t{self.loop}"
        if self.table is not None:
            base = "" if self.base is None else f"base{self.base}+"
            return f"b{self.buffer}[{base}b{self.table}[{i}]{self.offset:+d}]"
        if self.lane is not None:
            return f"b{self.buffer}[block, lane {self.lane}, i]"
        at = {0: "", 1: "i"}.get(self.stride, f"{self.stride}*i")
        return f"b{self.buffer}[{at}{self.offset:+d}]"


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel with addresses. ``loops`` is how many sums with a run-time count it has."""

    roots: tuple[Expression, ...]
    reads: tuple[Access, ...]
    writes: tuple[tuple[Access, ...], ...]
    loops: int
    level: int
    size: int
    terms: int

    def accesses(self) -> list[Access]:
        """All reads, then all writes."""
        return [*self.reads, *(a for places in self.writes for a in places)]

    def loops_of(self) -> dict[int, frozenset[int]]:
        """The loops in which each expression varies, by identity."""
        loops: dict[int, frozenset[int]] = {}
        for e in bottom_up(list(self.roots)):
            inside: frozenset[int] = frozenset().union(*(loops[id(a)] for a in e.args))
            if e.op == "leaf":
                loop = self.reads[int(e.value)].loop  # type: ignore[arg-type]
                inside = frozenset() if loop is None else frozenset({loop})
            loops[id(e)] = inside - {int(e.value)} if e.op == "sum" else inside  # type: ignore[arg-type]
        return loops

    def __str__(self) -> str:
        lines = [f"x{i} = {a}" for i, a in enumerate(self.reads)]
        lines += [listing(list(self.roots))]
        lines += [f"{a} = y{i}" for i, places in enumerate(self.writes) for a in places]
        return f"level {self.level}, {self.size} members, {self.terms} terms\n" + "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Plan:
    """The program as a backend sees it.

    buffers : sizes of the variables, outputs and workspace, in this order; tables and constants follow
    tables : integer arrays (columns) and float arrays (varying constants)
    tasks : (k, 6 + 2*loops) int64 rows: kernel, first member, end member, column (the entry of member i in a
        table is i + column), shift, apart, and per loop the origin and the count of its terms. A loop's columns
        list the terms in the order in which vectors read them: strip by strip of members, then term by term,
        then member by member. From column ``first_base`` on the bases
    levels : (number of levels + 1,) first task of each level
    """

    variable_sizes: tuple[int, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    workspace_size: int
    tables: tuple[np.ndarray, ...]
    kernels: tuple[PlannedKernel, ...]
    tasks: np.ndarray
    levels: np.ndarray
    first_base: int = 0

    @property
    def workspace(self) -> int:
        """The number of the buffer of intermediates; tables come after it."""
        return len(self.variable_sizes) + len(self.output_shapes)

    @property
    def output_sizes(self) -> list[int]:
        return [int(np.prod(s, dtype=np.int64)) for s in self.output_shapes]

    def typed_tables(self, dtype: np.dtype) -> list[np.ndarray]:
        """The columns, and the varying constants in the program's type."""
        return [t if t.dtype.kind in "iu" else t.astype(dtype, copy=False) for t in self.tables]

    def table(self, buffer: int) -> np.ndarray:
        return self.tables[buffer - self.workspace - 1]

    def rows_of_kernels(self) -> list[np.ndarray]:
        """Per kernel, its tasks in the order of their members."""
        rows = [np.flatnonzero(self.tasks[:, KERNEL] == k) for k in range(len(self.kernels))]
        return [r[np.argsort(self.tasks[r, BEGIN])] for r in rows]

    def entries_of_tasks(self, rows: np.ndarray, loop: int | None) -> np.ndarray:
        """How many entries of a column the tasks ``rows`` read: one per member, or per term of a loop."""
        members = self.tasks[rows, END] - self.tasks[rows, BEGIN]
        return members if loop is None else whole_strips(members) * self.tasks[rows, LOOPS + 1 + 2 * loop]

    def check(self) -> None:
        """Every member of every kernel belongs to exactly one task of the kernel's level."""
        from .errors import InternalError

        done = np.zeros(len(self.kernels), np.int64)
        np.add.at(done, self.tasks[:, 0], self.tasks[:, 2] - self.tasks[:, 1])
        if any(done[i] != k.size for i, k in enumerate(self.kernels)):
            raise InternalError("place", "tasks do not cover the members of every kernel once")
        level = np.repeat(np.arange(len(self.levels) - 1), np.diff(self.levels))
        if any(self.kernels[k].level != row for k, row in zip(self.tasks[:, 0], level + 1, strict=True)):
            raise InternalError("place", "a task is scheduled in another level than its kernel's")

    def __str__(self) -> str:
        return "\n\n".join(f"kernel {i}: {k}" for i, k in enumerate(self.kernels))

    def entries(self, access: Access, row: np.ndarray) -> np.ndarray:
        """The entries of its buffer that a task addresses: one per member, or (terms, members) in a loop."""
        i = np.arange(row[BEGIN], row[END])
        if access.loop is not None:
            origin, count = row[LOOPS + 2 * access.loop : LOOPS + 2 + 2 * access.loop]
            strip, within = np.divmod(i - row[BEGIN], STRIP)
            i = origin + strip * STRIP * count + np.arange(count)[:, None] * STRIP + within
        if access.lane is not None:
            return row[SHIFT] + access.lane * row[APART] + i
        if access.table is None:
            return access.stride * i + access.offset
        listed = self.table(access.table)[i if access.loop is not None else i + row[COLUMN]].astype(np.int64)
        return listed + access.offset + (0 if access.base is None else row[self.first_base + access.base])

    def evaluate(self, inputs: list[np.ndarray], tasks: np.ndarray) -> list[np.ndarray]:
        """Run tasks one by one with NumPy, exactly as a backend addresses memory."""
        outputs = [np.full(n, np.nan) for n in self.output_sizes]
        memory = [*(np.asarray(x, float).ravel() for x in inputs), *outputs, np.full(self.workspace_size, np.nan)]
        memory += list(self.tables)
        for row in tasks:
            _run(self, row, memory)
        return [out.reshape(s) for out, s in zip(outputs, self.output_shapes, strict=True)]


def _run(plan: Plan, row: np.ndarray, memory: list[np.ndarray]) -> None:
    """One task."""
    kernel = plan.kernels[row[KERNEL]]

    def leaves(number: int, loop: int | None) -> np.ndarray:
        access = kernel.reads[number]
        return memory[access.buffer][plan.entries(access, row)]

    def sums(loop: int, values: np.ndarray) -> np.ndarray:
        count = int(row[LOOPS + 1 + 2 * loop])
        return np.broadcast_to(values, (count, int(row[END] - row[BEGIN]))).sum(axis=0)

    with np.errstate(all="ignore"):
        values = evaluate_template(list(kernel.roots), leaves, sums)
    for value, places in zip(values, kernel.writes, strict=True):
        for access in places:
            memory[access.buffer][plan.entries(access, row)] = value
