"""What the README shows runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_python_blocks_run(capsys, tmp_path):
    file = tmp_path / "readme.py"
    file.write_text("\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL)))
    names = runpy.run_path(str(file))
    shown = capsys.readouterr().out
    assert f"{len(names['laplacian'].plan.kernels)} kernels" in shown


def test_it_is_short():
    assert len(README.splitlines()) <= 120


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)\s#]+)", README) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_every_make_target_is_listed():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert targets == set(re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE))
    for target in re.findall(r"make ([\w-]+)", README):
        assert target in targets


def test_nothing_names_a_path_of_some_machine():
    for pattern in ("*.md", "docs/**/*.*", "geoopt/**/*.py", "tests/golden/**/*.*"):
        _names_no_path(ROOT.glob(pattern))


def _names_no_path(paths):
    for path in paths:
        text = path.read_bytes()
        assert b"/home/" not in text and b"/root/" not in text, path
