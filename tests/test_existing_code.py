"""Code that knows nothing of geoopt compiles: it fills NumPy's arrays, calls SciPy's constructors and checks values."""

from __future__ import annotations

import copy
import gc
import os
import threading
import warnings
import weakref

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix, diags, hstack, kron

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian

V, F = bumpy(120)
X = np.random.default_rng(3).uniform(0.5, 1.5, 7)
ROWS, COLS = np.array([0, 3, 3, 6, 1, 3]), np.array([1, 2, 2, 6, 0, 2])  # two entries thrice at one place
K = sp.random_array((7, 7), density=0.3, format="csr", rng=np.random.default_rng(5))


# -- arrays to be filled --------------------------------------------------------------------------------


def filled(x):
    out = np.zeros((len(x), 3))
    out[:, 0] = x
    out[2:4, 1:] = x[:2, None] * 2
    out[-1] = [x[0], 4.0, x[1] * x[2]]
    return out


def filled_through_views(x):
    out = np.empty(14)
    grid = out.reshape(2, 7)
    row, column, every = grid[1], grid.T, out[::3]
    grid[:] = 1.5
    row[:] = x
    column[0] += x[0]
    every *= 2
    return out, row, column.sum(axis=1), every.copy(), grid[0, 3] + row[-1]


def filled_by_columns(x):
    """Arrays in Fortran's order, as libigl's are."""
    out, ones = np.zeros((7, 3), order="F"), np.asfortranarray(np.ones((7, 2)))
    first, below = out[:, 0], out.T[1:, 2:]
    out[:, 1] = x
    first[:] = x**2
    below[1] += x[2:]
    ones[1:, 1] = x[1:]
    copied = ones.copy(order="F")
    copied[0] = x[0]
    return out, first * 2, below, ones, copied.reshape(-1, order="F"), ones.sum(axis=0), np.ravel(out, order="F")


def added_to(x):
    total, squares = np.zeros(7), np.ones((7, 1))
    np.add.at(total, ROWS, x[COLS])
    squares[:, 0] += x**2
    np.subtract.at(total, [1], x[:1])
    total -= squares[:, 0] / 2
    return total, squares


def by_masks(x):
    out = np.full(7, 3.0)
    out[np.arange(7) % 2 == 0] = x[::2]
    limited = np.ones(7)
    limited[x > 1] = 0.25
    np.copyto(out[5:], x[:2])
    return out, limited


def number_by_number(x):
    out = np.zeros_like(K.diagonal())
    for i in range(len(out)):
        out[i] = x[i] * x[i - 1] if i % 2 else 2.0
    return out


def joined(x):
    out = np.zeros(3)
    out[1] = x[1]
    return np.concatenate([out, np.zeros(2), x]), np.stack([out, np.ones(3)]), np.where(out > 1, out, -out), out @ out


def converted(x):
    rotation = np.array([[np.cos(x[0]), -np.sin(x[0])], [np.sin(x[0]), np.cos(x[0])]])
    return rotation @ np.asarray(x[:2]), np.asarray([x[:3], x[1:4]], dtype=float), np.ascontiguousarray(x[::-1])


def known_until_the_end(x):
    weights = np.ones(7)
    weights[ROWS] = 0.5
    border = np.flatnonzero(weights > 0.75)  # structure from floats
    order = np.argsort(np.array([3.0, 1.0, 2.0]))
    return x[border], x[order], weights * x, float(weights.sum()) * x, np.sqrt(weights), [*weights][6] * x


def copied_before(x):
    out = np.zeros(7)
    before = out.copy()
    out[:] = x
    return before + 1, out.astype(float).mean(), out.tolist and out.max()


def identity_plus(x):
    blocks = np.tile(np.eye(3), (7, 1, 1))
    blocks[:, 0, 2] = x
    blocks[0] *= 2
    return np.linalg.det(blocks), np.linalg.inv(blocks)


