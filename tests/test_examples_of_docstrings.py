"""Every public function, class and error has an example in its docstring, which runs and prints what it shows."""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt import errors, meshes, operators

from .test_docs import HOW, LISTED, NAMES, ROOT, text_of

PUBLIC = [name for page in NAMES if page.startswith("reference/") for name in LISTED.findall(text_of(page))]
ERRORS = [f"errors.{n}" for n, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]
NEEDS = {"jax": ("jax",), "torch": ("torch",), "distributed": ("mpi4py", "petsc4py")}
NAMESPACE = {"geoopt": geoopt, "np": np, "sp": sp, "operators": operators, "meshes": meshes}


def public(name: str) -> object:
    """What the reference calls by a name, which starts below `geoopt`."""
    *modules, last = name.split(".")
    found = geoopt
    for module in modules:
        found = importlib.import_module(f"{found.__name__}.{module}")
    found = getattr(found, last)
    return getattr(found, last) if inspect.ismodule(found) else found


def failures(name: str) -> str:
    """What is wrong with the examples of a public object; nothing where all is well."""
    text = inspect.cleandoc(public(name).__doc__ or "")
    examples = text.partition("\n\nExamples\n--------\n")[2]
    test = doctest.DocTestParser().get_doctest(examples, dict(NAMESPACE), f"geoopt.{name}", None, None)
    if not test.examples:
        return f"geoopt.{name} has no example: end its docstring by a section Examples"
    said = io.StringIO()
    doctest.DocTestRunner(optionflags=HOW, verbose=False).run(test, out=said.write)
    return said.getvalue()


@pytest.fixture(scope="module")
def on_one_rank(tmp_path_factory) -> dict[str, str]:
    """The failures of `geoopt.distributed`, of a process of its own: MPI stays in the process that began it."""
    names = [name for name in PUBLIC if name.startswith("distributed.")]
    command = [sys.executable, "-m", __name__, *names]
    folder, paths = tmp_path_factory.mktemp("ranks"), [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [*PUBLIC, *ERRORS])
def test_has_an_example_that_runs(name, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for needed in NEEDS.get(name.partition(".")[0], ()):
        pytest.importorskip(needed, reason=f"geoopt.{name} needs {needed}, which is not installed")
    is_distributed = name.startswith("distributed.")
    said = request.getfixturevalue("on_one_rank")[name] if is_distributed else failures(name)
    if said:
        pytest.fail(said, pytrace=False)


if __name__ == "__main__":
    print(json.dumps({name: failures(name) for name in sys.argv[1:]}))
