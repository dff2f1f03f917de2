"""What notebooks show: well-formed HTML with the numbers of reports, and nothing of a user's that is taken for HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np

import geoopt
from geoopt.meshes import icosphere
from geoopt.notebooks import MOST_ROWS, bar, table
from geoopt.operators import cotan_laplacian

V, F = icosphere(42)
VOID = ("br", "hr", "img")


class Text(HTMLParser):
    """The text of cells and paragraphs; every tag must be closed in its order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.found = [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
            self.found.append((tag, ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        tag, before = self.found.pop() if self.found[-1][0] == self.open[-1] else (self.open[-1], "")
        self.found.append((tag, before + data))

    def cells(self):
        return [data for tag, data in self.found if tag == "td"]


def smoothed(x):
    L, M = cotan_laplacian(x, F)
    return geoopt.solve(M - 0.01 * L, M @ x)


def test_a_program_shows_its_kernels_and_where_its_bytes_are():
    program = geoopt.compile(smoothed, V)
    report, shown = program.report(), Text(program._repr_html_())
    cells = np.reshape(shown.cells(), (-1, 9))
    assert cells[:, 0].tolist() == [str(number) for number in range(len(report["kernels"]))]
    assert cells[:, 2].tolist() == [f"{kernel['members']:,}" for kernel in report["kernels"]]
    text = "".join(data for _, data in shown.found)
    assert "smoothed" in text and "solves 42 unknowns" in text and "workspace" in text and "assemble" in text


def test_a_minimum_shows_its_steps():
    found = geoopt.newton(lambda x: np.sum(np.cosh(x - 1)), np.zeros(3))
    cells = np.reshape(Text(found._repr_html_()).cells(), (-1, 4))
    np.testing.assert_allclose(cells[:, 1].astype(float), found.energies, rtol=1e-9)
    assert cells[-1, 3] == "" and len(cells) == found.iterations + 1


def test_listings_are_text():
    shown = geoopt.view(lambda x: np.where(x < 1, x, 1 / x), np.ones(4), stage="trace")
    assert isinstance(shown, str) and "<" in shown
    assert "".join(data for _, data in Text(shown._repr_html_()).found) == shown


def test_shares_fill_a_bar_and_names_are_escaped():
    html = bar("<all>", {f"<{i}>": float(i) for i in range(20)}, lambda share: f"{share:g}")
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", html)]
    assert np.isclose(sum(widths), 100, atol=0.1) and "others" in html
    Text(html)
    Text(bar("nothing", {"a": 0.0}, str))
    assert "&lt;b&gt;" in table(["<b>"], []) and len(Text(table(["n"], [["1"]] * 100)).cells()) == MOST_ROWS
