"""What all tests share: small meshes, and the folder of real ones."""

from __future__ import annotations

import functools
import os
import platform
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import geoopt
from geoopt.codegen.simd import Outline, outline
from geoopt.errors import DeviceError
from geoopt.grid import Grid
from geoopt.kernels import Kernels
from geoopt.meshes import bumpy, cloth, icosphere, load, torus
from geoopt.pipeline import DEVICES, chosen, planned
from geoopt.place import place
from geoopt.plan import Plan
from geoopt.runtime import cpu

# --hypothesis-profile=thorough runs many more random programs than every run of the tests does
settings.register_profile("default", max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("thorough", settings.get_profile("default"), max_examples=3000)
settings.load_profile("default")


def is_thorough() -> bool:
    """Whether that profile was chosen: then tests run what takes longer, too."""
    return settings.default.max_examples > 100  # pyright: ignore[reportOptionalMemberAccess]


REAL_MESHES = Path(os.environ.get("GEOOPT_MESHES", Path(__file__).parents[2] / "shared" / "meshes"))


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Of this run, whose workers share what they compile."""
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    cache.mkdir(exist_ok=True)
    os.environ["GEOOPT_CACHE_DIR"] = str(cache)


@pytest.fixture(autouse=True)
def _numbers_of_its_own(request, monkeypatch):
    """Where a file has a generator of random numbers, each test draws from its own, so that none depends on others."""
    for name in (request.module.__name__, f"{__package__}.cases_moving", f"{__package__}.cases_operators"):
        if hasattr(module := sys.modules.get(name), "RNG"):
            monkeypatch.setattr(module, "RNG", np.random.default_rng(zlib.crc32(request.node.name.encode())))


def needs(find):
    """Skips tests, and says why, where a call ends in a DeviceError."""
    try:
        find()
    except DeviceError as error:
        return pytest.mark.skip(reason=str(error))
    return pytest.mark.skipif(False, reason="nothing is missing")


@pytest.fixture
def on_avx512(monkeypatch):
    """Programs are compiled as for processors with AVX-512, so that their kernels can be pinned; they may not run."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"kernels are pinned for x86, not {platform.machine()}")
    monkeypatch.setattr(cpu, "vector_math", frozenset)  # which keeps what it found
    monkeypatch.setattr(cpu, "host", lambda: ("skylake-avx512", "+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx2,+fma"))


needs_cuda_on_host = needs(chosen("cuda-on-host").describe)
needs_avx2 = pytest.mark.skipif("+avx2" not in cpu.host()[1].split(","), reason="permutes by instructions of AVX2")


def two_triangles():
    V = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0.2], [0, 1, 0]])
    return V, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def with_unreferenced():
    """Two components, one of them inconsistently oriented, boundaries, and vertices that no face uses."""
    V, F = cloth(40)
    F = F.copy()
    F[::3] = F[::3, ::-1]
    W, G = icosphere(42)
    gap = np.full((3, 3), 7.5)
    noise = np.random.default_rng(0).normal(scale=0.02, size=V.shape)
    return np.concatenate([V + noise, gap, W]), np.concatenate([F, G + len(V) + 3])


def without_faces():
    return np.random.default_rng(1).normal(size=(5, 3)), np.zeros((0, 3), np.int32)


SMALL_MESHES = {
    "two triangles": two_triangles,
    "icosphere": lambda: icosphere(92),
    "torus": lambda: torus(100),
    "bumpy": lambda: bumpy(152),
    "cloth": lambda: cloth(60),
    "unreferenced": with_unreferenced,
}


@pytest.fixture(params=SMALL_MESHES, ids=str)
def mesh(request):
    return SMALL_MESHES[request.param]()


def real_meshes() -> list:
    """The real triangle meshes as test parameters; one skipped parameter where there are none."""
    found = sorted(p for p in REAL_MESHES.glob("*") if p.suffix in (".obj", ".off"))
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no meshes in {REAL_MESHES}"))]
    return [pytest.param(p, id=p.name) for p in found]


@functools.cache
def real_mesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """A mesh that many tests read; none may change it."""
    mesh = load(path)
    for array in mesh:
        array.flags.writeable = False
    return mesh


def differences(function, x, step=1e-5):
    """Central differences by each entry: the last axis of the result."""
    columns = []
    for i in range(x.size):
        d = np.zeros(x.size)
        d[i] = step
        d = d.reshape(x.shape)
        columns.append((np.asarray(function(x + d)) - np.asarray(function(x - d))) / (2 * step))
    return np.stack(columns, axis=-1)


def outlines_of(plan: Plan, dtype=np.float64) -> list[Outline]:
    """All that the texts of a plan's kernels depend on, for CPUs."""
    return [outline(plan, kernel, np.dtype(dtype)) for kernel in plan.kernels]


def grid_of(function, *arguments, **options) -> Grid:
    """What GPUs would run."""
    return gpu_stages(function, *arguments, **options)["spread"]


def gpu_stages(function, *arguments, **options) -> dict:
    """What the stages from `place` on make of a function for a GPU, which need not be there."""
    found = {}
    options = geoopt.Options(**options | {"assembly": "gather"})  # GPUs do not add to what others wrote
    planned(function, *arguments, device="cuda", options=options, watch=found.__setitem__)
    return {stage: found[stage] for stage in ("place", *(s.__name__ for s in DEVICES["cuda"].back))}


def gpu_stages_of(kernels: Kernels, options: geoopt.Options) -> dict | None:
    """The same of kernels that were made for a CPU; None where those for a GPU are others."""
    adds = any(w.adds for kernel in kernels.kernels for writes in kernel.writes for w in writes)
    if adds or any(kernel.has_runs for kernel in kernels.kernels):
        return None
    record, found = kernels, {}
    for stage in (place, *DEVICES["cuda"].back):
        record = found[stage.__name__] = stage(record, DEVICES["cuda"].context(options, np.dtype(float)))
        record.check()
    return found
