"""The examples of the documentation run, and say what they are for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def test_a_changing_mesh():
    command = [sys.executable, EXAMPLES / "changing_mesh.py", "--vertices", "300", "--steps", "3"]
    *steps, last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    flips = [int(re.fullmatch(r"step \d: (\d+) flips, prepare .*NumPy [\d.]+ ms.*", step)[1]) for step in steps]
    assert len(flips) == 3 and sum(flips) > 0
    assert re.fullmatch(r"preparing pays after (\d+|no number of) calls of one mesh, beside the plain function", last)
