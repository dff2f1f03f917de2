"""Rounding, infinities, NaN and zeros: results are as exact as NumPy's and of the same kind, and `strict` its bits."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import geoopt
from geoopt.options import FAMILIES
from geoopt.runtime import cuda

from .conftest import needs, needs_cuda_on_host

WITHOUT = [(), *((family,) for family in FAMILIES), tuple(FAMILIES)]
DTYPES = [np.float64, np.float32]
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 1e-40, 1e-12, 1e11, 1e20, 3e38, 1e300, 1.0, -1.0]
)
OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "negative": operator.neg,
    "sqrt": np.sqrt, "abs": np.abs, "min": np.minimum, "max": np.maximum, "where": np.where, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
UNARY, COMPARISONS = ("negative", "sqrt", "abs"), ("<", "<=", ">", ">=", "==", "!=")
KNOWN = (0.5, 2.0, 3.0, 0.1, -1.0, 1.0, 0.0, -0.0)


GPUS = [
    pytest.param("cuda-on-host", marks=needs_cuda_on_host),
    pytest.param("cuda", marks=[pytest.mark.gpu, needs(cuda.describe)]),
]


class Formula:
    """A random tree of operations on arrays and on numbers that are known."""

    def __init__(self, rng, depth, operations):
        self.op = str(rng.choice(operations)) if depth and rng.random() < 0.9 else ""
        if not self.op:
            self.leaf = int(rng.integers(4)) if rng.random() < 0.8 else float(rng.choice(KNOWN))
            return
        count = 1 if self.op in UNARY else 3 if self.op == "where" else 2
        self.args = [Formula(rng, depth - 1, operations) for _ in range(count)]
        if self.op == "where":
            self.args[0] = Formula(rng, 1, COMPARISONS)
            self.args[0].op = self.args[0].op or "<"
            self.args[0].args = [Formula(rng, 0, ()) for _ in range(2)]
        if not any(a.reads for a in self.args[-2:]):  # of Python's floats NumPy makes numbers of double precision
            self.op, self.leaf = "", 0

    @property
    def reads(self):
        return any(a.reads for a in self.args) if self.op else isinstance(self.leaf, int)

    def __call__(self, *x):
        if not self.op:
            return x[self.leaf] if isinstance(self.leaf, int) else self.leaf
        return OPERATIONS[self.op](*(a(*x) for a in self.args))

    def __str__(self):
        return (
            f"{self.op}({', '.join(map(str, self.args))})"
            if self.op
            else f"x{self.leaf}"
            if self.reads
            else str(self.leaf)
        )


def program(formulas):
    return lambda *x: tuple(f(*x) * 1.0 for f in formulas)


def formulas(rng, count, operations):
    found = (Formula(rng, int(rng.integers(2, 6)), operations) for _ in range(10 * count))
    return [f for f in found if f.reads][:count]


# -- rounding -----------------------------------------------------------------------------------------------


def errors(got, exact):
    """Beside the exact values: the median, and the one that a tenth exceed."""
    size = np.where(exact == 0, 1.0, np.abs(exact))
    return np.quantile((np.abs(got - exact) / size).astype(float), [0.5, 0.9])


def assert_as_exact(got, numpys, exact, what):
    with np.errstate(all="ignore"):
        is_usual = np.isfinite(exact) & np.isfinite(numpys)
        if is_usual.any():
            ours, theirs = (errors(r[is_usual], exact[is_usual]) for r in (got, numpys))
            assert (ours <= 8 * theirs + 4 * np.finfo(float).eps).all(), f"{what}: {ours}, NumPy {theirs}"


REGROUPED = (
    lambda a, b, c, d: 0.5 * a - (0.5 * b + (c - d)),
    lambda a, b, c, d: a * b + (a * 3.0 + (c - d)),
    lambda a, b, c, d: 2.0 * a - (2.0 * b - (c - d)),
    lambda a, b, c, d: (c - d) * (c + d) - (c * c - d * d) * a,
    lambda a, b, c, d: ((c - d) + a) * b + (c + a) * b,
    lambda a, b, c, d: (a / b + (c - d) / b) - (c + b) / b,
)


@pytest.mark.parametrize("without", WITHOUT, ids="-".join)
@pytest.mark.parametrize("k", range(len(REGROUPED)))
def test_differences_of_large_numbers_stay_together(k, without):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 1000)) * 1e-6
    c = 1e6 + rng.normal(size=1000)
    arguments = a, b, c, c + rng.normal(size=1000) * 1e-6
    exact = REGROUPED[k](*(x.astype(np.longdouble) for x in arguments))
    compiled = geoopt.compile(REGROUPED[k], *arguments, options=geoopt.Options(without=frozenset(without)))
    assert_as_exact(compiled(*arguments), REGROUPED[k](*arguments), exact, k)


@pytest.mark.parametrize("without", WITHOUT, ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_formulas_are_as_exact_as_numpys(seed, without):
    """On inputs of sizes from 1e-8 to 1e8, some of which are nearly equal."""
    rng = np.random.default_rng(seed)
    some = formulas(rng, 25, ("+", "-", "*", "/", "+", "-"))
    x = rng.normal(size=(4, 400)) * 10.0 ** rng.uniform(-8, 8, (4, 1))
    x[3] = x[1] * (1 + 1e-12 * rng.normal(size=400))
    compiled = geoopt.compile(program(some), *x, options=geoopt.Options(without=frozenset(without)))
    with np.errstate(all="ignore"):
        exact, numpys = program(some)(*x.astype(np.longdouble)), program(some)(*x)
    for one, ours, theirs, true in zip(some, compiled(*x), numpys, exact, strict=True):
        assert_as_exact(ours, theirs, true, one)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_many_terms(dtype):
    x = np.full(3_000_000, 0.1, dtype)
    got = geoopt.compile(np.sum, x, dtype=dtype)(x)
    assert abs(float(got) / (float(x[0]) * len(x)) - 1) < 32 * np.finfo(dtype).eps


# -- kinds --------------------------------------------------------------------------------------------------


def normalised(v):
    return v / np.linalg.norm(v, axis=1)[:, None]


def of_columns(*columns):
    return np.stack(np.meshgrid(*columns), -1).reshape(-1, len(columns))


V = np.repeat([0.0, 1e-20, 1e-12, 1e11, 1e20, 1.0], 3).reshape(6, 3)
PAIRS = of_columns(SPECIAL, SPECIAL).T.copy()
KINDS = {
    "1 / sqrt": lambda a: 1 / np.sqrt(a),
    "power -0.5": lambda a: a**-0.5,
    "power 1.5": lambda a: np.power(a, 1.5),
    "power -1.5": lambda a: a**-1.5,
    "min of 1 / sqrt": lambda a: np.minimum(1 / np.sqrt(a), 9.0),
    "exp of 1 / sqrt": lambda a: np.exp(-1 / np.sqrt(a)),
    "a / a / a": lambda a: 1 / a / a,
    "quotient of quotients": lambda a: (a / 2) / (2 / a),
    "product of quotients": lambda a: (a / 3) * (5 / a),
    "roots multiplied": lambda a: np.sqrt(a) * np.sqrt(a + a),
    "a + a + a - a": lambda a: a + a + a - a,
    "4 a - 2 a": lambda a: 4 * a - 2 * a,
    "a + 0": lambda a: a + 0.0,
    "0 + a": lambda a: 0.0 + a,
    "a - 0": lambda a: a - 0.0,
    "0 - a": lambda a: 0.0 - a,
    "nan_to_num": np.nan_to_num,
    "reciprocal": np.reciprocal,
    "sign": np.sign,
    "floor": np.floor,
}
OF_TWO = {
    "hypot": np.hypot, "minimum": np.minimum, "maximum": np.maximum, "copysign": np.copysign, "divide": np.divide,
    "floor_divide": np.floor_divide, "fmin": np.fmin, "remainder": np.remainder,
}  # fmt: skip


def assert_alike(got, want):
    """NaN, infinities and zeros with their signs, and numbers but for rounding."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.where(np.isinf(got), got, 0), np.where(np.isinf(want), want, 0))
    is_zero = (want == 0) & ~np.isnan(want)
    np.testing.assert_array_equal(got[is_zero], 0)
    np.testing.assert_array_equal(np.signbit(got[is_zero]), np.signbit(want[is_zero]))
    is_usual = np.isfinite(want)
    assert (np.abs(got - want)[is_usual] <= 64 * np.spacing(np.abs(want[is_usual]))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kinds_are_numpys(name, dtype):
    a = SPECIAL.astype(dtype)
    assert_alike(geoopt.compile(KINDS[name], a, dtype=dtype)(a), KINDS[name](a))


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kinds_are_numpys_on_gpus(dtype, device):
    a = SPECIAL.astype(dtype)
    compiled = geoopt.compile(lambda a: tuple(f(a) for f in KINDS.values()), a, dtype=dtype, device=device)
    for got, function in zip(compiled(a), KINDS.values(), strict=True):
        assert_alike(got, function(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kinds_of_functions_of_two_are_numpys(name, dtype):
    a, b = PAIRS.astype(dtype)
    assert_alike(geoopt.compile(OF_TWO[name], a, b, dtype=dtype)(a, b), OF_TWO[name](a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_lengths_and_cosines_of_small_and_large_vectors(dtype):
    for f in (normalised, lambda v: np.sum(normalised(v) * normalised(v[:, [1, 2, 0]]), axis=1)):
        v = V.astype(dtype)
        assert_alike(geoopt.compile(f, v, dtype=dtype)(v), f(v))


def test_equal_vectors():
    x = np.random.default_rng(0).normal(size=1000)
    v = np.stack([x, 2 * x, 4 * x], axis=1)
    for f, a in ((lambda x, y: np.sqrt(x * x - y * y), x), (np.cross, v)):
        assert not geoopt.compile(f, a, a.copy())(a, a.copy()).any()


# -- strict -------------------------------------------------------------------------------------------------


STRICT = [*OPERATIONS][: [*OPERATIONS].index("<")]


def assert_bits(got, want, what):
    is_same = (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))
    assert is_same.all(), f"{what}: {got[~is_same][0]}, NumPy {want[~is_same][0]}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(12))
def test_strict_programs_have_numpys_bits(seed, dtype):
    assert_strict(seed, dtype, "cpu")


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_strict_programs_have_numpys_bits_on_gpus(dtype, device):
    for seed in (100, 101):
        assert_strict(seed, dtype, device)


@np.errstate(all="ignore")
def assert_strict(seed, dtype, device):
    """Of random formulas on numbers of all sizes and special ones."""
    rng = np.random.default_rng(seed)
    some = formulas(rng, 12, STRICT)
    x = (rng.normal(size=(4, 203)) * 10.0 ** rng.uniform(-8, 8, (4, 203))).astype(dtype)
    is_special = rng.random(x.shape) < 0.4
    x[is_special] = rng.choice(SPECIAL, is_special.sum()).astype(dtype)
    compiled = geoopt.compile(program(some), *x, dtype=dtype, device=device, options=geoopt.Options(strict=True))
    for one, got, want in zip(some, compiled(*x), program(some)(*x), strict=True):
        assert_bits(got, want, one)


def test_strict_sums_begin_with_the_first_term():
    x = np.random.default_rng(3).normal(size=(50, 40)).astype(np.float32)
    got = geoopt.compile(lambda x: x.sum(axis=1), x, dtype=np.float32, options=geoopt.Options(strict=True))(x)
    assert_bits(got, np.cumsum(x, axis=1)[:, -1], "sum")


def test_a_choice_that_is_neither_true_nor_false_is_refused():
    with pytest.raises(geoopt.ArgumentError, match=r"strict='yes'\): use True or False"):
        geoopt.Options(strict="yes")  # type: ignore[arg-type]


def test_integers_of_any_size_are_numbers():
    x = np.linspace(1.0, 2.0, 5)

    def function(x):
        return x * 10**30 + 3

    np.testing.assert_allclose(geoopt.compile(function, x)(x), function(x), rtol=1e-15)
