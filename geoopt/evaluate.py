"""The slow, obvious meaning of every representation between the stages; tests compare it with NumPy, and `derivatives`
evaluates with it what is called on floats.

All work on small inputs with a ``memory`` that holds the value of every scalar id or buffer entry.
"""

from __future__ import annotations

import numpy as np

from .cut import Cut
from .errors import InternalError
from .graph import Graph, Node, Traced
from .graph.phased import Phases
from .graph.tape import NAMES, NONE, Tape
from .graph.values import Values, applied, applied_on_tape, gathered, truth
from .grid import Grid
from .groups import Groups
from .integers.ids import Ids
from .kernels import Kernel, Kernels
from .layout import Layout, Place
from .plan import Plan, Schedule
from .template import evaluate_template


def evaluate(ir: object, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The program's outputs, one array per output, from any representation. inputs : one array per variable."""
    if isinstance(ir, Traced):
        return _traced(ir, inputs)
    if isinstance(ir, Phases):
        return _phases(ir, inputs)
    if isinstance(ir, Cut):
        return _cut(ir, inputs)
    if isinstance(ir, Groups):
        return _groups(ir, inputs)
    if isinstance(ir, Kernels):
        return _kernels(ir, inputs)
    if isinstance(ir, Plan):
        return ir.evaluate(inputs, ir.tasks)
    if isinstance(ir, (Schedule, Grid)):
        return ir.plan.evaluate(inputs, ir.plan.tasks)
    raise InternalError("evaluate", f"no meaning for {type(ir).__name__}")


def _memory(traced: Traced, inputs: list[np.ndarray]) -> np.ndarray:
    memory = np.full(traced.graph.size, np.nan)
    for node, value in zip(traced.variables, inputs, strict=True):
        memory[node.first : node.end] = np.asarray(value, float).ravel()
    for node in traced.graph.nodes:
        if node.op == "constant":
            memory[node.first : node.end] = node.values.ravel()
    return memory


def _outputs(traced: Traced, memory: np.ndarray) -> list[np.ndarray]:
    return [memory[view.to_array()] for view in traced.outputs]


def _traced(traced: Traced, inputs: list[np.ndarray]) -> list[np.ndarray]:
    if any(node.op == "while" for node in traced.graph.nodes):
        given = {node.index: np.ravel(x) for node, x in zip(traced.variables, inputs, strict=True)}
        return [Values(traced.graph, given).of(view) for view in traced.outputs]  # type: ignore[arg-type]
    memory = _memory(traced, inputs)
    for node in traced.graph.nodes:
        if node.tape is not None:
            _tape(node.first, node.tape, memory)
        elif not node.is_leaf:
            operands = [truth(traced.graph, o, memory[o.to_array()]) for o in node.operands]
            memory[node.first : node.end] = np.ravel(applied(node, operands))
    return _outputs(traced, memory)


def _phases(whole: Phases, inputs: list[np.ndarray]) -> list[np.ndarray]:
    arrays = {**whole.known, **{i: np.asarray(x, float) for i, x in enumerate(inputs)}}
    for phase in whole.phases:
        if phase.program is not None:
            found = _traced(whole.programs[phase.program], [arrays[a] for a in phase.reads])
            arrays.update(zip(phase.writes, found, strict=True))
        for solve in phase.solves:
            arrays[solve.solution] = solve.system.solved(arrays[solve.values], arrays[solve.right])
        for loop in phase.loops:
            arrays[loop.end] = loop.loop.after(arrays[loop.begin], [arrays[a] for a in loop.given])
    return [arrays[a] for a in whole.outputs]


def _tape(first: int, tape: Tape, memory: np.ndarray) -> None:
    codes, operands = tape.columns()
    for i, (code, ids) in enumerate(zip(codes, operands, strict=True)):
        name = NAMES[code]
        if name == "constant":
            memory[first + i] = tape.values[ids[0]]
        else:
            memory[first + i] = applied_on_tape(name, [memory[k] for k in ids if k != NONE])


class _Recompute:
    """Evaluate scalars in place, reading only what a step may read from memory."""

    def __init__(self, graph: Graph, memory: np.ndarray, readable: set[int]):
        self.graph, self.memory, self.readable = graph, memory, readable
        self._done: dict[int, np.ndarray] = {}

    def node(self, node: Node) -> np.ndarray:
        """All values of a node."""
        if node.is_leaf or node.index in self.readable:
            return self.memory[node.first : node.end].reshape(node.shape)
        if node.index not in self._done:
            values = [truth(self.graph, o, self._view(o)) for o in node.operands]
            self._done[node.index] = np.reshape(applied(node, values), node.shape)
        return self._done[node.index]

    def _view(self, view: Ids) -> np.ndarray:
        return gathered(self.graph, view, lambda node, places: self.node(node).ravel()[places])


def _cut(cut: Cut, inputs: list[np.ndarray]) -> list[np.ndarray]:
    memory = _memory(cut.traced, inputs)
    readable: set[int] = set()
    wanted = {n.index for v in cut.traced.outputs for n in cut.graph.nodes_of(v)}
    wanted |= cut.stored | cut.scatters.keys()
    for level in range(max(cut.levels.values(), default=0) + 1):
        step = _Recompute(cut.graph, memory, set(readable))
        for i in sorted(wanted):
            node = cut.graph.nodes[i]
            if not node.is_leaf and cut.levels[i] == level:
                values = step.node(node).ravel()
                equal = cut.equals.get(i)
                memory[node.first : node.end] = values if equal is None else values[equal]
        readable |= {i for i in cut.stored if cut.ready[i] == level + 1}
    outputs = _outputs(cut.traced, memory)
    for index, part in ((i, part) for i, parts in cut.scatters.items() for part in parts):
        values = memory[cut.graph.nodes[index].ids.to_array()].ravel()
        for entries in part.entries:
            is_added = entries >= 0
            np.add.at(outputs[part.output].reshape(-1), entries[is_added], part.sign * values[is_added])
    return outputs


def _groups(groups: Groups, inputs: list[np.ndarray]) -> list[np.ndarray]:
    cut = groups.cut
    memory = _memory(cut.traced, inputs)
    buffers = _buffers(groups.layout, inputs)
    for g in groups.groups:
        stored = {i for i in cut.stored if cut.ready[i] <= g.level}
        _load_homes(groups.layout, g.level, buffers, memory)
        step = _Recompute(cut.graph, memory, stored)
        for root in g.roots:
            values = step._view(root.ids)
            for write in root.writes:
                _write(buffers, write, values)
    _load_homes(groups.layout, max(cut.ready.values(), default=0), buffers, memory)
    step = _Recompute(cut.graph, memory, set(cut.stored))
    for index, stream in cut.streams.items():
        written = stream.entries >= 0
        values = step._view(cut.graph.nodes[index].operands[0])[written]
        buffers[len(cut.traced.variables) + stream.output][stream.entries[written]] = values
    return _shaped(groups.layout, buffers)


def _write(buffers: list[np.ndarray], place: Place, values: np.ndarray) -> None:
    at = place.position.to_array()
    if place.adds:
        np.add.at(buffers[place.buffer], at, place.adds * values)
    else:
        buffers[place.buffer][at] = values


def _buffers(layout: Layout, inputs: list[np.ndarray]) -> list[np.ndarray]:
    variables = [np.asarray(x, float).ravel() for x in inputs]
    outputs = [np.full(size, np.nan) for size in layout.output_sizes]
    return [*variables, *outputs, np.full(layout.workspace_size, np.nan)]


def _shaped(layout: Layout, buffers: list[np.ndarray]) -> list[np.ndarray]:
    first = len(layout.variables)
    return [buffers[first + i].reshape(shape) for i, shape in enumerate(layout.outputs)]


def _load_homes(layout: Layout, level: int, buffers: list[np.ndarray], memory: np.ndarray) -> None:
    """Put what kernels up to some level have left into the memory of scalars."""
    for home in (h for h in layout.homes if h.level <= level):
        memory[home.first : home.first + home.size] = buffers[home.place.buffer][home.place.position.to_array().ravel()]


def _kernels(kernels: Kernels, inputs: list[np.ndarray]) -> list[np.ndarray]:
    layout = kernels.layout
    memory = np.full(max((h.first + h.size for h in layout.homes), default=0), np.nan)
    buffers = _buffers(layout, inputs)
    for kernel in kernels.kernels:
        _load_homes(layout, kernel.level, buffers, memory)
        for values, writes in zip(_kernel_values(kernel, memory), kernel.writes, strict=True):
            for write in writes:
                _write(buffers, write, values)
    return _shaped(layout, buffers)


def _kernel_values(kernel: Kernel, memory: np.ndarray) -> list[np.ndarray]:
    def leaves(number: int, loop: int | None) -> np.ndarray:
        leaf = kernel.leaves[number]
        values = leaf.constants if leaf.ids is None else memory[leaf.ids.to_array()]
        is_by_member = leaf.loop is None and loop is not None
        return np.repeat(values, kernel.loops[loop].segments.lengths) if is_by_member else values  # type: ignore[arg-type]

    def sums(loop: int, values: np.ndarray) -> np.ndarray:
        member = np.repeat(np.arange(kernel.size), kernel.loops[loop].segments.lengths)
        return np.bincount(member, np.broadcast_to(values, member.shape), kernel.size)

    with np.errstate(all="ignore"):
        return evaluate_template(kernel.roots, leaves, sums, kernel.root_loops)
