"""Compiled functions mean what they mean to Python, and say where they have something that cannot be compiled."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.integers import cores, gathers, owners, segments
from geoopt.integers.hashing import add_hashes
from geoopt.integers.sweeps import meet, reach
from geoopt.meshes import tetrahedral_ball, torus
from geoopt.native import Compiled, compiled, fetch, seconds_of_compiling, trailing_zeros
from geoopt.operators import cotan_laplacian, dual_laplacian, edges, gradient, spring_energy
from geoopt.solvers import multifrontal
from geoopt.solvers.linear import LinearSolver

FACTOR = np.uint64(0x9E3779B97F4A7C15)
SIGNED, UNSIGNED = (np.int8, np.int16, np.int32, np.int64), (np.uint8, np.uint16, np.uint32)


class Strict(np.ndarray):
    """Whose places do not count from the end."""

    def __getitem__(self, at):
        assert all(i >= 0 for i in (at if type(at) is tuple else (at,)) if type(i) is not slice)
        return super().__getitem__(at)

    def __setitem__(self, at, value):
        assert all(i >= 0 for i in (at if type(at) is tuple else (at,)) if type(i) is not slice)
        super().__setitem__(at, value)


def wide(array: np.ndarray) -> np.ndarray:
    """A copy for Python, whose integers do not overflow as NumPy's short ones do."""
    is_short = array.dtype.kind in "iu" and array.dtype != np.uint64
    return array.astype(np.int64 if is_short else array.dtype).view(Strict)


def assert_is_python(function: Compiled, *arguments):
    """Run a function both ways, on arrays that share memory where the given ones do."""
    copies: dict = {}

    def copy(argument):
        if isinstance(argument, tuple):
            return tuple(map(copy, argument))
        if not isinstance(argument, np.ndarray):
            return argument
        key = argument.ctypes.data, argument.shape, argument.strides, argument.dtype
        return copies.setdefault(key, (argument, wide(argument)))[1]

    for_python = [copy(a) for a in arguments]
    got = function(*arguments)
    with np.errstate(over="ignore"):
        assert got == function.python(*for_python)
    for array, of_python in copies.values():
        rounding = 1e-12 if array.dtype.kind == "f" else 0  # products and sums are one operation where they can be
        np.testing.assert_allclose(array, of_python.view(np.ndarray).astype(array.dtype), rounding, rounding)
    return got


@compiled
def arithmetic(a, b, out):
    for i in range(len(a)):
        x, y = a[i], b[i]
        out[i, 0], out[i, 1], out[i, 2] = x + y, x - y, x * y
        out[i, 3], out[i, 4] = x // y, x % y
        out[i, 5], out[i, 6], out[i, 7] = x & y, x | y, x ^ y
        out[i, 8], out[i, 9] = x << 3, x >> 2
        out[i, 10], out[i, 11], out[i, 12] = min(x, y, 5), max(x, y), abs(x - y)
        out[i, 13], out[i, 14], out[i, 15] = -x, x // 8, x % 8
        out[i, 16] = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y) + 16 * (x > y) + 32 * (x >= y)


@pytest.mark.parametrize("one", SIGNED + UNSIGNED)
@pytest.mark.parametrize("other", SIGNED + UNSIGNED)
def test_arithmetic(one, other):
    generator = np.random.default_rng(1)
    a = generator.integers(0 if one in UNSIGNED else -100, 100, 200).astype(one)
    b = generator.integers(1 if other in UNSIGNED else -100, 100, 200).astype(other)
    b[b == 0] = 7
    assert_is_python(arithmetic, a, b, np.zeros((200, 17), np.int64))


@compiled
def modulo_two_to_the_64(a, b, out):
    for i in range(len(a)):
        x = (a[i] + b[i]) * FACTOR - b[i] * np.uint64(3)
        out[i, 0], out[i, 1] = x ^ (x >> np.uint64(30)), x << np.uint64(7)
        out[i, 2], out[i, 3] = x // (b[i] | np.uint64(1)), x % (b[i] | np.uint64(1))
        out[i, 4] = (x < b[i]) + 2 * (x >= a[i]) + 4 * (min(x, b[i]) == max(a[i], b[i]))
        out[i, 5] = np.int64(x >> np.uint64(1)) - 5
        out[i, 6] = np.uint64(i) + 1


def test_words():
    a, b = np.random.default_rng(2).integers(3, 2**64, (2, 100), np.uint64)
    assert_is_python(modulo_two_to_the_64, a, b, np.zeros((100, 7), np.uint64))


@compiled
def flow(a, out):
    total, last = 0, -1
    for i in range(len(a) - 1, -1, -2):
        if a[i] < 0:
            continue
        elif a[i] > 90 and not (i % 3 == 0 or i % 5 == 0):
            break
        k = a[i]
        while True:
            k -= 7
            if k < 0:
                break
            total += 1 if k & 1 else 2
        out[i], last = total, i if 10 <= k + 20 < 18 else last
    for x in a[3:9]:
        if x == a[0]:
            return last
        total += x
    return total


