"""Every stage can be seen, as text that does not change from run to run."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geoopt
from geoopt.meshes import torus
from geoopt.operators import cotan_laplacian
from geoopt.pipeline import DEVICES


@pytest.mark.parametrize("device, stage", [(d, s) for d in ("cpu", "cuda-on-host") for s in DEVICES[d].stages])
def test_a_stage_prints_the_same_text_every_time(device, stage):
    V, F = torus(60)
    texts = {geoopt.view(cotan_laplacian, V, F, stage=stage, device=device) for _ in range(2)}
    assert len(texts) == 1 and len(texts.pop().splitlines()) >= 3


def test_leaves_of_loops_list_their_terms():
    text = geoopt.view(lambda x, p: np.add.reduceat(x * x, p), np.arange(7.0), np.array([0, 2]))
    assert "x[0] x[1]" in text and "x[2] x[3] x[4] x[5] x[6]" in text


def test_intermediates_are_named_after_their_nodes():
    text = geoopt.view(cotan_laplacian, *torus(60), stage="harvest")
    assert "V[0,0]" in text and re.search(r"n\d+\[\d+,\d\]", text)


def test_an_unknown_stage_is_refused():
    with pytest.raises(geoopt.ArgumentError, match="choose from trace, lift"):
        geoopt.view(cotan_laplacian, *torus(60), stage="typo")
