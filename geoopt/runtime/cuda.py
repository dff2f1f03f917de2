"""The GPU, through CuPy: its arrays come in and go out without a copy, NumPy's through page-locked memory.

Kernels run on the caller's current stream; memory comes from CuPy's pool, which knows about streams.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..codegen import TARGETS
from ..errors import ArgumentError, DeviceError
from ..grid import BLOCK, Grid
from ..native import cache
from ..options import Options
from ..plan import Plan
from ..signature import Argument
from ..stages import Context
from ..stored_matrices import index_arrays, made, with_values
from . import nvrtc
from .batch import memory_of_items
from .patterns import Patterns

SIDES = 3  # further streams on which kernels of one level run
GRAPHS = 8  # the most sets of arrays for which the launches of a call are kept as one CUDA graph
ON_GPU = (2, 10, 13)  # DLPack's numbers of CUDA, ROCm, and memory that CUDA manages


def _compiled(text: str, architecture: str, contracts: bool) -> tuple[str, bytes]:
    """The name in the cache of machine code of a GPU, and the code, compiled or from there. CuPy would make zeros of
    denormal floats."""
    key = cache.key(text, architecture, nvrtc.version(), str(contracts))
    return key, cache.obtained(cache.programs(), key, lambda: nvrtc.compiled(text, architecture, contracts).code)[0]


def _functions(cupy: Any, code: bytes, names: list[str]) -> dict[str, Any]:
    """Some kernels of machine code by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(code)
        module = cupy.RawModule(path=str(path))
        return {name: module.get_function(name) for name in names}


