"""`geoopt.torch`: functions under torch's derivatives, batches and compiler, beside torch's own and beside differences.

Where torch is not installed they are skipped: ``make torch`` installs it and runs them.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.operators import cotan_laplacian, face_normals, surface_area

from .cases_differentiable import (
    ALL,
    IS_THOROUGH,
    TWICE,
    B,
    F,
    L,
    V,
    interpret,
    operator,
    poisson,
    twice,
    watch_preparation,
    watch_runs,
)
from .cases_differentiable import near as are_near
from .cases_operators import variables

torch = pytest.importorskip("torch", reason="torch is not installed: make torch installs it, and runs these tests")
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap  # noqa: E402

RNG = np.random.default_rng(3)
X = torch.tensor(V)

area = geoopt.torch.function(surface_area, V, F)
laplacian = geoopt.torch.function(cotan_laplacian, V, F, matrices="values")
normals = geoopt.torch.function(face_normals, V, F)
solution = geoopt.torch.function(poisson, V, B)
product = geoopt.torch.function(twice, L, B)
spring = geoopt.torch.function(lambda x, k: k * (np.sqrt((x * x).sum()) - 1) ** 2, np.ones(3), 2.0)


def area_of_torch(x):
    a, b, c = (x[torch.from_numpy(F[:, corner]).long()] for corner in range(3))
    return torch.linalg.norm(torch.linalg.cross(b - a, c - a), dim=1).sum() / 2


def wanted(*arrays):
    """Tensors whose slopes are wanted."""
    return [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]


def near(got, want, tolerance=1e-9):
    are_near(*(a.detach() if isinstance(a, torch.Tensor) else a for a in (got, want)), tolerance)


def slope(function, x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(function(x), x)[0]


def floats(result) -> list:
    """The tensors of floats of a result."""
    found = torch.utils._pytree.tree_leaves(result)
    return [a for a in found if isinstance(a, torch.Tensor) and a.is_floating_point()]


# -- derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_derivatives_of_operators_are_those_of_differences(name, monkeypatch):
    interpret(monkeypatch)
    function, arguments = operator(name)
    prepared = geoopt.torch.function(function, *arguments, matrices="values")
    values = wanted(*(a.data if sp.issparse(a) else a for a in variables(arguments)))
    call = lambda *values: tuple(floats(prepared(*values)))  # noqa: E731
    how = {"eps": 1e-5, "atol": 1e-4, "rtol": 1e-4, "nondet_tol": 1e-9, "fast_mode": True}
    assert gradcheck(call, values, check_forward_ad=True, **how)
    if name in TWICE or IS_THOROUGH:
        assert gradgradcheck(call, values, check_fwd_over_rev=True, **how)


def test_so_are_those_of_compiled_programs():
    for function in (area, normals, lambda x: laplacian(x)[0]):
        assert gradcheck(function, wanted(V), check_forward_ad=True)
        assert gradgradcheck(function, wanted(V), check_fwd_over_rev=True)


def test_as_torch_differentiates_the_same():
    tangent = torch.tensor(RNG.normal(size=V.shape))
    for how in (grad, hessian, jacrev):
        near(how(area)(X), how(area_of_torch)(X))
    near(*(slope(f, X) for f in (area, area_of_torch)))
    near(*(jvp(grad(f), (X,), (tangent,))[1] for f in (area, area_of_torch)))
    near(hessian(area)(X).reshape(V.size, V.size), geoopt.hessian(surface_area)(V, F).toarray())


def test_derivatives_of_all_orders_and_modes_agree():
    for inner in (jacrev, jacfwd):
        for outer in (jacrev, jacfwd):
            near(outer(inner(area))(X), hessian(area_of_torch)(X))
    cube = geoopt.torch.function(lambda x: x * x * x, np.ones(1))
    for orders in ((grad, grad, grad), (jacfwd, jacfwd, jacfwd), (jacfwd, grad, jacfwd), (grad, jacfwd, grad)):
        function = lambda x: cube(x.reshape(1))[0]  # noqa: E731
        for how in orders:
            function = how(function)
        assert function(torch.tensor(2.0)).item() == 6


def test_tangents_outside_of_functions():
    tangent = torch.tensor(RNG.normal(size=V.shape))
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(area(forward_ad.make_dual(X, tangent))).tangent
    near(found, (slope(area, X) * tangent).sum())


def test_by_a_number():
    x, k = wanted([3.0, 0.0, 4.0], 2.0)
    energy = spring(x, k)
    energy.backward()
    near(x.grad, 2 * 2 * 4 * x.detach() / 5)
    assert energy.shape == k.grad.shape == () and k.grad.item() == 16 and spring(x, 2.0).item() == 32
    assert gradgradcheck(spring, (x, k), check_fwd_over_rev=True)


def test_through_the_solution_of_a_system():
    assert gradcheck(solution, wanted(V, B), nondet_tol=1e-9)
    near(vmap(solution, (None, 0))(X, torch.tensor(np.stack([B, 2 * B])))[1], 2 * poisson(V, B))


def test_by_a_matrix():
    near(product(torch.tensor(L.data), torch.tensor(B)), twice(L, B))
    assert gradcheck(product, wanted(L.data, B), check_forward_ad=True)
    assert gradgradcheck(product, wanted(L.data, B), check_fwd_over_rev=True)


def test_hooks_see_and_change_slopes():
    (x,) = wanted(V)
    y = x * 1
    seen, result = [], normals(y)
    result.register_hook(lambda g: seen.append(g.shape) or 2 * g)
    y.register_hook(lambda g: seen.append(g.shape) or 3 * g)
    result[:, 0].sum().backward()
    assert seen == [result.shape, x.shape]
    near(x.grad, 6 * slope(lambda x: normals(x)[:, 0].sum(), X))


def test_backward_runs_one_program_for_the_slopes_that_are_wanted(monkeypatch):
    ran = watch_runs(monkeypatch)
    made = geoopt.torch.function(lambda x, y: (x * x).sum() * y, np.ones(3), 2.0)
    (x,) = wanted(np.ones(3))
    for call in (made, torch.compile(made, fullgraph=True, backend="aot_eager")):
        torch.autograd.grad(call(x, 2.0), x)
        ran.clear()
        (found,) = torch.autograd.grad(call(x, 2.0), x)
        assert found.tolist() == [4, 4, 4] and [r.shapes for r in ran] == [((1,),), ((3,),)]


def test_derivatives_that_nobody_asks_for_are_not_prepared(monkeypatch):
    prepared = watch_preparation(monkeypatch)
    made = geoopt.torch.function(surface_area, V, F)
    assert not prepared
    made(X), made(*wanted(V)), vmap(made)(torch.stack([X, X]))
    assert prepared == ["surface_area"]
    slope(made, X), grad(made)(X)
    assert prepared == ["surface_area", "vjp of surface_area"]
    jvp(made, (X,), (X,))
    assert prepared == ["surface_area", "vjp of surface_area", "jvp of surface_area"]


# -- batches ------------------------------------------------------------------------------------------


def test_batches_are_as_one_by_one():
    many = X + 0.1 * torch.tensor(RNG.normal(size=(4, *V.shape)))
    near(vmap(normals)(many), np.stack([normals(x) for x in many]), 1e-14)
    near(vmap(normals, 1, 2)(many.swapaxes(0, 1)), np.stack([normals(x) for x in many], axis=2), 1e-14)
    near(vmap(grad(area))(many), np.stack([grad(area)(x) for x in many]), 1e-13)
    near(vmap(laplacian)(many)[0], np.stack([laplacian(x)[0] for x in many]), 1e-14)


def test_batches_of_batches_are_one(monkeypatch):
    ran = watch_runs(monkeypatch)
    many = torch.stack([torch.stack([X, X + 1, 2 * X]), torch.stack([3 * X, X, X - 1])])
    near(vmap(vmap(area))(many), [[surface_area(x, F) for x in xs.numpy()] for xs in many])
    assert [r.shapes for r in ran] == [((6, 1),)]
    x, ks = torch.tensor(RNG.normal(size=(3, 3))), torch.tensor([1.0, 2.0])
    pairs = vmap(vmap(spring, (None, 0)), (0, None))  # each over another argument
    near(pairs(x, ks), [[spring(a, k) for k in ks] for a in x])
    assert gradcheck(pairs, wanted(x.numpy(), ks.numpy()), check_forward_ad=True)


def test_what_all_items_share_has_the_sum_of_their_slopes():
    x, ks = torch.tensor([1.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])
    all_springs = lambda x, k: vmap(spring, (None, 0))(x, k).sum()  # noqa: E731
    by_x, by_k = grad(all_springs, (0, 1))(x, ks)
    near(by_x, 6 * grad(spring)(x, 1.0))
    near(by_k, [4, 4, 4])


# -- the compiler -------------------------------------------------------------------------------------


def whole(function, backend="aot_eager"):
    return torch.compile(function, fullgraph=True, backend=backend)


def test_graphs_of_the_compiler_are_whole():
    def energy(x):
        L, M = laplacian(1.1 * x)
        return (L * L).sum() + normals(x)[0, 1] * area(V=x) + spring(x[0], 3.0) * M.sum()

    near(whole(energy)(X), energy(X))
    near(slope(whole(energy), X), slope(energy, X))
    many = torch.stack([X, 2 * X])
    for how, x in ((grad, X), (hessian, X), (vmap, many), (lambda f: vmap(grad(f)), many)):
        near(whole(how(area))(x), how(area)(x))
    near(whole(lambda x: jvp(area, (x,), (x,))[1])(X), 2 * area(X))
    assert whole(area)(X.float()).dtype == torch.float32


def test_the_compiler_prepares_what_was_never_called():
    made = geoopt.torch.function(lambda x: {"a": x * x, "b": [x.sum(), 3]}, np.ones(3))
    (x,) = wanted([1.0, 2.0, 3.0])
    found = whole(made)(x)
    assert found["a"].tolist() == [1, 4, 9] and found["b"][0].item() == 6 and found["b"][1] == 3
    near(torch.autograd.grad(found["a"].sum(), x)[0], [2, 4, 6])


def test_functions_take_turns_in_a_graph():
    made = [geoopt.torch.function(lambda x, k=k: k * x, np.ones(2)) for k in range(4)]
    call = whole(lambda function, x: function(x))
    for k in (0, 1, 2, 3, 1):
        assert call(made[k], torch.ones(2)).tolist() == [k, k]


def test_graphs_of_other_processes_are_refused():
    made = geoopt.torch.function(lambda x: x * x, np.ones(3))
    number = made._number
    with pytest.raises(geoopt.ArgumentError, match="runs a program that is gone: keep the function"):
        torch.ops.geoopt.program([torch.ones(3)], number + 1, None, [False])
    graph = torch.fx.experimental.proxy_tensor.make_fx(made)(torch.ones(3))
    assert graph(torch.full((3,), 2.0)).tolist() == [4, 4, 4]
    del made
    gc.collect()
    with pytest.raises(geoopt.ArgumentError, match="trace graphs again in every process"):
        graph(torch.ones(3))


def test_slopes_come_after_the_function_is_gone():
    (x,) = wanted(np.ones(3))
    result = geoopt.torch.function(lambda x: (x * x).sum(), np.ones(3))(x)
    assert torch.autograd.grad(result, x)[0].tolist() == [2, 2, 2]
    pulled = vjp(geoopt.torch.function(lambda x: x * x, np.ones(3)), torch.ones(3))[1]
    assert pulled(torch.ones(3))[0].tolist() == [2, 2, 2]


def test_it_is_an_operator_as_torch_wants_them():
    arguments = [X.clone().requires_grad_()], area._number, None, [False]
    torch.library.opcheck(torch.ops.geoopt.program.default, arguments)
    torch.library.opcheck(torch.ops.geoopt.program.default, ([torch.stack([X, X])], area._number, 2, [True]))
