"""`geoopt.torch`: what its functions take and give, and what they refuse."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.differentiable.runner import Runner
from geoopt.operators import cotan_laplacian, surface_area

from .cases_differentiable import B, F, L, Parts, V, many_forms, twice

torch = pytest.importorskip("torch", reason="torch is not installed: make torch installs it, and runs these tests")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402
from torch.func import grad, vmap  # noqa: E402

from .test_torch import X, area, near, normals, product, slope, spring, wanted  # noqa: E402

RNG = np.random.default_rng(3)
rows = geoopt.torch.function(cotan_laplacian, V, F)
entries = geoopt.torch.function(cotan_laplacian, V, F, matrices="coo")
numbers = geoopt.torch.function(cotan_laplacian, V, F, matrices="values")
CSR = torch.sparse_csr_tensor(torch.tensor(L.indptr), torch.tensor(L.indices), torch.tensor(L.data), L.shape)
COO = CSR.to_sparse_coo()
x = torch.tensor(B)

# -- sparse tensors -----------------------------------------------------------------------------------


def test_sparse_results_are_tensors_of_torch():
    for made, layout in ((rows, torch.sparse_csr), (entries, torch.sparse_coo)):
        found, mass = made(X)
        assert found.layout == mass.layout == layout and found.dtype == torch.float64
        near(found.to_dense(), L.toarray())
        near(mass.to_dense().sum(), surface_area(V, F))
    near(numbers(X)[0], L.data)


OF_MATRICES = {
    "dense": lambda A, x: A.to_dense(),
    "product": lambda A, x: A @ x,
    "transposed": lambda A, x: A.t() @ x,
    "sum": lambda A, x: (2 * A + A).sum(),
    "nonlinear": lambda A, x: A @ (A @ x) ** 2,
}


@pytest.mark.parametrize("made", [rows, entries], ids=["csr", "coo"])
@pytest.mark.parametrize("name", OF_MATRICES)
def test_slopes_go_through_sparse_results(made, name):
    function = lambda x: OF_MATRICES[name](made(x)[0], x)  # noqa: E731
    assert gradcheck(function, wanted(V)) and gradgradcheck(function, wanted(V), fast_mode=True)


def test_so_do_those_of_their_values():
    for made in (rows, entries, numbers):
        values = lambda x, made=made: made(x)[0] if made is numbers else made(x)[0].values()  # noqa: E731
        assert gradcheck(values, wanted(V))
        if made is not rows:  # of CSR tensors torch knows no second ones
            assert gradgradcheck(lambda x, values=values: values(x) ** 2, wanted(V), fast_mode=True)


def test_slopes_may_have_other_patterns():
    def squared(made):
        return lambda x: ((made(x)[0] @ made(x)[0]).to_dense() ** 2).sum()

    for made in (rows, entries):
        assert gradcheck(squared(made), wanted(V))
    assert gradgradcheck(squared(entries), wanted(V), fast_mode=True)


def test_matrices_of_every_kind_are_taken():
    want = twice(L, B)
    of_ints = torch.sparse_csr_tensor(CSR.crow_indices().int(), CSR.col_indices().int(), CSR.values(), L.shape)
    doubled = torch.cat([COO.indices()] * 2, dim=1), torch.cat([COO.values() / 2] * 2)
    for matrix in (CSR, COO, of_ints, CSR.values(), torch.sparse_coo_tensor(*doubled, L.shape)):
        near(product(matrix, x), want)
    for matrix in (CSR, COO, L):
        near(geoopt.torch.function(twice, matrix, x)(CSR, x), want)
    near(vmap(product, (0, None))(torch.stack([CSR.values(), 2 * CSR.values()]), x)[1], 4 * want)


def test_matrices_that_are_given_have_slopes():
    (values,) = wanted(L.data)
    (want,) = torch.autograd.grad(product(values, x).sum(), values)
    for matrix in (CSR, COO):
        leaf = matrix.clone().requires_grad_()
        product(leaf, x).sum().backward()
        found = leaf.grad if matrix is CSR else leaf.grad.coalesce()
        near(found.values(), want)


def test_one_function_takes_what_another_gives():
    chained = lambda x: product(rows(x)[0], x[:, 0])  # noqa: E731
    near(chained(X), twice(L, V[:, 0]))
    assert gradcheck(chained, wanted(V))
    assert gradgradcheck(lambda x: product(numbers(x)[0], x[:, 0]), wanted(V), fast_mode=True)


def test_sparse_results_within_the_compiler_are_made_outside_of_its_graphs():
    call = torch.compile(lambda x: rows(2 * x)[0] @ x, backend="aot_eager")
    near(slope(lambda x: (call(x) ** 2).sum(), X), slope(lambda x: ((rows(2 * x)[0] @ x) ** 2).sum(), X))


# -- values and forms ---------------------------------------------------------------------------------


def test_results_have_their_forms():
    x = np.array([1.0, 4.0, 9.0])
    found = geoopt.torch.function(many_forms, x, 2.0)(torch.tensor(x), k=2.0)
    assert isinstance(found["b"], Parts) and isinstance(found["a"], tuple) and found["c"][1] == 4
    near(found["a"][0], 2 * x)
    near(found["b"].lengths, [1, 2, 3])
    assert found["a"][1] == 3 and found["b"].total == 14 and found["c"][0].tolist() == [False, True, True]
    near(found["c"][2].to_dense(), np.eye(3))
    near(found["d"].to_dense(), many_forms(x, 2.0)["d"].toarray())


def test_types_are_those_of_the_tensors():
    single = X.float()
    assert area(single).dtype == slope(area, single).dtype == torch.float32
    near(slope(area, single), slope(area, X), 1e-5)
    assert spring(torch.ones(3), 2.0).dtype == torch.float32  # a float of Python's has no type of its own
    assert spring(torch.ones(3), torch.tensor(2.0).double()).dtype == torch.float32  # nor has one without axes
    assert product(CSR, x.float()).dtype == torch.float64
    k = torch.tensor(2.0).double().requires_grad_()
    assert torch.autograd.grad(spring(torch.ones(3), k), k)[0].dtype == torch.float64
    assert rows(single)[0].dtype == torch.float32


def test_memory_is_shared_where_it_can_be(monkeypatch):
    addresses = []
    run = Runner.run_at
    monkeypatch.setattr(Runner, "run_at", lambda self, i, o: addresses.append((*i, *o)) or run(self, i, o))
    made = geoopt.torch.function(lambda x: 2 * x, np.ones((4, 3)))
    plain = torch.arange(12.0).reshape(4, 3)
    result = made(plain)
    assert addresses[0] == (plain.data_ptr(), result.data_ptr())
    for view in (plain.reshape(3, 4).t(), torch.arange(24.0).reshape(4, 6)[:, ::2], torch.ones(3).expand(4, 3)):
        near(made(view), 2 * view)
    odd = torch.arange(13.0)[1:].reshape(4, 3)  # that does not begin where vectors do
    near(made(odd), 2 * odd)
    near(made(torch.nn.Parameter(plain)), 2 * plain)


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.scale, self.function = torch.nn.Parameter(torch.ones(()).double()), function

    def forward(self, x):
        return self.function(self.scale * x)


def test_models_that_hold_functions_are_copied():
    model = Model(area)
    twin = copy.deepcopy(model)
    twin(X).backward()
    near(twin.scale.grad, 2 * area(X))
    assert model.scale.grad is None and model(X) == twin(X)


def test_they_are_exported():
    model = Model(geoopt.torch.function(surface_area, V, F))  # which is prepared while torch traces
    assert torch.export.export(model, (X,)).module()(2 * X) == area(2 * X)


def test_empty_arrays_are_taken():
    made = geoopt.torch.function(lambda x, y: (2 * x, y.sum()), np.ones((0, 3)), np.ones(2))
    found, total = made(torch.ones(0, 3), torch.ones(2))
    assert found.shape == (0, 3) and total == 2


def test_branches_are_kept():
    made = geoopt.torch.function(lambda x: x * 2 if x.sum() > 0 else x * x, np.ones(2))
    assert slope(lambda x: made(x).sum(), torch.ones(2)).tolist() == [2, 2]
    assert slope(lambda x: made(x).sum(), -torch.ones(2)).tolist() == [-2, -2]


def test_threads_call_at_once():
    wrong = []

    def work(seed):
        y = X * (1 + seed)
        for _ in range(30):
            if not torch.allclose(
                slope(lambda y: normals(y).sum() + area(y), y), want / (1 + seed) + other * (1 + seed)
            ):
                wrong.append(seed)

    want, other = slope(lambda y: normals(y).sum(), X), slope(area, X)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_go_with_their_functions():
    def used():
        made = geoopt.torch.function(lambda x: x * x, np.ones(3))
        torch.compile(grad(lambda x: made(x).sum()), backend="aot_eager")(torch.ones(3))
        return weakref.ref(made._flat)

    freed = used()
    torch._dynamo.reset()
    gc.collect()
    assert freed() is None


def test_results_stay_when_others_come():
    made = geoopt.torch.function(lambda x: (2 * x, x + 1), np.ones(100_000))
    kept = [made(torch.full((100_000,), float(i))) for i in range(8)]
    for i, (double, next_) in enumerate(kept):
        assert double[0] == double[-1] == 2 * i and next_[0] == next_[-1] == i + 1


# -- what does not fit --------------------------------------------------------------------------------

REVERSED = torch.sparse_csr_tensor(CSR.crow_indices(), CSR.col_indices().flip(0), CSR.values(), L.shape)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: area(X[:3]), r"'V' has shape \(3, 3\); the function was made for \(12, 3\); .*vmap"),
        (lambda: area(X.long()), "'V' has dtype torch.int64; give floating-point numbers"),
        (lambda: area(X * 1j), "'V' has dtype torch.complex128"),
        (lambda: area(X.half()), "torch.float16 is not supported; give float32 or float64"),
        (lambda: area(V), r"'V' is a ndarray; give a tensor of shape \(12, 3\), e.g. torch.as_tensor"),
        (lambda: area(1.0), r"'V' has shape \(\); the function was made for \(12, 3\)"),
        (lambda: spring(torch.ones(3), 2), "'k' has dtype int; give floating-point numbers"),
        (lambda: area(X, F), "takes 1 variables"),
        (lambda: area(CSR), "'V' has layout torch.sparse_csr; give a dense tensor"),
        (lambda: product(CSR), "'x' is missing"),
        (lambda: product(CSR, y=x), "'y' is unknown"),
        (lambda: product(REVERSED, x), "another pattern, or unsorted entries"),
        (lambda: product(CSR @ CSR, x), f"12, 12.* with {L.nnz} entries: make another function"),
        (lambda: product(CSR.to_sparse_csc(), x), "has layout torch.sparse_csc; .*: give a sparse CSR or COO"),
        (
            lambda: product(CSR.to_dense(), x),
            r"has shape \(12, 12\); .*: give a sparse CSR or COO tensor, or its values",
        ),
        (lambda: product(L, x), "'A' is a csr_array; .*: give a sparse CSR or COO tensor"),
        (lambda: geoopt.torch.function(surface_area, F, F), "no argument of surface_area is a variable"),
        (lambda: geoopt.torch.function(V), "takes a function, not a ndarray"),
        (lambda: geoopt.torch.function(surface_area, V, F, matrices="bcsr"), "choose from 'csr', 'coo', 'values'"),
        (lambda: geoopt.torch.function(twice, CSR.to_sparse_csc(), x), "layout torch.sparse_csc is no example"),
        (lambda: grad(lambda V: geoopt.torch.function(surface_area, V, F)(V))(X), "an example is traced by torch"),
        (lambda: grad(lambda V: rows(V)[0].sum())(X), "take no sparse tensors: .*matrices='values'"),
        (lambda: geoopt.torch.function(lambda x: None, V)(X), "returns nothing"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(call, words):
    with pytest.raises(geoopt.ArgumentError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_errors_of_a_running_program_come_through():
    made = geoopt.torch.function(geoopt.solve, sp.csr_array(np.ones((3, 3)) + np.eye(3)), np.ones(3))
    for call in (made, torch.compile(made, fullgraph=True, backend="aot_eager")):
        with pytest.raises(geoopt.SolverError, match="the matrix is singular"):
            call(torch.zeros(9), torch.ones(3))
        near(call(torch.ones(9) + torch.eye(3).reshape(-1), torch.ones(3)), np.full(3, 0.25), 1e-6)


def test_other_devices_are_refused():
    with (
        torch._subclasses.FakeTensorMode(),
        pytest.raises(geoopt.DeviceError, match=r"'V' is on cuda:0, .*: give it as"),
    ):
        area(torch.empty(12, 3, device="cuda"))


def test_shapes_are_known_without_numbers():
    found = numbers(torch.empty(12, 3, dtype=torch.float64, device="meta"))
    assert found[0].is_meta and found[0].shape == (L.nnz,)


def test_without_torch_a_line_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import geoopt; geoopt.torch"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert found.splitlines()[-1] == "ImportError: geoopt.torch needs torch: pip install 'geoopt-compiler[torch]'"


def test_its_example_runs():
    text = geoopt.torch.function.__doc__.split(">>>")[1:]
    names = {"geoopt": geoopt, "torch": torch, "surface_area": surface_area, "V": V, "F": F}
    exec("\n".join(line.strip() for line in text), names)
    near(names["x"].grad, slope(area, X))
