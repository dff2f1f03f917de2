"""What the documentation shows runs, and its pages hang together. Nothing here needs Sphinx."""

from __future__ import annotations

import doctest
import inspect
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if "generated" not in p.parts]
NAMES = [p.relative_to(DOCS).as_posix() for p in PAGES]
LISTED = re.compile(r"^   ([\w.]+)$", re.MULTILINE)  # in the autosummaries of a page, a public name
MARK = "--- end of a block ---"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
IN_REFERENCE = ("reference/", "coverage.md", "glossary.md")


def text_of(name: str) -> str:
    return (DOCS / name).read_text()


def targets(text: str) -> list[str]:
    """What a page links to, or shows, within the repository."""
    text = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^```\{(?:image|figure)\} (\S+)", text, re.MULTILINE)
    return [link for link in links if "://" not in link and not link.startswith("#")]


def children(text: str) -> list[str]:
    """The pages in the toctrees of a page, without what autosummary and sphinx-gallery make."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for tree in trees for line in tree.splitlines() if line and not line.startswith((":", "gallery/"))]


def test_a_page_that_prints_something_else_is_noticed():
    assert doctest.OutputChecker().check_output("a ... c\n", "a b  c\n", HOW)
    assert not doctest.OutputChecker().check_output("a ... c\n", "a b d\n", HOW)


@pytest.mark.parametrize("name", [name for name in NAMES if "```python" in text_of(name)])
def test_blocks_run_and_print_what_is_shown(name, tmp_path, capsys, monkeypatch):
    """The blocks of a page are one program; a text block right after one is what it prints, `...` for anything."""
    blocks = BLOCK.findall(text_of(name))
    assert len(blocks) == text_of(name).count("```python\n")
    file = tmp_path / "page.py"
    file.write_text("\n".join(f"{code}\nprint({MARK!r})" for code, _ in blocks))
    for page, extra in {"jax": "jax", "torch": "torch", "many_meshes": "joblib"}.items():
        if name == f"howto/{page}.md":
            pytest.importorskip(extra, reason=f"{extra} is not installed: make torch, or pip install {extra}")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file))
    printed = capsys.readouterr().out.split(MARK + "\n")
    for (code, wanted), got in zip(blocks, printed, strict=False):
        if wanted and not doctest.OutputChecker().check_output(wanted, got, HOW):
            pytest.fail(f"{name}: this block\n\n{code}\nprints\n\n{got}\nand the page shows\n\n{wanted}")


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    here = (DOCS / name).parent
    for link in targets(text_of(name)):
        path, _, heading = link.partition("#")
        found = here / path
        assert found.exists() or found.with_suffix(".md").exists(), f"{name} links to {link}"
        if heading and found.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert heading in slugs, f"{name} links to {link}"


def test_every_page_is_in_one_toctree():
    listed = [
        ((DOCS / name).parent / child).resolve().relative_to(DOCS.resolve()).as_posix() + ".md"
        for name in NAMES
        for child in children(text_of(name))
    ]
    assert sorted([*listed, "index.md"]) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(IN_REFERENCE)])
def test_every_page_has_a_picture_or_an_example(name):
    text = text_of(name)
    assert "```python" in text or "```{image}" in text or "```{literalinclude}" in text


def test_pictures_are_small_and_shown():
    shown = " ".join(text_of(name) for name in NAMES) + (ROOT / "README.md").read_text()
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size < 150_000, picture
        assert picture.name in shown, f"{picture} is on no page"


def test_all_errors_have_an_example():
    from geoopt import errors

    page = text_of("reference/errors.md")
    classes = [n for n, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]
    headings = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert sorted(headings) == sorted(classes)
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        assert "```python" in section, section.splitlines()[0]


def test_all_public_names_are_in_the_reference():
    import geoopt
    from geoopt import meshes, operators

    listed = {name: set(LISTED.findall(text_of(f"reference/{name}.md"))) for name in ("geoopt", "operators", "meshes")}
    from_elsewhere = {name for name in geoopt.__all__ if name.endswith(("Error", "Warning"))} | {"sparse"}
    assert set(geoopt.__all__) - from_elsewhere <= listed["geoopt"]
    assert {f"operators.{name}" for name in operators.__all__} <= listed["operators"]
    public = {n for n, f in inspect.getmembers(meshes, inspect.isfunction)}
    assert {f"meshes.{name}" for name in public} <= listed["meshes"]


def test_every_stage_is_described():
    from geoopt.pipeline import STAGES

    assert re.findall(r"^\| `(\w+)` \|", text_of("how_it_works.md"), re.MULTILINE) == list(STAGES)


def test_sphinx_reads_docstrings_as_lists():
    sys.path.insert(0, str(DOCS))
    try:
        from docstrings import listed, process
    finally:
        sys.path.pop(0)
    given = ["A sum.", "", "V : (n, 3) positions [m];  F : (m, 3) faces", "a, b : |x|_ and x*y", "    more", "Ends."]
    assert listed(given) == [
        "A sum.", "", "- **V** : (n, 3) positions [m]", "- **F** : (m, 3) faces", r"- **a, b** : \|x\|\_ and x\*y",
        "  more", "", "Ends.",
    ]  # fmt: skip
    examples = ["Examples", "--------", ">>> x_ : y"]
    process(None, "function", "", None, None, lines := [*given, "", *examples])
    assert lines == [*listed([*given, ""]), *examples]