def moved_about(x):
    rows = np.zeros((2, 7))
    rows[0] = x
    rows[[0, 1]] = rows[[1, 0]]
    first, second = rows
    second *= 2
    backwards = np.zeros(7)
    backwards[::-1] = x
    backwards[::-2] += 1
    return rows, first + 1, backwards, np.c_[x, backwards, np.ones((7, 2))], np.r_[x[:2], 4.0, 0:2, backwards[:1]]


def kept_apart(x):
    out = np.zeros(7)
    out[:3] = x[:3]
    same, other, copied = out, copy.deepcopy(out), copy.copy(out)
    out[0] = 7
    return out, same, other, copied


def beside_known_matrices(x):
    vector, columns = np.zeros(7), np.zeros((7, 2))
    vector[:] = x
    columns[:, 1] = x
    return K @ vector, vector @ K, K @ columns, columns.T @ K, K.dot(vector)


def beside_known_matrices_of_the_older_kind(x):
    vector, older = np.zeros(7), csr_matrix(K)
    vector[:] = x
    return older * vector, vector * older, older @ vector


def values_everywhere(x):
    return np.full((2, 7), x), np.full(3, x[2]), np.full_like(np.ones((2, 7)), x)


def in_single_precision(x):
    out = np.zeros(7, np.float32)
    out[2:] = 1.5
    return out * x, out


def energy(x):
    table, sums = np.zeros((7, 2)), np.zeros(3)
    table[:, 0], table[:, 1] = x, x**2
    np.add.at(sums, np.arange(7) % 3, table.sum(axis=1))
    return np.sum(sums**2)


def differentiated(x):
    return geoopt.gradient(energy)(x), geoopt.hessian(energy)(x)


# -- matrices of SciPy --------------------------------------------------------------------------------------


def laplacian(V, F):
    """As SciPy's users write it."""
    i, j, k = F.T
    n = len(V)
    W = csr_matrix((n, n))
    for a, b, c in ((i, j, k), (j, k, i), (k, i, j)):
        u, v = V[a] - V[c], V[b] - V[c]
        cotan = (u * v).sum(1) / np.linalg.norm(np.cross(u, v), axis=1) / 2
        W = W + coo_matrix((cotan, (a, b)), shape=(n, n)).tocsr()
    W = W + W.T
    return (sp.diags(W @ np.ones(n)) - W).tocsc()


def sums_of_an_older_matrix(x):
    W = coo_matrix((x[:6], (ROWS, COLS)), shape=(7, 7))
    degrees = W.sum(axis=1)
    L = sp.diags(np.asarray(degrees).ravel()) - W
    return (
        L,
        sp.diags((degrees / 2).A1) @ W,
        np.array(-W.sum(0)),
        sp.spdiags(degrees.T, 0, 7, 7) * x,
        degrees.shape[0] * x,
    )


