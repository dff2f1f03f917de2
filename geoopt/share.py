"""Stage `share`: equal values of a template are computed and stored once.

Takes: `Kernels`.
Gives: `Kernels` in which no two roots are the same expression.
Ensures: every entry of the outputs is still written once; readers of an intermediate that equals another read that.
Paper: local decomposition. So a symmetric 9×9 block stores 45 values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .integers.ids import Ids
from .kernels import Kernel, Kernels
from .layout import Home, Layout, Place
from .stages import Context, stage


@stage(switch="local")
def share(kernels: Kernels, context: Context) -> Kernels:
    layout = kernels.layout
    moved: dict[int, int] = {}  # first entry of a lane of the workspace that is not written -> of the one to read
    shared = tuple(_shared(layout, k, moved) for k in kernels.kernels)
    homes = tuple(_without_moved(layout, home, moved) for home in layout.homes) if moved else layout.homes
    return replace(kernels, layout=replace(layout, homes=homes), kernels=shared)


def _shared(layout: Layout, kernel: Kernel, moved: dict[int, int]) -> Kernel:
    """The kernel with one root for each distinct expression."""
    alike: dict[tuple, list[int]] = {}
    for i, (root, loop) in enumerate(zip(kernel.roots, kernel.root_loops, strict=True)):
        alike.setdefault((id(root), loop), []).append(i)
    if len(alike) == len(kernel.roots):
        return kernel
    roots, writes = [], []
    for numbers in alike.values():
        places = [p for i in numbers for p in kernel.writes[i]]
        lanes = [p for p in places if p.buffer == layout.workspace and _is_whole_lane(layout, p, kernel.size)]
        for lane in lanes[1:]:
            moved[lane.position.offset] = lanes[0].position.offset
        roots.append(kernel.roots[numbers[0]])
        writes.append(tuple(p for p in places if not any(p is lane for lane in lanes[1:])))
    return replace(kernel, roots=tuple(roots), writes=tuple(writes))


def _is_whole_lane(layout: Layout, place: Place, size: int) -> bool:
    """Whether a kernel writes all of a lane of some node, one value per mesh element."""
    position = place.position
    if position.base is not None or (size > 1 and position.strides != (1,)):
        return False
    for home in layout.homes:
        if home.place.buffer == layout.workspace and home.shape and home.shape[0] == size:
            start = position.offset - home.place.position.offset
            if 0 <= start < home.size and start % size == 0:
                return True
    return False


def _without_moved(layout: Layout, home: Home, moved: dict[int, int]) -> Home:
    """A node whose lanes that equal others are where those are."""
    position = home.place.position
    if home.place.buffer != layout.workspace or position.base is not None or not home.shape:
        return home
    size = home.shape[0]
    lanes = position.offset + size * np.arange(home.size // size)
    read = np.array([moved.get(int(first), int(first)) for first in lanes])
    if (read == lanes).all():
        return home
    offsets = read.reshape(1, *home.shape[1:])
    strides = (1, *(0 for _ in home.shape[1:]))
    return replace(home, place=Place(home.place.buffer, Ids(home.shape, 0, strides, offsets)))
