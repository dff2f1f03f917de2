"""`Program.save`, `geoopt.load`, pickles and copies: the same bits, and nothing but an error of what was damaged."""

from __future__ import annotations

import collections
import copy
import dataclasses
import io
import json
import multiprocessing
import pickle
import subprocess
import sys
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.codegen.simd.prefetch import LINE
from geoopt.errors import ArgumentError
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.plan.loops import ByCursor, ByRun
from geoopt.runtime import cpu
from geoopt.runtime.host import PADDING
from geoopt.saving import archive as archives
from geoopt.saving.archive import DIGITS, Archive, from_bytes, mapped, write

from .cases_operators import CASES, SOLVING, case, variables
from .conftest import needs_cuda_on_host
from .test_sequences import two_fields
from .test_stages import arrays


def compiled(name: str, **how):
    function, arguments = case(name)
    return geoopt.compile(function, *arguments, **how), variables(arguments)


def saved(program, tmp_path, **how):
    program.save(tmp_path / "program.geoopt")
    return geoopt.load(tmp_path / "program.geoopt", **how)


def assert_same(got, want):
    for g, w in zip(arrays(got), arrays(want), strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.fixture(scope="module")
def program():
    return geoopt.compile(cotan_laplacian, *bumpy(60))


@pytest.fixture(scope="module")
def content(program):
    """What is in its file."""
    return pickle.loads(pickle.dumps(program)) and program.__reduce__()[1][0]


# every kind of loop, store and part that files hold, and systems
NAMES = ("cotan_laplacian", "dual_laplacian", "arap_rhs", "cloth_system", "svd3", "L²", "L³", "L V", "vertex_normals")
SOLVED = ("harmonic", "lscm", "cloth_step")
assert {*NAMES} <= {*CASES} and {*SOLVED} <= {*SOLVING}


@pytest.mark.parametrize("name", NAMES + SOLVED)
def test_what_is_loaded_gives_the_same_bits(name, tmp_path):
    program, values = compiled(name)
    again = saved(program, tmp_path)
    want = program(*values)
    assert_same(again(*values), want)
    assert type(again(*values)) is type(want)
    assert again.report()["kernels"] == program.report()["kernels"]


def test_what_a_stage_took_apart_is_loaded_on_any_processor(tmp_path):
    program, values = compiled("cotan_laplacian", options=geoopt.Options(lanes=8))  # rows of eight have their kernel
    assert len(program.plan.kernels) > 3
    assert_same(saved(program, tmp_path)(*values), program(*values))


@pytest.mark.parametrize("name", ["cotan_laplacian", "cloth_system", "L²", "harmonic"])
@pytest.mark.parametrize(
    "how",
    [
        {"dtype": np.float32},
        *(
            pytest.param({"device": "cuda-on-host", "dtype": t}, marks=needs_cuda_on_host)
            for t in (np.float64, np.float32)
        ),
    ],
    ids=["float32", "cuda-on-host", "cuda-on-host, float32"],
)
def test_programs_of_other_types_and_devices(name, how, tmp_path):
    program, values = compiled(name, **how)
    assert_same(saved(program, tmp_path)(*values), program(*values))


@pytest.mark.parametrize("lanes", [2, 16])
def test_what_was_saved_on_a_processor_with_other_vectors(lanes, tmp_path, monkeypatch):
    """`relist` takes runs and cursors apart, which are for vectors of one width."""
    L = sp.random_array((400, 400), density=0.02, rng=np.random.default_rng(0), format="csr")
    program = geoopt.compile(lambda A, B: (A @ B) @ B, L, L)
    loops = [loop for kernel in program.plan.kernels for loop in kernel.loops]
    assert any(isinstance(loop, ByRun | ByCursor) for loop in loops)
    of_options = cpu.vectors
    other = lambda options, dtype: of_options(dataclasses.replace(options, lanes=lanes), dtype)  # noqa: E731
    monkeypatch.setattr(cpu, "vectors", other)
    again = saved(program, tmp_path)
    assert again.report()["lanes"] == lanes
    np.testing.assert_allclose(again(L, L).todense(), program(L, L).todense(), rtol=1e-13)


class Pair(NamedTuple):
    first: np.ndarray
    second: float


@dataclasses.dataclass
class Shape:
    points: np.ndarray
    matrix: sp.csr_array
    name: str = "shape"


KNOWN = sp.coo_array(([1.0, 2.0], ([0, 2], [1, 1])), shape=(3, 3))
RESULTS = {
    "numbers": lambda x: (x.sum(), 2.0 * x[0, 0], [x.min()]),
    "comparisons": lambda x: {"signs": x > 0, "any": (x > 0).any(), 3: x[:, 0]},
    "known": lambda x: (x, np.arange(6).reshape(2, 3), np.float32(1.5), None, "text", KNOWN, [True, (1, 0.1)], 1e300),
    "named tuple": lambda x: Pair(x * x, x.max()),
    "dataclass": lambda x: Shape(x + 1, sp.diags_array([x[:, 0], x[:-1, 1]], offsets=[0, 1], format="csr")),
    "matrices": lambda x: tuple(
        getattr(sp, kind)(sp.csr_array((x.ravel(), ([0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0])), shape=(3, 3)))
        for kind in ("csc_array", "coo_array", "dia_array", "csr_matrix", "csc_matrix")
    ),
    "np.matrix": lambda x: np.asmatrix(x) * np.asmatrix(x).T,
}


def assert_alike(got, want):
    """Of one structure, of the same types, with the same bits."""
    assert type(got) is type(want)
    if sp.issparse(want):
        np.testing.assert_array_equal(got.todense(), want.todense())
    elif isinstance(want, np.ndarray | np.generic):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
    elif isinstance(want, dict | Shape):
        got, want = (v if isinstance(v, dict) else vars(v) for v in (got, want))
        assert list(got) == list(want)
        assert_alike([*got.values()], [*want.values()])
    elif isinstance(want, tuple | list):
        for g, w in zip(got, want, strict=True):
            assert_alike(g, w)
    else:
        assert got == want


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_any_structure(name, tmp_path):
    x = np.random.default_rng(0).normal(size=(3, 2))
    program = geoopt.compile(RESULTS[name], x)
    assert_alike(saved(program, tmp_path, types=[Pair, Shape])(x), program(x))
    assert_alike(pickle.loads(pickle.dumps(program))(x), program(x))


def test_arguments_are_checked_as_before(tmp_path):
    A = sp.csr_array(np.eye(3) + np.diag([1.0, 2.0], 1))
    again = saved(geoopt.compile(lambda A, x: A @ x, A, np.ones(3)), tmp_path)
    assert_same(again(A=A, x=np.arange(3.0)), A @ np.arange(3.0))
    with pytest.raises(ArgumentError, match="its pattern differs"):
        again(sp.csr_array(np.eye(3)), np.ones(3))
    with pytest.raises(ArgumentError, match="has shape"):
        again(A, np.ones(4))
    previous = again(A, np.ones(3))
    assert again(A, np.arange(3.0), out=previous) is previous


def test_threads_are_those_that_are_asked_for(program, tmp_path):
    program.save(tmp_path / "p")
    assert geoopt.load(tmp_path / "p").report()["threads"] == 1
    assert geoopt.load(tmp_path / "p", threads=2).report()["threads"] == 2


def test_nothing_is_overwritten_unasked_and_files_are_equal(program, tmp_path):
    place = tmp_path / "p.geoopt"
    program.save(place)
    first = place.read_bytes()
    with pytest.raises(ArgumentError, match="exists"):
        program.save(place)
    loaded = geoopt.load(place)
    loaded.save(place, force=True)  # over the file that it is mapped from
    assert place.read_bytes() == first
    assert_same(loaded(bumpy(60)[0]), program(bumpy(60)[0]))
    with pytest.raises(ArgumentError, match="there is no folder"):
        program.save(tmp_path / "nowhere" / "p")


def test_a_file_is_an_archive_that_numpy_reads_whose_tables_are_mapped(program, tmp_path):
    program.save(tmp_path / "p.zip")
    found = np.load(tmp_path / "p.zip")
    assert {f"{n}.npy" for n in found.files if n.isdigit()} < {*zipfile.ZipFile(tmp_path / "p.zip").namelist()}
    loaded = geoopt.load(tmp_path / "p.zip")
    for table in loaded.plan.tables:
        assert not table.flags.writeable and table.ctypes.data % 64 == 0
        while isinstance(table, np.ndarray):
            table = table.base
        assert type(table.obj).__name__ == "mmap"


def test_what_is_not_saved_is_said(tmp_path):
    x = np.ones(3)
    with pytest.raises(ArgumentError, match="bytes that does not depend on the variables"):
        geoopt.compile(lambda x: (x, b"text"), x).save(tmp_path / "p")
    assert not list(tmp_path.iterdir())
    geoopt.compile(RESULTS["dataclass"], np.ones((3, 2))).save(tmp_path / "p")
    with pytest.raises(
        ArgumentError, match=r"test_saving.Shape; give the class, as in geoopt.load\(path, types=\[Shape"
    ):
        geoopt.load(tmp_path / "p")


def test_classes_of_results_are_those_that_were_saved(tmp_path):
    place, x = tmp_path / "p", np.ones((3, 2))
    geoopt.compile(RESULTS["named tuple"], x).save(place)
    other = collections.namedtuple("Pair", ["first", "other"], module=Pair.__module__)
    with pytest.raises(ArgumentError, match="Pair has other fields than when the program was saved: first, second"):
        geoopt.load(place, types=[other])
    with pytest.raises(ArgumentError, match="two classes of the result are named"):
        geoopt.load(place, types=[other, Pair])
    with pytest.raises(ArgumentError, match="types must be classes, not a str"):
        geoopt.load(place, types=["Pair"])
    assert type(geoopt.load(place, types=Pair)(x)) is Pair
    with pytest.raises(ArgumentError, match="a coo_array that does not depend"):
        geoopt.compile(lambda x: (x, sp.coo_array([1.0, 0.0])), x).save(tmp_path / "q")


def test_what_is_no_program_is_said(tmp_path, content):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no program" * 100)
    for name, why in {"empty": "is empty", "text": "no program that geoopt saved", "missing": "No such file"}.items():
        with pytest.raises(ArgumentError, match=f"{name}.*{why}"):
            geoopt.load(tmp_path / name)
    archive = from_bytes(content)
    with pytest.raises(ArgumentError, match=r"format 99, of geoopt '7.0'; this geoopt reads format 2: save it again"):
        loads(sealed(Archive(archive.manifest | {"format": 99, "geoopt": "7.0"}, archive.arrays)))


# -- other processes ----------------------------------------------------------------------------------------


IN_A_POOL = """
import multiprocessing, pickle, sys
if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file, multiprocessing.get_context(sys.argv[2]).Pool(1) as pool:
        program, V = pickle.load(file)
        pickle.dump(pool.apply(program, (V,)), sys.stdout.buffer)
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_programs_go_to_other_processes(program, method, tmp_path):
    """From a process without threads of other libraries, which a fork may not survive."""
    V = bumpy(60)[0]
    (tmp_path / "given").write_bytes(pickle.dumps((program, V)))
    run = subprocess.run([sys.executable, "-c", IN_A_POOL, tmp_path / "given", method], capture_output=True, check=True)
    for got, want in zip(pickle.loads(run.stdout), program(V), strict=True):
        assert_same(got.data, want.data)


def test_programs_go_to_workers_of_joblib(program):
    joblib = pytest.importorskip("joblib")
    V = bumpy(60)[0]
    for found in joblib.Parallel(n_jobs=2)(joblib.delayed(program)(s * V) for s in (1.0, 2.0, 3.0)):
        assert found[0].nnz == program(V)[0].nnz


def test_programs_go_through_what_dask_and_ray_pickle_by(program):
    cloudpickle = pytest.importorskip("cloudpickle")
    V = bumpy(60)[0]
    closure = cloudpickle.loads(cloudpickle.dumps(lambda x: program(x)[1]))
    assert_same(closure(V), program(V)[1])


IN_A_PROCESS = r"""
import re, sys, geoopt
program = geoopt.load(sys.argv[1])
print("loaded", flush=True)
sys.stdin.readline()
maps = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read())
(mine,) = (m for m in maps if sys.argv[1] in m.splitlines()[0])
print(*(re.search(rf"^{name}:\s+(\d+)", mine, re.M)[1] for name in ("Rss", "Pss")), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what processes share")
def test_processes_share_the_tables_of_a_file(tmp_path):
    geoopt.compile(cotan_laplacian, *bumpy(3000)).save(tmp_path / "p")
    command = [sys.executable, "-c", IN_A_PROCESS, str(tmp_path / "p")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    asked = lambda p: (print(file=p.stdin, flush=True), p.stdout.readline())[1]  # noqa: E731
    assert [p.stdout.readline() for p in processes] == ["loaded\n"] * 2
    for resident, share in [map(int, asked(p).split()) for p in processes]:
        assert resident > 100
        assert share <= 0.6 * resident
    for process in processes:
        process.communicate("\n")


def test_copies(program):
    V = bumpy(60)[0]
    assert_same(copy.copy(program)(V), program(V))
    assert_same(copy.deepcopy({"program": program})["program"](V), program(V))


def test_loading_imports_no_compiler_and_no_application(program, tmp_path):
    program.save(tmp_path / "p")
    code = f"""
import sys, geoopt
geoopt.load({str(tmp_path / "p")!r})
print(*(m for m in sys.modules if m.split(".")[0] in ("typer", "rich", "trimesh", "polyscope", "igl", "cupy")
        or m in ("geoopt.trace", "geoopt.pipeline", "geoopt.symbolic", "geoopt.decompose", "geoopt.codegen.cuda")))
"""
    assert not subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


# -- damage -------------------------------------------------------------------------------------------------


def loads(content: bytes):
    return geoopt.loading.unpickled(content, [])


def sealed(archive: Archive) -> bytes:
    """The file of an archive, with the hash that makes it whole."""
    file = io.BytesIO()
    write(file, archive)
    return file.getvalue()


def test_every_damaged_byte_is_found(content):
    rng = np.random.default_rng(0)
    damaged = []
    for _ in range(700):
        bits = bytearray(content)
        bits[rng.integers(len(bits))] ^= 1 << rng.integers(8)
        damaged += [bytes(bits), content[: rng.integers(len(content))]]
    for _ in range(600):
        begin, end, size = *rng.integers(len(content), size=2), rng.integers(1, 200)
        bits = bytearray(content)
        bits[begin : begin + size], bits[end : end + size] = bits[end : end + size], bits[begin : begin + size]
        damaged.append(bytes(bits) if bits != content else content + b"0")
    assert len(damaged) == 2000
    for bits in damaged:
        with pytest.raises(ArgumentError, match="damaged"):
            loads(bits)


def forged(archive: Archive, rng: np.random.Generator) -> Archive:
    """Another manifest, or other arrays, with numbers that do not belong there."""
    manifest, found = json.loads(json.dumps(archive.manifest)), dict(archive.arrays)
    odd = [-1, 0, 1, 3, 10**6, 2**31, 2**63, -(2**40), 1.5, None, True, "x", [], {}]
    if rng.random() < 0.5:
        name = rng.choice(list(found))
        array = found[name].copy()
        kind = rng.integers(4)
        if kind == 0 and array.size:
            array.ravel()[rng.integers(array.size)] = (
                rng.choice([0, 1, 127])
                if array.dtype.itemsize == 1
                else rng.choice(
                    np.array([0, 1, 5, 30000, np.iinfo(array.dtype).max if array.dtype.kind != "f" else 1])
                ).astype(array.dtype)
            )
        elif kind == 1:
            array = array[: rng.integers(array.shape[0] + 1)]
        elif kind == 2:
            array = found[rng.choice(list(found))]
        else:
            array = array.astype(rng.choice(["u1", "i2", "u4", "i8", "f4", "f8"]))
        found[name] = array
    else:
        node = manifest
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = keys[rng.integers(len(keys))]
            if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.97:
                node = node[key]
                continue
            value = node[key]
            node[key] = (
                value + int(rng.integers(-3, 4))
                if type(value) is int and rng.random() < 0.6
                else odd[rng.integers(len(odd))]
            )
            break
    return Archive(manifest, found)


GUARDED = """
import sys, pickle, numpy as np, geoopt
from geoopt.errors import ArgumentError
files, values = pickle.load(open(sys.argv[1], "rb"))
loaded = 0
for content in files:
    try:
        program = geoopt.loading.unpickled(content, [])
    except (ArgumentError, geoopt.DeviceError, geoopt.SolverError):
        continue
    try:
        program(*values)
        loaded += 1
    except (ArgumentError, geoopt.SolverError, ValueError, TypeError, IndexError, MemoryError, OSError):
        pass
print("survived", loaded)
"""


def of_a_grid():
    f = np.random.default_rng(0).random((40, 50))
    return geoopt.compile(two_fields, f), (f,)


@pytest.mark.parametrize("name", ["cotan_laplacian", "L³", "harmonic", "two_fields"])
def test_forged_files_are_errors_or_programs_that_stay_in_their_memory(name, tmp_path):
    """In a process of its own, whose end says whether memory was touched that is not there."""
    program, values = of_a_grid() if name == "two_fields" else compiled(name)
    content, rng = program.__reduce__()[1][0], np.random.default_rng(1)
    archive = from_bytes(content)
    files = [sealed(forged(archive, rng)) for _ in range(20 if name == "harmonic" else 50)]
    (tmp_path / "files").write_bytes(pickle.dumps((files, values)))
    run = subprocess.run([sys.executable, "-c", GUARDED, tmp_path / "files"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.startswith("survived")


def test_large_members_begin_with_a_line_too(program, tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    program.save(tmp_path / "p")
    assert_same(geoopt.load(tmp_path / "p")(bumpy(60)[0]), program(bumpy(60)[0]))
    assert (
        archives.LINE == LINE
        and archives.PADDING >= PADDING
        and len(mapped(tmp_path / "p").arrays) > 5
        and DIGITS == 32
    )


# -- machine code -------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda-on-host", marks=needs_cuda_on_host)])
def test_machine_code_is_taken_where_it_is_asked_for(device, tmp_path, monkeypatch):
    V, F = bumpy(60)
    program, path = geoopt.compile(cotan_laplacian, V, F, device=device), tmp_path / "program"
    program.save(path, code=True)
    with pytest.raises(ArgumentError, match="it has machine code; if it is from a trusted source"):
        geoopt.load(path)
    monkeypatch.setenv("GEOOPT_CACHE_DIR", str(tmp_path / "empty"))
    loaded = geoopt.load(path, code=True)
    assert loaded.machine.was_cached and loaded.machine.code == program.machine.code
    assert_same(loaded(V), program(V))
    loaded.save(path, force=True)
    assert not mapped(path).manifest["code"]


def test_machine_code_of_another_processor_is_left(program, tmp_path, monkeypatch):
    others = {name[::-1]: code[:100] for name, code in program.machine.code.items()}
    monkeypatch.setattr(program.machine, "code", others)
    program.save(tmp_path / "program", code=True)
    monkeypatch.setenv("GEOOPT_CACHE_DIR", str(tmp_path / "empty"))
    loaded = geoopt.load(tmp_path / "program", code=True)
    assert not loaded.machine.was_cached
    assert_same(loaded(bumpy(60)[0]), program(bumpy(60)[0]))


@pytest.mark.parametrize("name", ["../0", "0/1", "x"])
def test_machine_code_has_no_other_names(program, name, tmp_path, monkeypatch):
    monkeypatch.setattr(program.machine, "code", {name: b"code"})
    program.save(tmp_path / "program", code=True)
    with pytest.raises(ArgumentError, match="is damaged: its machine code is none"):
        geoopt.load(tmp_path / "program", code=True)
