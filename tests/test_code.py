"""The kernel language means what the plan means; C printed of it is compiled by the compilers that there are."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.codegen import CODE, c, interpreter
from geoopt.codegen.c_text import CText
from geoopt.codegen.code_text import listing, text
from geoopt.codegen.expressions import Divided, Expr, Name, Plus, Remainder, Times, Whole
from geoopt.codegen.interpreter import value
from geoopt.codegen.statements import Let, Statement
from geoopt.errors import ArgumentError, InternalError
from geoopt.meshes import bumpy
from geoopt.meshes import cloth as cloth_mesh
from geoopt.operators import cloth, cloth_system, cotan_laplacian, harmonic, polar_rotation
from geoopt.plan.planned import PlannedSequences
from geoopt.plan.relist import relist

from .conftest import grid_of, needs_cuda_on_host, two_triangles, with_unreferenced
from .test_projection import ENERGIES
from .test_sequences import periodic
from .test_stages import ALL, RNG

DOUBLE = np.dtype(np.float64)
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
FLAGS = ("-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


def laplacian(count):
    return cotan_laplacian(*bumpy(count))[0]


def cloth_step(count=60):
    V, F = cloth_mesh(count)
    return cloth_system, (V, V, 0.01, cloth(V, F))


L, A = laplacian(300), sp.random_array((300, 300), density=0.02, format="csr", rng=np.random.default_rng(0))
CASES = {
    "cotan": (cotan_laplacian, with_unreferenced()),
    "cloth": cloth_step(),
    "product": (lambda L: L @ L, (L,)),
    "random product": (lambda A: A @ A, (A,)),
    "rows": (lambda A: A.sum(axis=1), (A,)),
    "stencil": (periodic, (np.random.default_rng(2).normal(size=(20, 31)),)),
    "polar": (polar_rotation, (np.random.default_rng(3).normal(size=(40, 3, 3)),)),
    **{function.__name__: (function, (RNG.uniform(0.5, 2.0, 9), 0.7)) for function in ALL},
}


def is_variable(argument):
    return sp.issparse(argument) or getattr(np.asarray(argument), "dtype", np.dtype("O")).kind == "f"


def inputs(arguments):
    """The entries of all variables."""
    return [a.data if sp.issparse(a) else np.asarray(a, float) for a in arguments if is_variable(a)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lanes", [0, 2])
def test_the_kernel_language_means_the_plan(name, lanes):
    """Also where the processor at hand reads runs and cursors, and writes rows: these are listed again first."""
    function, arguments = CASES[name]
    program = geoopt.compile(function, *arguments, options=geoopt.Options(lanes=lanes))
    plan = program.machine.plan
    wanted = plan.evaluate(inputs(arguments), plan.tasks)
    again = relist(plan)
    for got, want in zip(again.evaluate(inputs(arguments), again.tasks), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(interpreter.evaluate(again, inputs(arguments)), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


class Compiled:
    """A C file as a shared library."""

    def __init__(self, text, compiler, folder):
        (folder / "program.c").write_text(text)
        target = folder / "program.so"
        subprocess.run([compiler, *FLAGS, "-o", target, folder / "program.c", "-lm"], check=True)
        self.library = ctypes.CDLL(str(target))

    def __call__(self, plan, arrays, dtype):
        arrays = [np.ascontiguousarray(a, dtype).ravel() for a in arrays]
        outputs = [np.full(n, np.nan, dtype) for n in plan.output_sizes]
        workspace = np.full(max(plan.workspace_size, 1), np.nan, dtype)
        pointers = lambda arrays: (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))  # noqa: E731
        self.library.evaluate(pointers(arrays), pointers(outputs), ctypes.c_void_p(workspace.ctypes.data))
        return outputs


def flat(result):
    results = result if isinstance(result, tuple | list) else (result,)
    return [r.data if sp.issparse(r) else np.ravel(r) for r in results]


@pytest.mark.parametrize("compiler", COMPILERS or [pytest.param("", marks=pytest.mark.skip(reason="no C compiler"))])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "float"])
@pytest.mark.parametrize("name", CASES)
def test_c_gives_the_same_bits(name, dtype, compiler, tmp_path):
    """Where nothing is fused: sums are added up in the order of their terms, and functions are the C library's."""
    function, arguments = CASES[name]
    program = geoopt.compile(function, *arguments, dtype=dtype, options=geoopt.Options(strict=True, lanes=2))
    found = Compiled(program.source("c"), compiler, tmp_path)(program.machine.plan, inputs(arguments), dtype)
    values = [a for a in arguments if is_variable(a)]
    for got, want in zip(found, flat(program(*values)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
@pytest.mark.parametrize("name", ["cotan", "cloth", "random product"])
def test_c_of_what_the_processor_at_hand_runs(name, tmp_path):
    function, arguments = CASES[name]
    program = geoopt.compile(function, *arguments)
    found = Compiled(program.source("c"), COMPILERS[0], tmp_path)(program.machine.plan, inputs(arguments), float)
    values = [a for a in arguments if is_variable(a)]
    for got, want in zip(found, flat(program(*values)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12 * abs(want).max())


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_c_makes_matrices_semidefinite(tmp_path):
    energy, x = ENERGIES["hinges"]
    program = geoopt.compile(geoopt.hessian(energy, project="abs"), x)
    (found,) = Compiled(program.source("c"), COMPILERS[0], tmp_path)(program.machine.plan, [x], float)
    np.testing.assert_allclose(found, flat(program(x))[0], rtol=1e-9, atol=1e-9)


@needs_cuda_on_host
def test_a_program_for_a_gpu_is_c_too():
    program = geoopt.compile(lambda A: A.sum(axis=1), A, device="cuda-on-host")
    assert "void evaluate(" in program.source("c")


def test_a_program_that_solves_has_no_c():
    V, F = bumpy(200)
    program = geoopt.compile(harmonic, V, F, np.array([0, 5]), np.array([0.0, 1.0]))
    with pytest.raises(ArgumentError, match="solves linear systems"):
        program.source("c")


# -- the language itself ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unknown(Expr):
    pass


@dataclass(frozen=True)
class Odd(Statement):
    pass


def test_what_is_not_of_the_language_is_refused():
    printer = CText(DOUBLE, "double", "int")
    with pytest.raises(InternalError, match="'c': there is no text for the expression Unknown"):
        list(printer.lines([Let("x", "number", Unknown())]))
    with pytest.raises(InternalError, match="'c': there is no text for the statement Odd"):
        list(printer.lines([Odd()]))
    with pytest.raises(InternalError, match="no threads share a member"):
        list(printer.shared(()))
    for refused in (lambda: listing([Odd()]), lambda: listing([Let("x", "number", Unknown())])):
        with pytest.raises(TypeError, match="of the kernel language"):
            refused()
    for statement in (Odd(), Let("x", "number", Unknown())):
        with pytest.raises(TypeError, match="of the kernel language"):
            interpreter.Interpreter().run([statement], {}, {})


NAMED = st.integers(0, 40).map(Whole) | st.just(Name("i"))
WHOLE = st.recursive(
    NAMED,
    lambda inner: (
        st.builds(Plus, inner, inner)
        | st.builds(Times, st.integers(-3, 3), inner)
        | st.builds(Divided, inner.filter(lambda e: value(e, {}, {"i": 7}) >= 0), st.integers(1, 9))
        | st.builds(Remainder, inner.filter(lambda e: value(e, {}, {"i": 7}) >= 0), st.integers(1, 9))
    ),
    max_leaves=6,
)


@given(WHOLE)
def test_brackets_are_where_they_are_needed(e):
    """Whole numbers as C and as the language's own text, read by Python."""
    assert "--" not in CText(DOUBLE, "double", "int").text(e)
    for written in (CText(DOUBLE, "double", "int").text(e), text(e)):
        assert eval(written.replace("/", "//"), {"i": 7}) == value(e, {}, {"i": 7})


def test_what_must_be_listed_again_is_refused():
    function, arguments = CASES["stencil"]
    program = geoopt.compile(function, *arguments, options=geoopt.Options(lanes=4))
    plan = program.machine.plan
    assert PlannedSequences in plan.forms()
    for print_or_run in (lambda: c.emit(plan, DOUBLE), lambda: interpreter.evaluate(plan, inputs(arguments))):
        with pytest.raises(InternalError, match=r"'c'.*PlannedSequences|'lower'.*relist"):
            print_or_run()


def test_the_language_is_shown():
    shown = geoopt.view(cotan_laplacian, *two_triangles(), stage="code")
    assert shown.startswith("kernel 0, member i:\nlet x0 = b0[2]\n") and "sqrt(" in shown
    options = geoopt.Options(unrolled_terms=0)
    rows = geoopt.view(lambda L: L @ L, laplacian(20), stage="code", device="cuda", options=options)
    assert "for t0 from begin0 below end0 by 16:" in rows and "s0 += r" in rows
    vectors = geoopt.view(cotan_laplacian, *bumpy(300), stage="vectors", options=geoopt.Options(lanes=4))
    assert vectors.startswith("kernel 0, by vectors of 4:\nfunction k(b0, ")
    assert "for i from begin below stop by 4:" in vectors
    with pytest.raises(ArgumentError, match="choose from"):
        geoopt.view(cotan_laplacian, *two_triangles(), stage="vectors", device="cuda")
    by_warps = CODE["cuda"](grid_of(lambda A: A.sum(axis=1), sp.csr_array(np.ones((4, 400)))))
    assert "for t0 from begin0 + lane below end0 by 32:" in by_warps and "shared s0" in by_warps


def test_tables_and_tasks_are_in_the_file():
    program = geoopt.compile(cotan_laplacian, *two_triangles(), options=geoopt.Options(lanes=4))
    printed = program.source("c")
    assert printed == c.emit(relist(program.machine.plan), DOUBLE)
    assert printed.count("static void k") == len(program.plan.kernels) and "#include <tgmath.h>" in printed
