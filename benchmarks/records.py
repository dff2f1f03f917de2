"""What a benchmark is: work on a mesh, who does it, and what is shown of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import geoopt

Mesh = tuple[np.ndarray, np.ndarray]
Line = dict[str, Any]  # one line of a results file, plain data
Entry = dict[str, Any]  # what is known of one candidate


@dataclass(frozen=True)
class Work:
    """One computation on given data.

    key : name of the function that prepares it in the files of `peers`
    function, arguments : what geoopt compiles, and what the peers prepare
    inputs : the variables, which the prepared programs and peers are called with
    takes_function : peers prepare ``key(function, *arguments)``, else ``key(*arguments)``
    tolerance : of the differences between peers in double precision, relative to the largest value
    single : the same in single precision
    approximate : tolerances of peers, by name, that do not compute exactly the same
    """

    key: str
    function: Callable
    arguments: tuple
    inputs: tuple
    takes_function: bool = False
    tolerance: float = 1e-9
    single: float = 3e-4
    approximate: dict[str, float] = field(default_factory=dict)

    @property
    def given(self) -> tuple:
        """What peers prepare from."""
        return (self.function, *self.arguments) if self.takes_function else self.arguments


def inputs_of_calls(program: geoopt.Program, inputs: tuple) -> Iterator[tuple]:
    """What each call is given, without end: the inputs; of programs that solve linear systems, by turns these and such
    that differ in the last digits, for what was factored last is not factored again."""
    return itertools.cycle([inputs, tuple(map(beside, inputs))] if program.report()["solves"] else [inputs])


def beside(given: Any) -> Any:
    """Floats that differ by a few roundings, by different ones of neighbours."""
    if sp.issparse(given):
        found = given.copy()
        found.data = beside(given.data)
        return found
    array = np.asarray(given)
    if array.dtype.kind != "f" or not array.ndim:
        return given
    roundings = 1 + np.arange(array.size).reshape(array.shape) % 3
    return array * (1 + np.finfo(array.dtype).eps * roundings).astype(array.dtype)


def of_positions(functions: dict[str, Callable], mesh: Mesh, dtype: type) -> dict[str, Callable[[], Work]]:
    """Functions of vertices and elements, of which only the vertices vary; NumPy and SciPy run the same ones."""
    V, elements = mesh[0].astype(dtype), mesh[1]

    def work(function: Callable) -> Work:
        return Work("sparse", lambda V: function(V, elements), (V,), (V,), takes_function=True)

    return {name: lambda function=function: work(function) for name, function in functions.items()}


@dataclass(frozen=True)
class Setting:
    """What the user asked for. None and empty: the benchmark's own.

    mesh : a file, or the name of a generator in `geoopt.meshes`
    lanes : width of geoopt's vectors, 0 for the host's;  peers, works : names;  threads : numbers of threads
    command : how the same is run again
    """

    mesh: str | None = None
    vertices: int | None = None
    peers: tuple[str, ...] | None = None
    threads: tuple[int, ...] = (1, 2)
    dtype: type = np.float64
    device: str = "cpu"
    rounds: int = 10
    lanes: int = 0
    works: tuple[str, ...] = ()
    command: str = ""


Column = tuple[str, Callable[[Entry], str]]  # heading, text of an entry


@dataclass(frozen=True)
class Benchmark:
    """One figure or table of the paper, or one of ours.

    title : what is measured;  paper : its counterpart
    mesh : a generator in `geoopt.meshes`;  works : by name, of a mesh and a dtype
    peers : names in `peers.PEERS`;  reference : the one that the paper's speedups are over
    full, small : words after the name of the commands of the full run and of `make bench`
    vertices : of the generated mesh where nobody says how many;  compared : of that on which commits are compared
    of_others : whether it measures works of other benchmarks only
    variants : of geoopt, by name, `geoopt.Options` each is compiled with
    left_out : works that cannot be done here, by name, and what to do about it
    measure : lines of the results, where comparing peers is not all
    columns : what tables show of an entry; None for what comparisons show
    """

    title: str
    paper: str
    works: Callable[[Mesh, type], dict[str, Callable[[], Work]]]
    mesh: str = "bumpy"
    peers: tuple[str, ...] = ()
    reference: str = "eigen"
    full: tuple[str, ...] = ()
    small: tuple[str, ...] = ("--vertices 5000",)
    vertices: int = 50_000
    compared: int = 5_000
    of_others: bool = False
    variants: dict[str, dict[str, Any]] = field(default_factory=lambda: {"geoopt": {}})
    left_out: Callable[[], dict[str, str]] = dict
    measure: Callable[[str, Benchmark, Setting], Iterator[Line]] | None = None
    columns: tuple[Column, ...] | None = None


def options(variant: dict[str, Any], threads: int, setting: Setting) -> geoopt.Options:
    """The options of a variant, which go before what the user asked for."""
    return geoopt.Options(**{"threads": threads, "lanes": setting.lanes, **variant})