@pytest.mark.parametrize("seed", range(20))
def test_control_flow(seed):
    a = np.random.default_rng(seed).integers(-20, 100, 30).astype(np.int16)
    assert_is_python(flow, a, np.zeros(30, np.int64))


def pair(a, i):
    if i % 2:
        return a[i], a[:i]
    return a[0], a[i:]


@compiled
def functions_and_views(columns, matrix, is_odd, out):
    for c in range(len(columns)):
        for i in range(len(columns[c])):
            number, part = pair(columns[c], i)
            row = matrix[i]
            for x in part:
                number += x
            other = matrix[c, :i]
            row, other = other, row
            if i < 3:
                row, other = other, row
            out[c, i] = number + len(other) + 100 * len(row) + matrix.shape[1] + row[0] + trailing_zeros(1 << i)
            is_odd[c, i] = out[c, i] % 2 == 1
            fetch(matrix, i)
    return is_odd[0, 1]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("order", ["contiguous", "every second", "transposed"])
def test_arrays_of_all_types_and_orders(dtype, order):
    generator = np.random.default_rng(4)
    matrix = generator.integers(0, 100, (24, 24)).astype(dtype)
    matrix = {"contiguous": matrix[:12], "every second": matrix[::2, ::2], "transposed": matrix.T[:12]}[order]
    columns = tuple(generator.integers(0, 100, (3, 12)).astype(dtype))
    is_odd, out = np.zeros((3, 12), bool), np.zeros((12, 3), np.int64).T
    assert isinstance(assert_is_python(functions_and_views, columns, matrix, is_odd, out), bool)
    assert is_odd.any() and not is_odd.all()


