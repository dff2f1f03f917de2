"""`Program.export`: libraries for C that every compiler takes, that touch no memory but their own, with the same
results."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.codegen import c_library
from geoopt.errors import ArgumentError
from geoopt.meshes import bumpy, cloth
from geoopt.operators import arap_mesh, arap_rhs, cotan_laplacian, harmonic, mass_matrix
from geoopt.operators import cloth as cloth_of

from .cases_operators import case, variables
from .conftest import with_unreferenced
from .test_code import COMPILERS

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
FLAGS = ("-O0", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
X = np.random.default_rng(3).normal(size=(90, 3))
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler")

# runs the library on arrays from files: all at once, and then in three parts, which must give the same
HARNESS = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib.h"
static const size_t inputs[] = {%(inputs)s 0}, outputs[] = {%(outputs)s 0};
static void *fetched(const char *name, size_t size) {
  FILE *file = fopen(name, "rb");
  char *found = malloc(size + 1);
  if (!file || fread(found, 1, size, file) != size) exit(9);
  fclose(file);
  return found;
}
int main(void) {
  lib_tables tables;
  %(scalar)s *in[LIB_INPUTS + 1], *out[LIB_OUTPUTS + 1], *again[LIB_OUTPUTS + 1];
  void *bytes = %(bytes)d ? fetched("lib.bin", %(bytes)d) : NULL;
  if (lib_open(&tables, bytes, %(bytes)d)) return 8;
  if (%(bytes)d && !lib_open(&tables, bytes, %(bytes)d - 1)) return 7;
  for (int i = 0; i < LIB_INPUTS; ++i) {
    char name[20];
    sprintf(name, "in%%d", i);
    in[i] = fetched(name, inputs[i] * sizeof *in[i]);
  }
  for (int i = 0; i < LIB_OUTPUTS; ++i) {
    out[i] = malloc(outputs[i] * sizeof *out[i]);
    again[i] = malloc(outputs[i] * sizeof *out[i]);
  }
  %(scalar)s *workspace = malloc(LIB_WORKSPACE * sizeof *workspace);
  lib(&tables, (const %(scalar)s *const *)in, out, workspace);
  for (int phase = 0; phase < LIB_PHASES; ++phase)
    for (int part = 2; part >= 0; --part)
      lib_part(&tables, (const %(scalar)s *const *)in, again, workspace, phase, part, 3);
  for (int i = 0; i < LIB_OUTPUTS; ++i) {
    char name[20];
    sprintf(name, "out%%d", i);
    FILE *file = fopen(name, "wb");
    if (memcmp(out[i], again[i], outputs[i] * sizeof *out[i])) return 6;
    fwrite(out[i], sizeof *out[i], outputs[i], file);
    fclose(file);
    free(out[i]), free(again[i]);
  }
  for (int i = 0; i < LIB_INPUTS; ++i) free(in[i]);
  free(bytes), free(workspace);
  return 0;
}
"""


def cloth_system():
    V, F = cloth(90)
    return geoopt.operators.cloth_system, (V * 1.05, 0.1 * V, 0.05, cloth_of(V, F))


def arap():
    V, F = bumpy(90)
    return arap_rhs, (V * [1, 1.2, 0.9], arap_mesh(V, F))


def conditions(x):
    """Every operation that has text of its own for vectors, and some that have not."""
    a, b, c = x.T
    chosen = np.where(((a < b) | (b > c)) & ~(a == c), np.copysign(a, b), np.maximum(np.minimum(a, 0.5), -b))
    counted = np.where((a <= b) ^ (b != c), np.abs(chosen), np.sqrt(c * c + 1))
    return np.exp(-counted) + np.floor(4 * a) + np.where(a >= 0, np.arctan2(b, c), 1.0)


def projected():
    E = np.stack([np.arange(20), (np.arange(20) + 1) % 20], axis=1)
    return geoopt.hessian(
        lambda x: ((np.linalg.norm(x[E[:, 0]] - x[E[:, 1]], axis=1) - 1) ** 2).sum(), project="psd"
    ), (X[:20],)


CASES = {
    "cotan": lambda: (cotan_laplacian, with_unreferenced()),
    "cloth": cloth_system,
    "ARAP": arap,  # in pieces
    "conditions": lambda: (conditions, (X,)),
    "projected": projected,
    "product": lambda: case("L²"),
    "numbers": lambda: (lambda x, s: {"sum": (x * s).sum(), "max": x.max(), "x": x + s}, (X, 2.0)),
}


