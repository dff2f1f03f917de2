"""A backend of its own needs a printer, a machine and a row in the table of devices."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.pipeline import DEVICES

from . import toy_backend
from .test_code import CASES, is_variable
from .test_stages import arrays


@pytest.fixture(autouse=True)
def python(monkeypatch):
    monkeypatch.setitem(DEVICES, "python", toy_backend.DEVICE)


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_the_function_does(name):
    function, arguments = CASES[name]
    program = geoopt.compile(function, *arguments, device="python")
    found, wanted = program(*filter(is_variable, arguments)), function(*arguments)
    for got, want in zip(arrays(found), arrays(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def test_it_is_a_device_like_others():
    assert geoopt.devices()["python"] == "Python's own loops"
    program = geoopt.compile(lambda x: 2 * x + 1, np.ones(3), device="python")
    assert "def k0(begin, end" in program.source() and "python" in str(program.machine.sources)
    assert "void evaluate(" in program.source("c") and program.report()["lanes"] == 1
    assert geoopt.view(lambda x: 2 * x, np.ones(3), stage="code", device="python").startswith("kernel 0, member i:")
