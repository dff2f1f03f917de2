"""The examples of the documentation run, and say what they are for."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np

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
