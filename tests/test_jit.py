"""`geoopt.jit`: one program for each structure of arguments, prepared when it is first met."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt import jitted
from geoopt.errors import ArgumentError
from geoopt.meshes import bumpy, cloth
from geoopt.operators import cotan_laplacian, face_areas

RNG = np.random.default_rng(3)


@geoopt.jit
def areas(V, F):
    return face_areas(V, F)


def misses(jitted):
    return jitted.cache_info().misses


def test_each_structure_is_prepared_once():
    laplacian = geoopt.jit(cotan_laplacian)
    for points, F in (bumpy(40), cloth(30), bumpy(40)):
        for V in (points, points + 0.1):
            want, got = cotan_laplacian(V, F), laplacian(V, F)
            for w, g in zip(want, got, strict=True):
                np.testing.assert_allclose(g.todense(), w.todense(), rtol=1e-12, atol=1e-14)
    assert laplacian.cache_info() == (4, 2, 16, 2)
    assert laplacian.prepare(V, F)(V)[0].nnz == got[0].nnz
    assert misses(laplacian) == 2
    laplacian.cache_clear()
    assert laplacian.cache_info() == (0, 0, 16, 0)


def test_it_reads_as_the_function():
    assert areas.__name__ == "areas"
    assert areas.__wrapped__(*cloth(20)).shape == areas(*cloth(20)).shape
    assert repr(areas) == "<geoopt jit of areas>"
    assert geoopt.jit(dtype=np.float32)(face_areas)(*cloth(20)).dtype == np.float32


def test_structure_that_is_changed_in_place_is_another():
    """As where edges are flipped."""
    V, F = cloth(30)
    F = F.copy()
    flipped = areas(V, F).copy()
    for _ in range(3):
        F[[0, 1]] = F[[1, 0]]
        flipped[[0, 1]] = flipped[[1, 0]]
        np.testing.assert_allclose(areas(V, F), flipped)


def test_what_cannot_be_written_is_hashed_once(monkeypatch):
    hashed = []
    content = geoopt.structure.content
    monkeypatch.setattr(geoopt.structure, "content", lambda array: hashed.append(1) or content(array))
    V, F = cloth(30)
    F = F.copy()
    view = F[:]
    view.flags.writeable = False  # F can be written, and so can what it sees
    for _ in range(2):
        areas(V, view)
    assert len(hashed) == 2
    F.flags.writeable = False
    for _ in range(4):
        areas(V, view)
    assert len(hashed) == 3


def test_what_varies_and_what_is_structure():
    function = geoopt.jit(lambda x, scale, count, matrix, kind="sum": (matrix @ x * scale).sum() + count)
    x, A = RNG.normal(size=3), sp.csr_array(np.diag([1.0, 2.0, 3.0]))
    for scale in (1.0, np.float64(2.0)):
        for values in (1.0, 5.0):
            assert function(x, scale, 2, A * values) == pytest.approx((A @ x * scale * values).sum() + 2)
    assert misses(function) == 1
    others = (
        (x, 1.0, 3, A),  # another integer
        (x[:2], 1.0, 2, A[:2, :2]),  # another shape
        (x, 1.0, 2, sp.csr_array(np.diag([1.0, 2.0], 1) + np.eye(3))),  # another pattern
        (x, 1.0, 2, sp.csc_array(A)),  # another format
        (x, 1.0, True, A),
    )
    for number, arguments in enumerate(others):
        function(*arguments)
        assert misses(function) == 2 + number
    function(x, 1.0, 2, A, kind="other")
    function(x, 1.0, 2, kind="other", matrix=A)
    function(x, 1.0, 2, matrix=A, kind="other")
    assert misses(function) == 1 + len(others) + 1


def test_static_arguments_are_constants():
    seen = []

    @geoopt.jit(static="rest")
    def strain(x, rest):
        seen.append(type(rest))
        return x / rest

    x, rest = RNG.normal(size=4), np.arange(1.0, 5.0)
    np.testing.assert_allclose(strain(x, rest), x / rest)
    np.testing.assert_allclose(strain(x, rest=2 * rest), x / rest / 2)
    np.testing.assert_allclose(strain(2 * x, rest), 2 * x / rest)
    assert misses(strain) == 2
    assert {*seen} == {np.ndarray}
    by_place = geoopt.jit(lambda x, y: x + y, static=1)
    for _ in range(2):
        assert by_place(x, 1.0)[0] == by_place(x, y=1.0)[0] == x[0] + 1
    assert len(by_place.prepare(x, y=1.0).signature.arguments) == 1
    for function in (lambda x, *rest: x + sum(rest), lambda x, **rest: x + sum(rest.values())):
        jitted = geoopt.jit(function, static="rest")
        program = jitted.prepare(x, 1.0, 2.0) if jitted._parameters[1][0] else jitted.prepare(x, a=1.0, b=2.0)
        assert len(program.signature.arguments) == 1 and program(x)[0] == x[0] + 3


@dataclasses.dataclass
class Mesh:
    faces: np.ndarray
    names: list


class Plain:
    def __init__(self, faces):
        self.faces, self.itself = faces, self


def test_objects_are_compared_by_content():
    function = geoopt.jit(lambda V, mesh: V[mesh.faces])
    V, F = cloth(20)
    for make in (lambda F: Mesh(F, ["a", {1: (2.0, None)}]), Plain):
        before = misses(function)
        for faces in (F, F.copy(), F[::-1]):
            np.testing.assert_array_equal(function(V, make(faces)), V[faces])
        assert misses(function) == before + 2


class Slotted:
    __slots__ = ("faces", "not_set")

    def __init__(self, faces):
        self.faces = faces


class Called(list):
    """A list with attributes, which is called."""

    def __init__(self, faces):
        self.faces = faces

    def __call__(self):
        return self.faces


def test_what_changes_inside_of_objects_is_seen():
    V, F = cloth(20)
    function = geoopt.jit(lambda V, mesh: V[mesh.faces])
    for make in (Slotted, Called, Plain):
        mesh = make(F)
        np.testing.assert_array_equal(function(V, mesh), V[F])
        mesh.faces = F[:3]
        np.testing.assert_array_equal(function(V, mesh), V[F[:3]])
    of_method = geoopt.jit(lambda V, faces: V[faces()])
    mesh = Called(F)
    for _ in range(2):
        np.testing.assert_array_equal(of_method(V, mesh.__call__), V[F])
    assert misses(of_method) == 1
    mesh.faces = F[:3]
    np.testing.assert_array_equal(of_method(V, mesh.__call__), V[F[:3]])
    named = geoopt.jit(lambda x, table: x * float(table["a"][0]))
    for names in ("ab", "ba"):
        table = np.array([(1, 2)], dtype=[(n, int) for n in names])
        assert named(np.ones(1), table)[0] == table["a"][0]


def test_any_names_of_arguments_and_matrices_by_diagonals():
    function = geoopt.jit(lambda x, options=1, dtype=2, watch=3, self=4: x * options * dtype * watch * self)
    assert function(np.ones(1), options=2, self=5, watch=1)[0] == 20
    scaled = geoopt.jit(lambda x, A: A @ x)
    for diagonal in ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0]):
        assert scaled(np.ones(3), sp.dia_array(([diagonal], [0]), shape=(3, 3))).sum() == sum(diagonal)


def test_what_cannot_be_compared_is_said():
    for other in (iter([1]), np.random.default_rng(0)):
        with pytest.raises(ArgumentError, match=f"jit cannot tell whether a {type(other).__name__} has changed"):
            geoopt.jit(lambda x, other: x)(np.ones(3), other)
    for static in ("z", 2, -1):
        with pytest.raises(ArgumentError, match=r"the function takes x, y"):
            geoopt.jit(lambda x, y: x, static=static)
    with pytest.raises(ArgumentError, match="jit takes a function, not a int"):
        geoopt.jit(3)
    with pytest.raises(ArgumentError, match=r"jit\(maxsize=0\)"):
        geoopt.jit(face_areas, maxsize=0)


def test_the_programs_that_were_used_last_are_kept():
    function = geoopt.jit(lambda x: 2 * x, maxsize=2)
    for size in (1, 2, 1, 3, 1, 2):
        assert len(function(np.ones(size))) == size
    assert function.cache_info() == (2, 4, 2, 2)


def test_what_fails_is_tried_again():
    calls = []

    @geoopt.jit
    def function(x):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("first")
        return x

    with pytest.raises(RuntimeError, match="first"):
        function(np.ones(2))
    assert function(np.ones(2)).sum() == 2
    assert function.cache_info().currsize == 1


def test_threads_that_need_one_program_prepare_it_once():
    traced, results, start = [], [], threading.Barrier(4)

    @geoopt.jit
    def function(x, n):
        traced.append(n)
        return x * n

    def work():
        start.wait()
        results.append([function(np.ones(3), n)[0] for n in (2, 3)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[2.0, 3.0]] * 4
    assert sorted(traced) == [2, 3]
    assert function.cache_info().hits == 6


def test_inside_of_traced_code_it_is_the_function():
    program = geoopt.compile(lambda V, F: areas(V, F).sum(), *cloth(20))
    assert program(cloth(20)[0]) == pytest.approx(face_areas(*cloth(20)).sum())
    slope = geoopt.gradient(lambda V, F: areas(V, F).sum())(*cloth(20))
    assert slope.shape == cloth(20)[0].shape


def test_inside_of_traced_code_whatever_it_is_given():
    inner = geoopt.jit(lambda parts: parts[0] + parts[1])
    x = np.arange(3.0)
    np.testing.assert_array_equal(geoopt.compile(lambda x: inner([x, 2 * x]), x)(x), 3 * x)

    @geoopt.jit
    def recursive(x, depth):
        return x if depth == 0 else x + recursive(np.ones(3), depth - 1)

    np.testing.assert_array_equal(recursive(x, 1), x + 1)


def test_methods():
    class Solid:
        def __init__(self, F):
            self.F = F

        @geoopt.jit
        def areas(self, V):
            return face_areas(V, self.F)

    V, F = cloth(20)
    np.testing.assert_allclose(Solid(F).areas(V), face_areas(V, F))
    np.testing.assert_allclose(Solid(F[:5]).areas(V), face_areas(V, F[:5]))
    assert Solid.areas.cache_info().misses == 2


def test_it_goes_to_other_processes():
    assert pickle.loads(pickle.dumps(areas)) is areas
    other = pickle.loads(pickle.dumps(geoopt.jit(cotan_laplacian, maxsize=3)))
    assert other(*cloth(20))[0].nnz and other.cache_info().maxsize == 3
    assert copy.deepcopy(areas) is areas


def test_a_function_that_arrives_again_keeps_its_programs():
    cloudpickle = pytest.importorskip("cloudpickle")
    double = geoopt.jit(lambda x: 2 * x)
    content = cloudpickle.dumps(double)
    assert pickle.loads(content) is double  # it has never left
    del double
    for hits in range(2):
        arrived = pickle.loads(content)
        np.testing.assert_array_equal(arrived(np.ones(3)), [2.0, 2.0, 2.0])
        assert arrived.cache_info()[:2] == (hits, 1)
        del arrived


def test_only_some_functions_that_arrived_are_kept():
    contents = [pickle.dumps(geoopt.jit(cotan_laplacian)) for _ in range(jitted.MOST_ARRIVED + 1)]
    first, *_ = map(pickle.loads, contents)
    tokens = [pickle.loads(content)._token for content in contents]
    assert len(set(tokens)) == len(contents) and first._token == tokens[0]
    assert len(jitted._ARRIVED) == jitted.MOST_ARRIVED and [*jitted._ARRIVED] == tokens[1:]


def test_names_and_places_are_one_call():
    calls = geoopt.jit(lambda x, y, *, k: x + y * k)
    x = np.arange(3.0)
    for got in (
        calls(x, 2 * x, k=2.0),
        calls(x, y=2 * x, k=2.0),
        calls(y=2 * x, x=x, k=2.0),
        calls(k=2.0, y=2 * x, x=x),
    ):
        np.testing.assert_array_equal(got, 5 * x)
    assert calls.cache_info()[:2] == (3, 1)


def test_a_name_that_is_only_of_others_stays_one():
    def function(x=1.0, /, **others):
        return x + others["x"]

    np.testing.assert_array_equal(geoopt.jit(function)(x=np.full(2, 3.0)), [4.0, 4.0])
