"""Every switch and threshold of the compiler, in one place."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from .errors import ArgumentError

FAMILIES = ("constants", "sums", "factors", "fractions", "roots")  # in the order in which they are applied
SWITCHES = ("global", "local", "memory")
ASSUMPTIONS = ("finite", "exact", "in range")
SCATTERED_VALUES = 48  # with fewer values per element, entries that gather them are as fast
ASSEMBLIES = ("auto", "gather", "recompute", "scatter")


@dataclass(frozen=True)
class Options:
    """How a program is compiled and run.

    threads : threads per call, also to solve linear systems; 0 means all cores. The results do not depend on it, to the
        last bit. Preparing uses all cores of the process, or as many as the variable NUMBA_NUM_THREADS of the
        environment says
    t_ref : a scalar read at least so often by other elements may become an intermediate (paper, t_ref); one that takes
        much work, or that lies many elements deep, if they and its own element read it nearly as often.
    t_complexity : ... if computing it costs at least so much (paper, t_complexity).
    unrolled_terms : sums with at most so many terms are unrolled, longer ones loop.
    blocks : evaluate intermediates and outputs of one mesh element in one kernel.
    without : names of what is switched off: the simplification families constants, sums, factors, fractions and
        roots; "global" decomposition (values that several
        kernels need are computed in each), "local" decomposition (a kernel computes equal and opposite values
        each time they are written), "memory" optimisation (order of members, kernels shared by values that go to
        one place and to two, shared workspace, small columns, prefetching).
    assume : what simplification may assume: "finite" (no NaN and no infinity occurs, so that x - x is 0 and x * y / x
        is y); "exact" (rounding does no harm, so that (x - y) + z may become (x + z) - y, although digits are lost
        where x and y are large and nearly equal); "in range" (no product or quotient overflows or vanishes, so that
        x / y / z may become x / (y z) and sqrt(x) * sqrt(y) the root of x y).
    strict : the operations that the code says, in its order, for code that relies on how numbers are rounded: what is
        computed entry by entry with + - * /, roots, absolute values, minima, maxima, comparisons and choices has
        NumPy's bits. Nothing is simplified, products and sums are not fused, and sums add their terms from the first to
        the last; those of more than 2,048 terms are first added up in lanes, of at most 128 terms that are 64 entries
        apart, and the sums of lanes likewise. Functions of the C library, such as exp, remain within 4 units in the
        last place.
    assembly : how sums of elements' values are made: "gather" (elements store their values, each entry reads its own),
        "recompute" (each entry evaluates what it sums), "scatter" (elements add their values to the entries; on the
        CPU), or "auto", by what each costs.
    lanes : width of a vector in elements; 0 means the host's.
    gathers : "scalar" loads, or "hardware" gather instructions, which were slower on all processors measured.

    Without ``strict``, results differ from NumPy's by rounding: the error is no larger than a few times NumPy's. NaN,
    infinities and zeros are where NumPy has them, but for these: a factor that cancels (x * y / (x * x)), or whose root
    is squared, may be 0 or infinite, and one that is taken out of a sum infinite; a divisor of several values is
    inverted once, which makes infinity of a denormal number; what is equal, or opposite, in exact arithmetic is
    computed once, so that infinity minus infinity, or one of several divisors, may be left out, and zeros may have the
    other sign. Rounding depends on the width of vectors, too: functions of the C library have another version for each.

    Raises ArgumentError for names that there are not, and numbers out of range.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> on = [geoopt.Options(threads=count) for count in (1, 2)]
    >>> one, two = [geoopt.compile(geoopt.operators.vertex_normals, V, F, options=options) for options in on]
    >>> np.array_equal(one(V), two(V))  # to the last bit
    True
    >>> geoopt.Options(without="sum")
    Traceback (most recent call last):
        ...
    geoopt.errors.ArgumentError: Options(without=...): unknown switch ['sum']; choose from ...
    """

    threads: int = 1
    t_ref: float = 2.0
    t_complexity: int = 4
    unrolled_terms: int = 3
    blocks: bool = True
    without: frozenset[str] = frozenset()
    assume: frozenset[str] = frozenset()
    strict: bool = False
    assembly: str = "auto"
    lanes: int = 0
    gathers: str = "scalar"

    def __post_init__(self) -> None:
        self._check_names("without", "switch", (*FAMILIES, *SWITCHES))
        self._check_names("assume", "assumption", ASSUMPTIONS)
        if not isinstance(self.threads, int) or self.threads < 0:
            raise ArgumentError(f"Options(threads={self.threads}): use 0 for all cores, or a positive number")
        for name, least in (("t_ref", 0.0), ("t_complexity", 0), ("unrolled_terms", 0)):
            if not getattr(self, name) >= least:
                raise ArgumentError(f"Options({name}={getattr(self, name)}): use a number of at least {least}")
        for name, choices in (("gathers", ("scalar", "hardware")), ("assembly", ASSEMBLIES)):
            if getattr(self, name) not in choices:
                raise ArgumentError(f"Options({name}={getattr(self, name)!r}): choose from {choices}")
        if not isinstance(self.strict, bool):
            raise ArgumentError(f"Options(strict={self.strict!r}): use True or False")
        if self.lanes not in (0, 1, 2, 4, 8, 16):
            raise ArgumentError(f"Options(lanes={self.lanes}): use 1, 2, 4, 8 or 16, or 0 for the host's width")

    def _check_names(self, field: str, kind: str, choices: tuple[str, ...]) -> None:
        given = getattr(self, field)
        names = frozenset({given} if isinstance(given, str) else given)
        object.__setattr__(self, field, names)
        if unknown := names - set(choices):
            raise ArgumentError(f"Options({field}=...): unknown {kind} {sorted(unknown)}; choose from {choices}")

    def has(self, switch: str) -> bool:
        """Whether a switch or a family is on."""
        return switch not in self.without

    @property
    def least_scattered(self) -> float:
        """With at least so many values of each element a sum of elements' values is scattered."""
        return {"auto": SCATTERED_VALUES, "scatter": 1}.get(self.assembly, math.inf)

    @property
    def worker_count(self) -> int:
        """``threads`` with 0 resolved."""
        return self.threads or os.cpu_count() or 1