MATRICES = {
    "triplets": lambda x: coo_matrix((x[:6], (ROWS, COLS)), shape=(7, 7)).tocsr(),
    "triplets of rows": lambda x: csr_matrix((x[:6], (ROWS, COLS)), shape=(7, 7)),
    "shape from the entries": lambda x: sp.csr_array((x[:6], (ROWS, COLS))),
    "compressed rows": lambda x: csr_matrix((x, K.indices[:7], [0, 2, 2, 5, 7]), shape=(4, 7)),
    "compressed columns": lambda x: csc_matrix((x, K.indices[:7], [0, 2, 2, 5, 7]), shape=(7, 4)) @ np.ones((4, 7)) @ x,
    "list of numbers": lambda x: sp.csr_array(([x[0], 2.0, x[1] * x[2]], ([0, 1, 2], [2, 1, 0])), shape=(3, 3)),
    "of a filled array": lambda x: csr_matrix((filled(x)[:6, 0], (ROWS, COLS)), shape=(7, 7)),
    "diagonal": lambda x: sp.diags(x) @ K,
    "diagonals of one number": lambda x: sp.diags([-1 / x[0] ** 2, 2 / x[0] ** 2, -1.0], [-1, 0, 1], shape=(7, 7)) @ K,
    "functions imported by name": lambda x: kron(diags(1 / x), K) @ kron(hstack([diags(x), K]), x[:7, None]),
    "diagonals": lambda x: sp.diags_array([x, x[:6], [2.0]], offsets=[0, -1, 3], shape=(7, 7)) @ K,
    "diagonals stored by columns": lambda x: sp.spdiags(np.stack([x, 2 * x]), np.array([0, 2]), 7, 7) @ K,
    "block": lambda x: sp.bmat([[sp.diags(x), None], [K, sp.diags(1 / x)]], format="csr"),
    "block array": lambda x: sp.block_array([[sp.diags_array(x), K]], format="csr"),
    "dense blocks": lambda x: sp.bmat([[K, x[:, None]], [x[None], None]]) @ np.ones(8),
    "dense blocks of zeros": lambda x: sp.hstack([sp.diags(x), np.zeros((7, 2)), np.eye(7)[:, :3] * x[:, None]]),
    "of an array": lambda x: csr_matrix(np.outer(x, x)) @ x,
    "of arrays with zeros": lambda x: (csr_matrix(np.diag(x)), sp.lil_matrix(np.tril(np.outer(x, x))).tocsc() * x),
    "dense matrix in a Kronecker product": lambda x: sp.kron(K, np.outer(x[:2], x[:3])).tocsr(),
    "row of numbers below": lambda x: sp.vstack([sp.diags(x), x]),
    "block diagonal": lambda x: sp.block_diag([sp.diags(x), K], format="csr"),
    "stacked": lambda x: sp.vstack([sp.diags(x), K]).tocsr() @ sp.hstack([K, sp.diags(x)]).tocsr(),
    "Kronecker product": lambda x: sp.kron(K, sp.diags(x[:2])).tocsr(),
    "Kronecker product with the identity": lambda x: sp.kron(sp.diags(x), sp.eye(3)).tocsr(),
    "triangles": lambda x: sp.tril(sp.diags(x) @ K) @ sp.triu(sp.diags(x) @ K, 1),
    "product by *": lambda x: csr_matrix((x[:6], (ROWS, COLS)), shape=(7, 7)) * x,
    "product by * of arrays": lambda x: sp.csr_array((x[:6], (ROWS, COLS)), shape=(7, 7)) * x,
    "entries": lambda x: sp.find(csr_matrix((x[:4], (ROWS[:4], COLS[:4])), shape=(7, 7)))[2].sum(),
    "known matrix, entry by entry": lambda x: K.multiply(x[:, None]) @ csr_matrix(K).multiply(sp.diags(x)) * 2.0,
    "known matrix and a number": lambda x: K.multiply(x[0]),
    "formats": lambda x: csr_matrix((x[:6], (ROWS, COLS)), shape=(7, 7)).tolil().tocsc().tocoo().asformat("csr"),
}
ARRAYS = (filled, filled_through_views, filled_by_columns, added_to, by_masks,
          number_by_number, joined, converted, known_until_the_end,
          copied_before, identity_plus, moved_about, kept_apart, beside_known_matrices, differentiated,
          beside_known_matrices_of_the_older_kind, in_single_precision, values_everywhere,
          sums_of_an_older_matrix)  # fmt: skip
CASES = {f.__name__: f for f in ARRAYS} | MATRICES


def parts(result):
    for part in result if isinstance(result, tuple) else (result,):
        yield part.toarray() if sp.issparse(part) else np.asarray(part)


