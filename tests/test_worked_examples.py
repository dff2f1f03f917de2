"""The examples at the heads of the back stages are what these stages do."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

import numpy as np
import pytest

import geoopt
from geoopt.codegen.vectors import Vectors
from geoopt.plan import Plan, Schedule
from geoopt.plan.address import Address, Linear, Listed, linear, listed
from geoopt.plan.loops import ByMember, ByStrip
from geoopt.plan.planned import PlannedKernel
from geoopt.plan.stores import RowStore, Store
from geoopt.plan.task import BEGIN, FIELDS
from geoopt.stages import Context
from geoopt.template import Template

from .test_stages import DOUBLE

SIZE = 6
CONTEXT = Context(geoopt.Options(threads=1), DOUBLE, vectors=Vectors(2, DOUBLE))
FOUR = Context(geoopt.Options(threads=1), DOUBLE, vectors=Vectors(4, DOUBLE))
WIDE = Context(geoopt.Options(threads=1), DOUBLE, vectors=Vectors(8, DOUBLE))
INPUT, OUTPUT, WORKSPACE, FIRST = 0, 1, 2, 3  # buffers, and the first table


def made(reads, stores, tables, loops=(), workspace=0, tasks=((0, SIZE),)) -> Plan:
    """A plan of one kernel, whose value is the product of what it reads, or the sum of that over a loop."""
    t = Template()
    leaves = [t.make("leaf", (), n) for n in range(len(reads))]
    product = leaves[0] if len(leaves) == 1 else t.make("multiply", tuple(leaves))
    root = t.make("sum", (product,), 0) if loops and stores[0].loop is None else product
    kernel = PlannedKernel((root,), reads, (stores,), loops, 1, SIZE)
    rows = np.zeros((len(tasks), FIELDS), np.int64)
    rows[:, BEGIN : BEGIN + 2] = tasks
    rows[:, 4] = np.arange(len(tasks))
    return Plan((99_999,), ((99_999,),), workspace, tuple(map(np.array, tables)), (kernel,), rows)


def scheduled(plan: Plan) -> Schedule:
    count = len(plan.tasks)
    return Schedule(plan, np.array([[0, count]]), np.full(count, count - 1))  # the last task reads all


def shown(record, *parts: str) -> str:
    """The addresses of the kernels, and the tables that they look up. parts : reads or stores"""
    plan = record if isinstance(record, Plan) else record.plan
    lines, tables = [], {}
    for kernel in plan.kernels:
        if "reads" in parts:
            lines += [f"x{n} = {address}" for n, address in enumerate(kernel.reads)]
        if "stores" in parts:
            lines += [f"{store} y0" for store in kernel.stores()]
        tables |= dict.fromkeys(sorted(kernel.tables()))
    of_rows = {s.bits for kernel in plan.kernels for s in kernel.stores() if isinstance(s, RowStore)}
    return "\n".join([*lines, *(f"b{t} = {_listed(plan.table(t), t in of_rows)}" for t in tables)])


def _listed(table: np.ndarray, is_bits: bool) -> str:
    numbers = " ".join(map(hex if is_bits else str, table.tolist()))
    return re.sub("( 0){4,}", " ...", numbers) + f"   ({8 * table.itemsize} bits)"


def steps():
    columns = [[0, 9, 20, 31, 40, 52], [3, 13, 23, 35, 43, 55], [6, 17, 26, 39, 46, 58]]
    stores = tuple(Store(listed(OUTPUT, 0, FIRST + k)) for k in range(3))
    before = made((Address(INPUT),), stores, [np.array(c, np.int32) for c in columns])
    return before, CONTEXT, ("stores",), ""


def compress():
    column = np.array([90_003, 90_000, 90_006, 90_012, 90_009, 90_015], np.int32)
    before = made((listed(INPUT, 2, FIRST),), (Store(linear(OUTPUT, 0, 1)),), [column])
    return before, CONTEXT, ("reads",), "base0 = {tasks[0][7]}"


def sequences():
    column = np.array([12, 3, *range(30, 46)], np.int32)
    before = made((listed(INPUT, 0, FIRST),), (Store(linear(OUTPUT, 0, 1)),), [column], tasks=((0, 18),))
    kernel = replace(before.kernels[0], size=18)
    return replace(before, kernels=(kernel,)), FOUR, ("reads",), "firsts = b4, lengths = b5"


def rows():
    entries = np.zeros((4, 16), np.int32)
    entries[:3, :SIZE] = [[10, 14, 17, 20, 24, 27], [11, 15, 18, 21, 25, 28], [13, 16, 19, 23, 26, 29]]
    loop = ByStrip(FIRST + 1, 3 * SIZE)
    tables = [entries[:3].ravel(), np.array([0, 48], np.int32)]
    before = made((linear(INPUT, 0, 1, 0),), (Store(Address(OUTPUT, 0, (Listed(FIRST),), 0)),), tables, (loop,))
    return before, WIDE, ("stores",), ""


def allocate():
    stores = (Store(Address(WORKSPACE, 0, (Linear(1),))),)
    before = made((Address(INPUT),), stores, [], workspace=SIZE, tasks=((0, 3), (3, SIZE)))
    t = Template()
    leaf = t.make("leaf", (), 0)
    roots, writes = (leaf, t.make("negative", (leaf,))), (stores, (Store(linear(WORKSPACE, SIZE, 1)),))
    kernel = replace(before.kernels[0], roots=roots, writes=writes)
    return replace(before, kernels=(kernel,), workspace_size=2 * SIZE), CONTEXT, ("stores",), "{fields}"


def runs():
    """The entries of a row of A B: the terms of each are an entry of A times one of B."""
    of_a, of_b = [7, 8, 7, 8, 7, 7, 8, 7, 8, 7, 8], [40, 60, 41, 61, 42, 43, 62, 44, 63, 45, 64]
    columns = [np.array(c, np.int32) for c in (of_a, of_b, [0, 11], [2, 2, 1, 2, 2, 2])]
    loop = ByMember(FIRST + 2, 11, FIRST + 3)
    reads = Address(INPUT, 0, (Listed(FIRST),), 0), Address(INPUT, 0, (Listed(FIRST + 1),), 0)
    before = made(reads, (Store(linear(OUTPUT, 0, 1)),), columns, (loop,))
    return before, WIDE, ("reads",), ""


EXAMPLES = {example.__name__: example for example in (steps, compress, sequences, rows, allocate, runs)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_what_the_stage_does(name):
    module = importlib.import_module(f"geoopt.{name}")
    before, context, parts, more = EXAMPLES[name]()
    after = getattr(module, name)(scheduled(before), context)
    fields = "; ".join(f"shift = {row[5]}, apart = {row[6]}" for row in after.plan.tasks)
    extra = more.format(tasks=after.plan.tasks.tolist(), fields=fields)
    texts = shown(before, *parts), "\n".join(filter(None, [shown(after, *parts), extra]))
    block = "\n\n".join(texts)
    wanted = "\n".join(f"    {line}".rstrip() for line in block.splitlines())
    assert wanted in (module.__doc__ or ""), f"the example of {name} is\n{wanted}"
    x = np.random.default_rng(0).normal(size=99_999)
    if name != "allocate":  # whose values nobody reads
        [got], [want] = (plan.evaluate([x], plan.tasks) for plan in (after.plan, before))
        np.testing.assert_allclose(got, want, rtol=1e-12)
