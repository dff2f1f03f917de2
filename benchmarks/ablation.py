"""What each part of the compiler gives: parts added one by one as in the paper's table, and left out one by one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from geoopt.options import FAMILIES, SWITCHES

from . import cloth_hessian, cotan, paper, run, sparse_powers
from .records import Benchmark, Line, Mesh, Setting
from .tables import COMPARED

SIMPLIFY = frozenset(FAMILIES)
ONE_BY_ONE = {
    "group": {"without": SIMPLIFY | set(SWITCHES), "blocks": False, "lanes": 1},
    "+ blocks (the paper: tagging)": {"without": SIMPLIFY | set(SWITCHES), "lanes": 1},
    "+ local decomposition": {"without": SIMPLIFY | {"global", "memory"}, "lanes": 1},
    "+ global decomposition": {"without": SIMPLIFY | {"memory"}, "lanes": 1},
    "+ simplification": {"without": {"memory"}, "lanes": 1},
    "+ memory": {"lanes": 1},
    "+ vectors": {},
    "+ threads": {"threads": 0},
}
LEFT_OUT = {
    "all but blocks": {"blocks": False},
    **{f"all but {name} decomposition": {"without": {name}} for name in ("local", "global")},
    "all but simplification": {"without": SIMPLIFY},
    **{f"all but {name}": {"without": {name}} for name in (*FAMILIES, "memory")},
}


def works(mesh: Mesh, dtype: type) -> dict:
    known = {
        **{f"cloth Hessian, {name}": make for name, make in cloth_hessian.works(mesh, dtype).items()},
        "cotan": cotan.works(mesh, dtype)["L and M"],
        "L³": sparse_powers.works(mesh, dtype)["A³"],
    }
    return {name: known[name] for name in paper.ABLATION}


def measure(name: str, benchmark: Benchmark, setting: Setting) -> Iterator[Line]:
    """What comparisons give, with the paper's times and what is geoopt's own program again: with that, a ratio is
    noise."""
    for line in run.compare(name, benchmark, setting):
        theirs, [first, *others] = paper.ABLATION[line["work"]], line["entries"]
        for e in (first, *others):
            e["paper_ms"] = theirs.get(e["name"])
        for e in others:
            e["is_same"] = e.get("program") == first["program"]
        yield line


CLOTH = " ".join(f"--work {shlex.quote(name)}" for name in paper.ABLATION if name.startswith("cloth"))
BENCHMARK = Benchmark(
    title="Ablation: parts of the compiler added one by one, and left out one by one",
    paper="the table of the ablation study",
    works=works,
    peers=("eigen",),
    vertices=20_000,
    of_others=True,
    full=(
        f"cloth --vertices 20000 --dtype float32 {CLOTH}",
        "--vertices 200000 --dtype float32 --work cotan",
        "--vertices 50000 --dtype float32 --work L³",
    ),
    small=("--vertices 2000 --dtype float32 --rounds 3 --work cotan --work L³",),
    variants={name: {"threads": 1, **how} for name, how in {"geoopt": {}, **ONE_BY_ONE, **LEFT_OUT}.items()},
    measure=measure,
    columns=(
        *COMPARED,
        ("the paper, ms", lambda e: str(e["paper_ms"] or "")),
        ("program", lambda e: "the same" if e.get("is_same") else ""),
    ),
)