@pytest.mark.parametrize("name", CASES)
def test_numpy_and_scipy_do_the_same(name):
    function = CASES[name]
    program = geoopt.compile(function, X)
    for x in (X, X[::-1] * 1.25):
        if function is by_masks and x is not X:
            x = np.where(x == 1, 0.9, x)
        for got, want in zip(parts(program(x)), parts(function(x.copy())), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_known_zeros_of_an_array_are_no_entries():
    program = geoopt.compile(lambda x: csr_matrix(np.diag(x)), X)
    assert program(X).nnz == 7


def test_libraries_that_read_memory_do_not_get_what_was_there():
    igl = pytest.importorskip("igl")

    def function(x):
        triangle = np.zeros((3, 3))
        triangle[0] = x[:3]
        return igl.doublearea(triangle, np.array([[0, 1, 2]])) * x

    with pytest.raises(geoopt.TracingError, match=r"a library read the numbers(.|\n)*doublearea"):
        geoopt.compile(function, X)


def test_a_laplacian_as_it_is_written_for_scipy():
    program = geoopt.compile(laplacian, V, F)
    np.testing.assert_allclose(program(V * 2).toarray(), laplacian(V * 2, F).toarray(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(program(V).toarray(), -cotan_laplacian(V, F)[0].toarray(), atol=1e-12)


def test_matrices_of_the_older_kind_come_back_as_such():
    program = geoopt.compile(laplacian, V, F)
    older = program(V)
    newer = geoopt.compile(MATRICES["shape from the entries"], X)(X)
    assert type(older) is csc_matrix and type(newer) is sp.csr_array
    np.testing.assert_allclose(older * V, laplacian(V, F) * V, atol=1e-12)  # the matrix product
    older.data[:] = 0
    program(V, out=older)
    np.testing.assert_allclose(older.toarray(), laplacian(V, F).toarray(), atol=1e-12)


def test_functions_of_scipy_that_take_no_symbolic_values_tell_what_to_call():
    with pytest.raises(geoopt.TracingError, match="before, and give the result as an argument"):
        geoopt.compile(lambda x: sp.csgraph.laplacian(sp.diags(x) @ K), X)


def test_other_threads_and_later_calls_see_numpy_and_scipy_as_they_are():
    seen = []

    def look():
        seen.append(type(np.zeros(3)))
        seen.append(type(sp.diags([1.0, 2.0])))

    def function(x):
        other = threading.Thread(target=look)
        other.start()
        other.join()
        return x * np.zeros(7)

    before = np.zeros, np.asarray, diags.__code__
    geoopt.compile(function, X)
    look()
    assert seen == [np.ndarray, sp.dia_matrix] * 2
    assert (np.zeros, np.asarray, diags.__code__) == before


def test_numba_compiles_functions_while_code_is_traced():
    @numba.njit
    def total(n):
        ones, twos = np.ones(n), np.full(n, 2.0)
        rest = np.zeros_like(ones) + np.zeros(n) + np.array([1.0] * 3)
        return (ones + twos + rest).sum() + np.eye(2).sum() + np.repeat(np.asarray(ones), 2).sum()

    np.testing.assert_allclose(geoopt.compile(lambda x: x * total(3), X)(X), 20 * X)


def test_numpy_is_as_it_was_after_an_error():
    before = np.zeros
    with pytest.raises(ZeroDivisionError):
        geoopt.compile(lambda x: x / (1 // 0), X)
    assert np.zeros is before


GPYTOOLBOX = {
    "cotangent_laplacian": {},
    "cotangent_weights": {},
    "massmatrix": {"type": "barycentric"},
    "grad": {},
    "doublearea": {},
    "per_face_normals": {},
    "per_vertex_normals": {},
    "dihedral_angles": {},
    "barycenters": {},
    "halfedge_lengths": {},
}


@pytest.mark.parametrize("name", GPYTOOLBOX)
def test_functions_of_another_library_compile_unchanged(name):
    function = getattr(pytest.importorskip("gpytoolbox"), name)
    program = geoopt.compile(lambda V: function(V, F, **GPYTOOLBOX[name]), V)
    want = function(V * [1, 2, 0.5], F, **GPYTOOLBOX[name])
    for got, reference in zip(parts(program(V * [1, 2, 0.5])), parts(want), strict=True):
        np.testing.assert_allclose(got, reference, rtol=1e-10, atol=1e-10)


# -- checks ---------------------------------------------------------------------------------------------


def checked(x):
    assert np.all(x > 0), "lengths must be positive"
    assert not np.any(np.isnan(x)) and x[0] < 10
    if np.any(x > 100):
        raise ValueError("too long")
    if x.max() > 1e6:
        warnings.warn("very long", stacklevel=1)
    return np.sqrt(x)


def test_checks_are_made_for_the_values_that_compile_is_given():
    np.testing.assert_allclose(geoopt.compile(checked, X)(4 * X), 2 * np.sqrt(X))
    with pytest.raises(AssertionError, match="lengths must be positive"):
        geoopt.compile(checked, -X)
    with pytest.raises(AssertionError):
        geoopt.compile(checked, np.append(X, 11.0)[::-1])
    with pytest.raises(ValueError, match="too long"):
        geoopt.compile(checked, np.append(X, 101.0))


def test_checks_of_numbers_in_loops():
    def function(x):
        total = 0.0
        for i in range(200):
            total = total + x[i % 7] * i
            assert total >= 0
        return total

    np.testing.assert_allclose(geoopt.compile(function, X)(2 * X), 2 * function(X))
    with pytest.raises(AssertionError):
        geoopt.compile(function, -X)


def test_checks_in_functions_that_are_differentiated():
    def energy(x):
        assert np.all(x > 0)
        return np.sum(np.log(x))

    both = geoopt.compile(lambda x: geoopt.gradient(energy)(x * x), X)
    np.testing.assert_allclose(both(X), 1 / X**2)
    with pytest.raises(AssertionError):
        geoopt.compile(lambda x: geoopt.gradient(energy)(x - 1), X)


def test_checks_keep_no_memory():
    graphs = []

    def function(x):
        assert x.sum() > 0
        graphs.append(weakref.ref(x.graph))
        return x * 2

    geoopt.compile(function, X)
    gc.collect()
    assert graphs[0]() is None


def test_checks_are_those_of_the_file_as_it_was_loaded(tmp_path):
    def load(text):
        path = tmp_path / "module.py"
        path.write_text(text)
        os.utime(path, ns=(len(text), len(text)))
        names = {}
        exec(compile(text, path, "exec"), names)
        return names["function"]

    body = "    if x.sum() < 0:\n        {}\n    return x\n"
    geoopt.compile(load("def function(x):\n" + body.format("raise ValueError")), X)
    changed = geoopt.compile(load("def function(x):\n" + body.format("x = -x")), X)
    np.testing.assert_array_equal(changed(-X), X)


def test_a_branch_that_does_more_is_no_check():
    def function(x):
        if x.min() < 0:
            x = -x
        return x

    program = geoopt.compile(function, X)
    for x in (X, X - 1):
        np.testing.assert_array_equal(program(x), function(x))


def test_loops_that_fill_an_array_list_its_ids_once(monkeypatch):
    from geoopt.symbolic.changing import Changing

    lists = []
    monkeypatch.setattr(Changing, "all", lambda self, count, whole=Changing.all: lists.append(1) or whole(self, count))

    def function(V):
        total, normals = np.zeros(len(V)), np.zeros((len(V), 3))
        for i, j, k in F.tolist():
            total[i] += V[j, 0] * V[k, 1]
            normals[j] += V[i] - V[k]
            normals[k, 1] = 2 * normals[k, 1]
        return total, normals

    program = geoopt.compile(function, V)
    assert len(lists) <= 3  # whatever the number of faces
    for got, want in zip(program(V * 2), function(V * 2), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