class Library:
    """The exported library of a program, and what its harness gives."""

    def __init__(self, program, folder, compiler, *flags):
        self.program, self.folder = program, folder
        self.files = program.export(folder, name="lib")
        tables = folder / "lib.bin"
        of = lambda kind: "".join(f"LIB_{kind}{n}, " for n in range(int(self._told(f"LIB_{kind}S"))))  # noqa: E731
        words = {
            "scalar": "double" if program.dtype == np.float64 else "float",
            "inputs": of("INPUT"),
            "outputs": of("OUTPUT"),
        }
        words["bytes"] = tables.stat().st_size if tables.exists() else 0
        (folder / "main.c").write_text(HARNESS % words)
        sources = [folder / "lib.c", folder / "main.c"]
        subprocess.run([compiler, *FLAGS, *flags, "-o", folder / "main", *sources, "-lm"], check=True)

    def _told(self, name):
        return re.search(rf"{name} = (\d+)", (self.folder / "lib.h").read_text())[1]

    def __call__(self, *values):
        dtype = self.program.dtype
        for number, value in enumerate(values):
            np.asarray(value.data if sp.issparse(value) else value, dtype).tofile(self.folder / f"in{number}")
        run = subprocess.run(["./main"], cwd=self.folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return [np.fromfile(self.folder / f"out{n}", dtype) for n in range(int(self._told("LIB_OUTPUTS")))]


def outputs(program, values):
    """As the machine gives them."""
    inputs = [program._input(*pair) for pair in zip(program.signature.arguments, values, strict=True)]
    found = program._fresh(inputs)
    program.machine.run(inputs, found)
    return found


LONG = ("cloth",)  # compiled in double precision only
BOTH = [
    (name, dtype) for name in CASES for dtype in (np.float64, np.float32) if name not in LONG or dtype is np.float64
]


@needs_compiler
@pytest.mark.parametrize(("name", "dtype"), BOTH, ids=lambda part: getattr(part, "__name__", part))
def test_libraries_give_the_same_and_touch_their_own_memory_only(name, dtype, tmp_path):
    """Compiled for vectors of this processor, with sanitizers."""
    function, arguments = CASES[name]()
    program = geoopt.compile(function, *arguments, dtype=dtype)
    values = variables(arguments)
    compiler = COMPILERS[-1]
    found = Library(program, tmp_path, compiler, "-march=native", *SANITIZED)(*values)
    for got, want in zip(found, outputs(program, values), strict=True):
        scale = np.abs(want).max(initial=1)
        np.testing.assert_allclose(got / scale, want / scale, rtol=0, atol=400 * np.finfo(dtype).eps)


@pytest.mark.parametrize("compiler", COMPILERS or [pytest.param("", marks=needs_compiler)])
@pytest.mark.parametrize("lanes", [2, 8])
def test_vectors_of_any_width_give_the_same(compiler, lanes, tmp_path):
    function, arguments = arap()
    program = geoopt.compile(function, *arguments)
    values = variables(arguments)
    for got, want in zip(
        Library(program, tmp_path, compiler, f"-DLANES={lanes}", "-Wno-psabi")(*values),
        outputs(program, values),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize("lanes", [2, 8])
def test_large_tables_are_a_file_of_their_own(lanes, tmp_path, monkeypatch):
    """Also of programs that write whole rows, as vectors of eight do."""
    monkeypatch.setattr(c_library, "EMBEDDED", 100)
    V, F = bumpy(60)
    program = geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(lanes=lanes))
    library = Library(program, tmp_path, COMPILERS[0], *SANITIZED)
    assert {path.name for path in library.files} == {"lib.h", "lib.c", "lib.bin", "CMakeLists.txt"}
    for got, want in zip(library(V), outputs(program, [V]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_the_header_says_what_arrays_are(tmp_path):
    A = sp.csr_array(np.eye(3))
    program = geoopt.compile(lambda A, s: ({"key": A * s, "sum": A.sum()}, [A @ np.ones(3)]), A, 2.0)
    program.export(tmp_path / "new" / "folder")
    header = (tmp_path / "new" / "folder" / "_lambda_.h").read_text()
    for line in (
        "inputs[0]: A, the values of a matrix 3 x 3 by rows: tables.input0_indices, tables.input0_indptr",
        "inputs[1]: s, one number",
        "outputs[0]: result[0]['key'], the values of a csr_array 3 x 3: tables.output0_indices, tables.output0_indptr",
        "outputs[1]: result[1][0], 3",
        "outputs[2]: 1 numbers: [0] result[0]['sum']",
        "#define _LAMBDA__OUTPUT0 ((size_t)3)",
    ):
        assert line in header


def test_comments_end_where_they_should(tmp_path):
    program = geoopt.compile(lambda **k: {"/* \n": sum(k.values())}, **{"*/ int": X})
    program.export(tmp_path, name="lib")
    header = (tmp_path / "lib.h").read_text()
    assert "inputs[0]: * / int, 90 x 3" in header and header.count("*/") == header.count("/*")


def test_what_is_not_exported_is_said(tmp_path):
    V, F = cloth(30)
    with pytest.raises(
        ArgumentError, match="a program that solves linear systems, or has a loop that values end, cannot be exported"
    ):
        geoopt.compile(harmonic, V, F, [0, 5], np.zeros((2, 1))).export(tmp_path / "x")
    program = geoopt.compile(mass_matrix, V, F)
    for name in ("two words", "for", "2d", "café", "template", "exp", "all", 3):
        with pytest.raises(ArgumentError, match=r"choose a name that C and C\+\+ take"):
            program.export(tmp_path / "x", name=name)
    for name in ("numbers", "k0", "tasks", "EACH", "task"):
        with pytest.raises(ArgumentError, match="the library has this one for something else"):
            program.export(tmp_path / "x", name=name)
    assert not (tmp_path / "x").exists()
    program.export(tmp_path / "x", name="m")
    before = (tmp_path / "x" / "m.c").read_text()
    with pytest.raises(ArgumentError, match="exists; give another name"):
        program.export(tmp_path / "x", name="m")
    program.export(tmp_path / "x", name="m", force=True)
    assert (tmp_path / "x" / "m.c").read_text() == before
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match="file is no folder"):
        program.export(tmp_path / "file")


# -- examples -----------------------------------------------------------------------------------------------


@pytest.fixture
def laplacian(tmp_path):
    V, F = bumpy(60)
    geoopt.compile(cotan_laplacian, V, F).export(tmp_path, name="laplacian")
    V.tofile(tmp_path / "positions")
    return tmp_path, cotan_laplacian(V, F)


PLACES = ("/usr/include/eigen3", "/usr/local/include/eigen3", f"{sysconfig.get_path('purelib')}/include")
EIGEN = next((p for p in PLACES if Path(p, "Eigen").exists()), None)


@pytest.mark.skipif(not (EIGEN and shutil.which("g++")), reason="no C++ compiler, or no Eigen")
def test_the_example_in_cpp(laplacian):
    folder, (L, M) = laplacian
    source = shutil.copy(EXAMPLES / "laplacian.cpp", folder)
    told = re.findall(r"^//   ((?:gcc|g\+\+|\./).*)", Path(source).read_text(), re.MULTILINE)
    warnings = "-O0 -std=c++17 -Wall -Wextra -Werror"
    commands = [c.replace("-I/usr/include/eigen3", f"-isystem{EIGEN} {warnings}") for c in told]
    *build, run = [c.replace("-O3", "-O1").replace("positions.bin", "positions").split() for c in commands]
    assert len(build) == 2
    for command in build:
        subprocess.run(command, cwd=folder, check=True)
    printed = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert printed.startswith(f"{L.shape[0]} vertices, {L.nnz} values, |L 1| = ")
    assert float(printed.split("area = ")[1]) == pytest.approx(M.sum(), rel=1e-10)


def has_rust():
    """Whether the compiler runs: there may be what only finds it."""
    found = shutil.which("rustc")
    return bool(found) and subprocess.run([found, "--version"], capture_output=True).returncode == 0


@pytest.mark.skipif(not (has_rust() and shutil.which("gcc") and shutil.which("ar")), reason="no Rust")
def test_the_example_in_rust(laplacian):
    folder, (_, M) = laplacian
    subprocess.run(["gcc", "-O2", "-c", "laplacian.c"], cwd=folder, check=True)
    subprocess.run(["ar", "rcs", "liblaplacian.a", "laplacian.o"], cwd=folder, check=True)
    rust = [
        "rustc",
        "--edition",
        "2021",
        "-O",
        EXAMPLES / "laplacian.rs",
        "-L",
        ".",
        "-l",
        "static=laplacian",
        "-l",
        "m",
        "-o",
        "example",
    ]
    subprocess.run(rust, cwd=folder, check=True, capture_output=True)
    header = (folder / "laplacian.h").read_text()
    told = [
        re.search(rf"LAPLACIAN_{n} \(\(size_t\)(\d+)\)", header)[1]
        for n in ("INPUT0", "OUTPUT0", "OUTPUT1", "WORKSPACE")
    ]
    tables = str(len(re.findall(r"^  const .* \*\w+;$", header, re.M)))
    printed = subprocess.run(
        ["./example", "positions", *told, tables], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    assert float(printed.split("area = ")[1]) == pytest.approx(M.sum(), rel=1e-10)


@pytest.mark.skipif(not (shutil.which("cmake") and COMPILERS), reason="no CMake")
def test_the_folder_is_a_project_of_cmake(laplacian):
    folder, _ = laplacian
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert [*(folder / "build").glob("*laplacian.*")]
