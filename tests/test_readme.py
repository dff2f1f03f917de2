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
    assert f"{len(names['laplacian'].plan.kernels)} kernels" in shown and "np.where" in shown


def test_every_stage_is_described():
    from geoopt.pipeline import STAGES

    assert re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE) == list(STAGES)


def test_every_make_target_is_listed():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert targets == set(re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE))
    for target in re.findall(r"make ([\w-]+)", README):
        assert target in targets


def test_nothing_names_a_path_of_some_machine():
    for path in [*ROOT.glob("*.md"), *ROOT.glob("geoopt/**/*.py"), *ROOT.glob("tests/golden/**/*.*")]:
        assert "/home/" not in path.read_text() and "/root/" not in path.read_text(), path