@compiled
def moved(numbers, places, out):
    for k in range(len(places)):
        out[k] = numbers[places[k]] if places[k] > 2 else places[k]
        if numbers[places[k]] != numbers[places[k]] or numbers[places[k]] >= numbers[0]:
            out[k] = max(numbers[0], numbers[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_moved_and_compared(dtype):
    numbers = np.random.default_rng(5).standard_normal(50).astype(dtype)
    numbers[7], numbers[9] = np.nan, -np.inf
    assert_is_python(moved, numbers, np.arange(50), np.zeros(50, dtype))


def allocates(a):
    return np.zeros(3)


def unknown_name(a):
    b = a[0] + undefined  # noqa: F821
    return b


def changes_type(a):
    b = 1
    b = a
    return b


def mixes(a, w):
    return a[0] + w[0]


def raises_to_powers(a):
    return a[0] ** 2


def has_else(a):
    for x in a:
        a[0] = x
    else:
        a[1] = 1


def calls_by_name(a):
    return max(a[0], default=1)


def fills(a):
    a[:] = 0


def returns_an_array(a):
    return a


def text(a):
    return "a"


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        (allocates, 1, "np.zeros is no function that can be compiled"),
        (unknown_name, 1, "None is no constant"),
        (changes_type, 2, "a variable has one type: int, not Array"),
        (mixes, 1, "an integer is needed, not word"),
        (raises_to_powers, 1, "no Pow"),
        (has_else, 1, "loops have no else"),
        (calls_by_name, 1, "arguments are given in order"),
        (fills, 1, "no Slice"),
        (text, 1, "'a' is no constant"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_cannot_be_compiled_is_an_error_of_its_line(function, line, message):
    arguments = [np.arange(4), np.arange(4, dtype=np.uint64)][: function.__code__.co_argcount]
    with pytest.raises(SyntaxError, match=message) as raised:
        compiled(function)(*arguments)
    assert raised.value.filename == __file__
    assert raised.value.lineno == function.__code__.co_firstlineno + line


def test_what_cannot_be_returned_or_taken_is_an_error():
    with pytest.raises(TypeError, match="returns a number or nothing"):
        compiled(returns_an_array)(np.arange(3))
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        compiled(mixes)(np.arange(3))
    with pytest.raises((TypeError, SyntaxError), match="complex128"):
        compiled(mixes)(np.ones(3, complex), np.ones(3, complex))


def test_threads_compile_once_and_all_get_results():
    @compiled
    def total(a):
        found = 0
        for x in a:
            found += x
        return found

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(lambda n: total(np.arange(1000)), range(100))} == {499500}
    assert len(total.versions) == 1


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="needs Linux's /proc, which tells the memory")
def test_what_llvm_optimises_with_is_freed():
    """In a process of its own, where nothing else takes memory."""
    code = """
import os
from geoopt.native.object_code import assembly, host

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

for k in range(200):
    if k == 50:
        before = resident()
    assembly(f"define double @f{k}(double %x) {{ ret double %x }}", host())
print((resident() - before) // 150)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 15_000  # bytes of each


def test_what_was_compiled_is_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOOPT_CACHE_DIR", str(tmp_path / "programs"))
    for _ in range(2):
        before = seconds_of_compiling()
        compiled(flow.python)(np.arange(9, 30), np.zeros(30, np.int64))
        is_new = seconds_of_compiling() > before
    assert not is_new and len([*(tmp_path / "programs-loops").iterdir()]) == 1


CALLS = 20  # of each function that are held to Python's


# -- geoopt's own ---------------------------------------------------------------------------------------


def own() -> dict[str, Compiled]:
    """All compiled functions of the package, by module and name."""
    modules = [m for name, m in [*sys.modules.items()] if name.startswith("geoopt.")]
    return {f"{f.__module__}.{f.__name__}": f for m in modules for f in vars(m).values() if isinstance(f, Compiled)}


@pytest.fixture
def checked(monkeypatch):
    """Runs the first calls of each of geoopt's own compiled functions both ways, on one core and however little the
    work is; the functions that have run."""
    seen: Counter = Counter()
    call = Compiled.__call__

    def both_ways(function, *arguments):
        name = f"{function.__module__}.{function.__name__}"
        seen[name] += 1
        if seen[name] > CALLS:
            return call(function, *arguments)
        with monkeypatch.context() as patch:
            patch.setattr(Compiled, "__call__", call)
            return assert_is_python(function, *arguments)

    for module in (gathers, owners, segments):
        monkeypatch.setattr(module, "FEW", 1)
    monkeypatch.setattr(cores, "number_of_cores", lambda: 1)
    monkeypatch.setattr("geoopt.place.TASK_MEMBERS", 48)
    monkeypatch.setattr(Compiled, "__call__", both_ways)
    return seen


def by_loops(V, F):
    total = [0.0] * len(V)
    for face in F.tolist():
        a, b, c = (V[i] for i in face)
        n = np.cross(b - a, c - a)
        for i in face:
            total[i] += np.sqrt(n[0] * n[0] - n[1] * n[1] - n[2]) / 6
    return total


def smoothed(V, W):
    for _ in range(4):
        V = 0.5 * V + 0.5 * (W @ V)
    return V


def stiffness(V, E):
    return geoopt.hessian(lambda x: spring_energy(x, E, np.ones(len(E)), 3.0))(V)


def programs():
    """Functions, their arguments and options, that together need all loops."""
    V, F = torus(64)
    L = cotan_laplacian(V, F)[0]
    A, B = (sp.random_array((50, 50), density=0.05, format="csr", rng=np.random.default_rng(n)) for n in (0, 1))
    yield (cotan_laplacian, V, F), {}
    yield (cotan_laplacian, V, F), {"device": "cuda-on-host"}
    yield (cotan_laplacian, V, F), {"options": geoopt.Options(assembly="scatter", threads=2)}
    yield (dual_laplacian, *tetrahedral_ball(60)), {}
    yield (by_loops, V, F), {}
    yield (smoothed, V, L), {}
    yield (stiffness, V, edges(F)), {}
    yield (lambda V: (lambda G: G.T @ G)(gradient(V, F)), V), {}
    yield (lambda x: geoopt.gradient(lambda x: np.sum(x[F] ** 2))(x), V), {}
    yield (lambda L: L @ L @ L, L), {}
    yield (lambda A, B: (A @ B + A) @ B, A, B), {}
    yield (lambda A, B: (A @ B + A) @ np.ones(50), A, B), {}


def examples():
    """Calls of functions that only large programs need."""
    numbers = np.random.default_rng(6).integers(0, 30, (5, 60))
    yield add_hashes, numbers[0].astype(np.uint64), numbers[1].astype(np.int32), 3
    ends, first, last = np.sort(numbers[2, :20]) * 2, np.full(30, 99), np.full(30, -1)
    yield meet, numbers[1], ends, numbers[3], first, last
    yield reach, numbers[1], ends, np.arange(20), first, last, np.full(20, 99), np.full(20, -1)


def solve(monkeypatch):
    """A system whose fronts are divided as those of large ones are."""

    def run(job, *arguments):
        """All tasks are calls, one after the other."""
        for task in job.tasks.words:
            job.kernels[task[0]](*arguments, task)

    monkeypatch.setattr(multifrontal._Job, "run", run)
    for place, value in (("tasks.LARGE", 100), ("tasks.STRIPS", 1), ("division.LEAST", 2000)):
        monkeypatch.setattr(f"geoopt.solvers.{place}", value)
    A = sp.random_array((90, 90), density=0.03, format="csr", rng=np.random.default_rng(0))
    A = sp.csr_array(A + A.T + 5 * sp.eye_array(90))
    solver = LinearSolver(A.indptr, A.indices)
    solver.factor(A.data)
    b = np.arange(360.0).reshape(90, 4)
    np.testing.assert_allclose(A @ solver.solve(b), b, atol=1e-12)


@pytest.mark.usefixtures("on_avx512")
def test_all_own_loops_mean_what_they_mean_to_python(checked, monkeypatch):
    for arguments, keywords in programs():
        geoopt.compile(*arguments, **keywords)
    for function, *arguments in examples():
        function(*arguments)
    solve(monkeypatch)
    assert {*own()} - {*checked} == set()
