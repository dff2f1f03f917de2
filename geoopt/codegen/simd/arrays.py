"""What a kernel's arrays are called in its functions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ...plan.address import Address
from ...plan.task import BEGIN, COLUMN, END, FIRST_STRIP, field_name
from ..expressions import Expr, Look, Name, Whole, plus, times
from ..statements import INDEX, Let, Statement, View
from .outlines import OUTPUT, Outline

TASK = "task"  # the array of a task's fields


class Arrays:
    """What a kernel's arrays are called: ``b0, b1, ...`` in the order in which it takes them; ``c0, c1, ...`` from the
    task's own entries on, ``b0_1, ...`` from where a task counts."""

    def __init__(self, outline: Outline):
        self.outline, self.kernel = outline, outline.kernel
        of_tasks = {(): None, **{a.of_task: None for a in self.kernel.addresses()}}
        self.starts = {terms: n for n, terms in enumerate(of_tasks)}

    def of(self, buffer: int) -> str:
        return f"b{buffer}"

    def of_members(self, table: int) -> str:
        """A column, from the task's first member on if its members are counted from 0."""
        return f"c{table}" if self.kernel.sequences is None else self.of(table)

    def from_start(self, address: Address) -> str:
        """From where a task counts the entries of an address."""
        number = self.starts[address.of_task]
        return f"{self.of(address.buffer)}_{number}" if number else self.of(address.buffer)

    def is_padded(self, array: str) -> bool:
        """Outputs may be the caller's arrays, past which nothing may be read; of the others the runtime takes care."""
        return array not in self._outputs

    @cached_property
    def _outputs(self) -> frozenset[str]:
        arrays = self.outline.arrays
        return frozenset(self.from_start(a) for a in self.kernel.addresses() if arrays[a.buffer].kind == OUTPUT)

    def views(self) -> Iterable[Statement]:
        """What comes first in a function."""
        fields = {BEGIN, END, COLUMN, FIRST_STRIP, *(term.field for terms in self.starts for term in terms)}
        for field in sorted(fields):
            yield Let(field_name(field), INDEX, Look(TASK, Whole(field)))
        if self.kernel.sequences is None:
            for table in sorted(self.kernel.columns(None)):
                yield View(self.of_members(table), self.of(table), Name(field_name(COLUMN)))
        starts = {self.from_start(a): a for a in self.kernel.addresses() if a.of_task}
        for name, address in sorted(starts.items()):
            entry: Expr = Whole(0)
            for term in address.of_task:
                entry = plus(entry, times(term.times, Name(field_name(term.field))))
            yield View(name, self.of(address.buffer), entry)