class CudaMachine:
    """A grid's kernels on the GPU that is current when the program is compiled."""

    device, solves = "cuda", ()
    phases = None

    def __init__(self, grid: Grid, context: Context):
        self._cupy, dtype = _cupy(), context.dtype
        cupy, text = self._cupy, TARGETS["cuda"](grid, dtype)
        self.dtype, self.plan = dtype, grid.plan
        self.records = (grid,)
        self.plans: tuple[Plan, ...] = (grid.plan,)
        self.output_shapes = grid.plan.output_shapes
        self._device = cupy.cuda.Device()
        name, code = _compiled(text, f"sm_{self._device.compute_capability}", not context.options.strict)
        self.code = {name: code}
        self.traits = {"threads_per_block": BLOCK}
        self.sources = {"cuda": lambda: text, "ptx": lambda: nvrtc.compiled(text).ptx}
        launches = grid.launches()
        functions = _functions(cupy, code, [one.name for level in launches for one in level])
        self._levels = [[(functions[one.name], one) for one in level] for level in launches]
        self._tables = [cupy.asarray(t) for t in grid.plan.typed_tables(dtype)]
        cupy.cuda.get_current_stream().synchronize()  # calls on other streams read the tables
        self._host_patterns = Patterns()
        self._patterns: dict[int, tuple[Any, Any]] = {}
        self._compared: dict[str, tuple[Any, Any]] = {}  # by variable, the last arrays that were the compiled pattern
        self._graphs: dict[tuple[int | None, ...], Any] = {}

    # -- arrays ---------------------------------------------------------------------------------------

    def array(self, argument: Argument, value: Any) -> Array:
        if argument.pattern is not None:
            return self._values(argument, value) if _is_cupyx(value) else self._host_patterns.values(argument, value)
        if self._is_mine(value):
            array = value
        elif hasattr(value, "__cuda_array_interface__"):
            array = self._cupy.asarray(value)
        elif hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in ON_GPU:
            array = self._cupy.from_dlpack(value)
        else:
            return np.asarray(value)
        if array.data.device_id != self._device.id:
            raise ArgumentError(
                f"variable {argument.name!r} is on {array.device}, the program on {self._device}; move one of them"
            )
        return array

    def flat(self, array: Array) -> Array:
        """Of any shape, in C order: kernels take where it begins."""
        if array.dtype == self.dtype and array.flags.c_contiguous:
            return array
        return self._cupy.get_array_module(array).ascontiguousarray(array, self.dtype)

    def output(self, number: int, inputs: list[Array]) -> Array:
        return self.memory(self.plan.output_sizes[number], inputs)

    def memory(self, size: int, inputs: list[Array]) -> Array:
        """CuPy's, if any input is; else NumPy's in page-locked memory."""
        return self._empty(size) if any(map(self._is_mine, inputs)) else _page_locked(size, self.dtype)

    def _is_mine(self, array: Array) -> bool:
        return isinstance(array, self._cupy.ndarray)

    def _empty(self, size: int) -> Array:
        return self._cupy.ndarray((size,), self.dtype)  # in a third of the time of `empty`

    # -- sparse matrices ------------------------------------------------------------------------------

    def matrix(self, pattern: Any, values: Array) -> Any:
        return with_values(self._pattern(pattern) if self._is_mine(values) else pattern, values)

    def _pattern(self, pattern: Any) -> Any:
        """The pattern as a matrix of CuPy's; the host's is kept, so that its identity stays its own."""
        if id(pattern) not in self._patterns:
            import cupyx.scipy.sparse as cusparse

            data = self._empty(pattern.data.size).reshape(pattern.data.shape)
            places = tuple(map(self._cupy.asarray, index_arrays(pattern)))
            matrix = made(getattr(cusparse, type(pattern).__name__), data, places, shape=pattern.shape)
            self._patterns[id(pattern)] = pattern, matrix
        return self._patterns[id(pattern)][1]

    def _values(self, argument: Argument, value: Any) -> Array:
        """The values of CuPy's sparse matrix, refused where its pattern is not the compiled one.

        Comparing waits for the GPU: index arrays that were found to be the pattern's are not compared again, so they
        must not be changed in place.
        """
        assert argument.pattern is not None
        matrix = value.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        arrays, known = (matrix.indptr, matrix.indices), self._compared.get(argument.name, (None, None))
        pattern = self._pattern(argument.pattern)
        is_known = all(a is b for a, b in zip(arrays, known, strict=True))
        pairs = () if is_known else zip(arrays, (pattern.indptr, pattern.indices), strict=True)
        if value.shape != pattern.shape or not all(a is b or self._cupy.array_equal(a, b) for a, b in pairs):
            raise ArgumentError(
                f"variable {argument.name!r}: its pattern differs from the compiled one of shape {pattern.shape}; "
                "compile again for another pattern"
            )
        self._compared[argument.name] = arrays
        return matrix.data

    # -- running --------------------------------------------------------------------------------------

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        self._run(None, inputs, outputs)

    def run_batch(self, size: int, inputs: list[Array], outputs: list[Array]) -> None:
        self._run(size, inputs, outputs)

    def _run(self, size: int | None, inputs: list[Array], outputs: list[Array]) -> None:
        """size : how many items a batch has; None for no batch"""
        with self._device:
            stream, staged = self._cupy.cuda.get_current_stream(), []
            sources = [x if self._is_mine(x) else self._uploaded(x, stream, staged) for x in inputs]
            results = [y if self._is_mine(y) else self._empty(y.size).reshape(y.shape) for y in outputs]
            workspace = self.plan.workspace_size
            memory = self._empty(workspace) if size is None else memory_of_items(self, size, workspace, sources)
            self._launch(size, [*sources, *results, memory], stream)
            fetched = [(y, result) for y, result in zip(outputs, results, strict=True) if y is not result]
            for output, result in fetched:
                if output.flags.c_contiguous:
                    result.get(stream, out=output, blocking=False)
                else:
                    output[:] = result.get(stream)
            if staged or fetched:
                stream.synchronize()

    def _uploaded(self, array: np.ndarray, stream: Any, staged: list[np.ndarray]) -> Array:
        """An array on the GPU; ``staged`` collects what must stay until the stream has read it."""
        target = self._empty(array.size)
        if array.size == 1:
            target.fill(array.item())  # a number goes with the launch: nothing to wait for
        else:
            staged.append(_page_locked(array.size, self.dtype))
            staged[-1][:] = array.reshape(-1)
            target.set(staged[-1], stream)
        return target.reshape(array.shape)

    def _launch(self, size: int | None, arrays: list[Array], stream: Any) -> None:
        """All kernels; as one graph where these arrays have been here before, as they are in a loop."""
        key = size, *(a.data.ptr for a in arrays)
        if key in self._graphs:
            graph = self._graphs[key] = self._graphs[key] or self._captured(size, arrays)
            graph.launch(stream)
            return
        if not self._cupy.cuda.runtime.is_hip:  # for which CuPy has no graphs
            self._graphs = dict([*self._graphs.items(), (key, None)][-GRAPHS:])
        self._launch_each(size, arrays)

    def _launch_each(self, size: int | None, arrays: list[Array], sides: Sequence[Any] = ()) -> None:
        """All kernels of all items, those of a level side by side where there are further streams."""
        items = [arrays] if size is None else [[a[i] if a.ndim > 1 else a for a in arrays] for i in range(size)]
        calls, stream = [[*item, *self._tables] for item in items], self._cupy.cuda.get_current_stream()
        for level in self._levels:
            before = stream.record() if sides else None
            for number, (buffers, (kernel, launch)) in enumerate(itertools.product(calls, level)):
                arguments = (np.int32(launch.count), *(buffers[b] for b in launch.buffers))
                if number and sides:
                    side = sides[number % len(sides)]
                    side.wait_event(before)
                    with side:
                        kernel((launch.blocks,), (BLOCK,), arguments)
                    stream.wait_event(side.record())
                else:
                    kernel((launch.blocks,), (BLOCK,), arguments)

    def _captured(self, size: int | None, arrays: list[Array]) -> Any:
        stream, *sides = (self._cupy.cuda.Stream(non_blocking=True) for _ in range(1 + SIDES))
        with stream:
            stream.begin_capture()
            self._launch_each(size, arrays, sides)
            return stream.end_capture()


def _page_locked(size: int, dtype: np.dtype) -> np.ndarray:
    from cupyx import empty_pinned

    return empty_pinned(max(size, 1), dtype)[:size]  # pyright: ignore[reportArgumentType]


def _is_cupyx(value: Any) -> bool:
    from cupyx.scipy.sparse import issparse

    return issparse(value)


MACHINE = CudaMachine


def vectors(options: Options, dtype: np.dtype) -> None:
    """The text has none."""


def describe() -> str:
    """The current GPU, in a line."""
    cupy = _cupy()
    try:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"device 'cuda' needs an NVIDIA GPU and its driver ({error}); 'cuda-on-host' runs the same text on the CPU"
        ) from error
    return f"{properties['name'].decode()}, {properties['totalGlobalMem'] / 2**30:.0f} GiB"


def _cupy() -> Any:
    """CuPy, which takes a second to import."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"device 'cuda' needs CuPy ({error}): pip install geoopt-compiler[cuda], or geoopt-compiler[cuda13]"
        ) from error
    return cupy
