"""The examples of the documentation run, and say what they are for."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg as sla

import geoopt

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def test_a_changing_mesh():
    command = [sys.executable, EXAMPLES / "changing_mesh.py", "--vertices", "300", "--steps", "3"]
    *steps, last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    flips = [int(re.fullmatch(r"step \d: (\d+) flips, prepare .*NumPy [\d.]+ ms.*", step)[1]) for step in steps]
    assert len(flips) == 3 and sum(flips) > 0
    assert re.fullmatch(r"preparing pays after (\d+|no number of) calls of one mesh, beside the plain function", last)


def test_a_cloth_tells_what_it_is_made_of():
    command = [sys.executable, EXAMPLES / "inverse_cloth.py", "--vertices", "60", "--steps", "12"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    losses = [float(re.match(r"loss (\S+) cm²", line)[1]) for line in lines if line.startswith("loss")]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1e-6 * losses[0]
    made_by, start, found = np.array([line.split()[-3:] for line in lines[-6:]], float).T
    np.testing.assert_allclose(found, made_by, rtol=0.01)
    assert (abs(start - made_by) > 0.3 * abs(made_by)).all()


def test_a_beam_becomes_stiffer():
    names = runpy.run_path(str(EXAMPLES / "cantilever.py"))
    beam = names["Beam"](12)
    value, slope = beam.compliance(beam.start)
    along = np.linspace(-1, 2, len(slope))
    ends = [beam.compliance(beam.start + h * along)[0] for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(slope @ along, (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
    best = names["stiffest"](beam, 30)
    assert beam.compliance(best)[0] < 0.7 * value
    np.testing.assert_allclose(beam.area(best)[0], beam.area(beam.start)[0], rtol=1e-6)
    np.testing.assert_allclose(best[:10] + best[10:], 1, atol=0.1)  # the load is small: above as below


def of_torch(name: str) -> tuple:
    """torch, geoopt.torch's function and the names of an example for both; skips the test where torch is absent."""
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch installs it, and runs these tests")
    import geoopt.torch

    return torch, geoopt.torch.function, runpy.run_path(str(EXAMPLES / name))


def printed_by(names: dict, arguments: str, monkeypatch, capsys) -> str:
    monkeypatch.setattr(sys, "argv", ["example.py", *arguments.split()])
    names["main"]()
    return capsys.readouterr().out


def test_large_steps_in_torch_leave_triangles_unfolded(monkeypatch, capsys):
    _, _, names = of_torch("large_steps.py")
    printed = printed_by(names, "--vertices 400 --steps 25", monkeypatch, capsys)
    smooth, plain = (np.array(re.findall(r"loss (\S+)", part), float) for part in printed.split("steps on x\n", 1))
    for losses in (smooth, plain):
        assert len(losses) == 6 and losses[-1] < 0.2 * losses[0]
    of_target, of_smooth, of_plain = (float(v) for v in re.findall(r"folded at ([\d.]+)%", printed))
    assert of_target == of_smooth == 0 and of_plain > 5


def test_large_steps_in_torch_go_back_through_the_system():
    torch, function, names = of_torch("large_steps.py")
    V, F = names["icosphere"](100)
    A = names["preconditioner"](F, len(V), 19.0)
    u = torch.tensor(A @ V, requires_grad=True)
    x = function(lambda u: geoopt.solve(A, u), V)(u)
    np.testing.assert_allclose(x.detach(), V, atol=1e-12)
    known = names["samples"](V, F, 50, 0)
    names["Chamfer"](known)(x).backward()
    here = torch.tensor(V, requires_grad=True)
    names["Chamfer"](known)(here).backward()
    np.testing.assert_allclose(u.grad, sla.spsolve(A.tocsc(), here.grad.numpy()), atol=1e-14)


def test_uniform_adam_in_torch_steps_along_the_slope():
    torch, _, names = of_torch("large_steps.py")
    u = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    slope = torch.tensor([1.0, -2.0, 0.0, 4.0], dtype=torch.float64)
    optimizer = names["UniformAdam"]([u], lr=0.1)
    for _ in range(3):  # of the same slope
        optimizer.zero_grad()
        (slope * u).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(u.detach(), -3 * 0.1 * slope / 4)


def test_a_network_in_torch_learns_times_of_diffusion(monkeypatch, capsys):
    _, _, names = of_torch("learned_features.py")
    printed = printed_by(names, "--vertices 1000 --shapes 2 --epochs 60", monkeypatch, capsys)
    before, after = np.array(re.findall(r"loss (\S+), then (\S+);", printed), float).T
    assert (after < 0.8 * before).all() and after[0] < min(after[1:])
    learned, fixed, none = (int(v) for v in re.findall(r"shape: (\d+)%", printed))
    assert learned > fixed + 4 and learned > none + 4


def test_slopes_by_times_of_diffusion_in_torch():
    torch, function, names = of_torch("learned_features.py")
    sphere, F = names["icosphere"](160)
    V = torch.tensor(names["shape"](sphere, 0)[0])
    features = function(names["curvatures"], sphere, names["START"], F)
    times = torch.tensor(100 * names["START"], requires_grad=True)
    torch.autograd.gradcheck(lambda times: features(V, times), times, eps=1e-5, rtol=1e-6)
