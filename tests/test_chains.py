"""Chains of steps: the states of a loop, the slopes of one program of all steps, whatever memory there is."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.chains import Run
from geoopt.chains.checkpoints import Checkpoints
from geoopt.errors import ArgumentError, ShapeError
from geoopt.meshes import cloth as square
from geoopt.meshes import icosphere
from geoopt.operators import cloth, cloth_step, cotan_laplacian
from geoopt.solvers.multifrontal import Multifrontal

V, F = square(40)
REST = cloth(V, F)
X, Y = 1.02 * V + np.random.default_rng(1).normal(scale=0.01, size=V.shape), 0 * V  # at rest, forces have kinks
WIND = np.array([0.5, -1.0, 0.2])
STEPS = 5
STATE = 2 * V.nbytes
RNG = np.random.default_rng(0)


def step(x, v, held, stretch, wind):
    """An implicit one, of cloth; held is structure."""
    return cloth_step(x, v, 1 / 30, replace(REST, stretch=stretch, gravity=REST.gravity + wind), held)


def loss(x, v, held, stretch, wind):
    """Of all states but the first."""
    total = 0.0
    for _ in range(STEPS):
        x, v = step(x, v, held, stretch, wind)
        total = total + np.sum(x * x) + 0.1 * np.sum(v)
    return total


def of_states(x, v):
    """The slopes of the loss by all states."""
    return np.concatenate([np.zeros((1, *V.shape)), 2 * x[1:]]), np.concatenate(
        [np.zeros((1, *V.shape)), v[1:] * 0 + 0.1]
    )


HELD = np.array([0, len(V) - 1])
ARGUMENTS = 800.0, WIND


@pytest.fixture(scope="module")
def motion():
    return geoopt.Chain(step, (X, Y), HELD, *ARGUMENTS, steps=STEPS)


@pytest.fixture(scope="module")
def wanted():
    """Those of all steps at once."""
    return geoopt.gradient(loss, (0, 1, 3, 4))(X, Y, HELD, *ARGUMENTS)


@given(st.integers(1, 200), st.integers(1, 30))
def test_states_come_backward_and_few_are_kept(steps, room):
    made = np.zeros(steps, int)

    def advance(state, begin, end):
        assert state == begin
        made[begin:end] += 1
        return end

    checkpoints = Checkpoints(advance, 0, steps, room)
    assert checkpoints.last == steps - 1 and made.sum() == steps - 1
    most = 0
    for number, state in checkpoints.backward(advance):
        assert state == number
        most = max(most, made.max())
    assert len(checkpoints._kept) <= room + 1
    assert comb(room + max(most, 1) - 1, room) < steps or most <= 1  # as few times as can be
    assert list(checkpoints.forward(advance)) == list(range(steps))


def test_states_are_those_of_a_loop(motion):
    run = motion((X, Y), *ARGUMENTS)
    x, v = X, Y
    xs, vs = run.states
    assert len(run) == STEPS + 1 and xs.shape == (STEPS + 1, *V.shape)
    for number, state in enumerate(run):
        np.testing.assert_allclose(xs[number], x, atol=1e-12)
        np.testing.assert_allclose(vs[number], v, atol=1e-9)
        np.testing.assert_array_equal(state[0], xs[number])
        x, v = step(x, v, HELD, *ARGUMENTS)
    np.testing.assert_array_equal(run.state[0], xs[-1])
    assert "5 steps step(state, stretch, wind)" in repr(motion)


@pytest.mark.parametrize(
    ("states", "factors", "factored"),
    [(0, 0, 3 + 2 + 1 + STEPS), (STEPS, 0, STEPS), (STEPS, 2, STEPS - 2), (99, 99, 0)],
)
def test_slopes_are_those_of_all_steps_at_once(motion, wanted, states, factors, factored, monkeypatch):
    """Whatever memory there is; matrices are factored again in the backward sweep where their factors had no room."""
    motion((X, Y), *ARGUMENTS)
    memory = states * STATE + factors * motion._steps.factor_bytes
    setting = replace(motion._setting, memory=memory)
    run = Run(setting, (X, Y), ARGUMENTS)
    cotangents = of_states(*run.states)
    found = run.vjp(cotangents)
    for slope, want in zip((*found[0], *found[1:]), wanted, strict=True):
        np.testing.assert_allclose(slope, want, rtol=1e-7, atol=1e-9 * np.abs(want).max())
    counts, factor = [], Multifrontal.factor
    monkeypatch.setattr(Multifrontal, "factor", lambda self, A: counts.append(1) or factor(self, A))
    run = Run(setting, (X, Y), ARGUMENTS)
    assert STEPS - 1 <= len(counts) <= STEPS  # the first matrix may be the one that was factored last
    counts.clear()
    again = run.vjp(lambda number: [None if number == 0 else part[number] for part in cotangents])
    assert factored - 1 <= len(counts) <= factored
    for slope, other in zip((*again[0], *again[1:]), (*found[0], *found[1:]), strict=True):
        np.testing.assert_array_equal(slope, other)


def test_another_matrix_is_factored_though_a_factor_is_given(motion):
    """A factor that is kept is used for its own values only."""
    run, other = motion((X, Y), *ARGUMENTS), motion((1.2 * X, Y), 500.0, WIND)
    cotangents = of_states(*run.states)
    want = run.vjp(cotangents)
    run._factors = other._factors
    for slope, other in zip(run.vjp(cotangents)[1:], want[1:], strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-9)


def test_runs_leave_each_other_alone(motion):
    run = motion((X, Y), *ARGUMENTS)
    cotangents = of_states(*run.states)
    want = run.vjp(cotangents)
    wind = WIND.copy()
    run = motion((X, Y), 800.0, wind)
    wind[:] = 7
    motion((1.2 * X, Y), 500.0, wind)
    for slope, other in zip(run.vjp(cotangents)[1:], want[1:], strict=True):
        np.testing.assert_array_equal(slope, other)


def test_what_a_run_kept_goes_with_it(motion):
    run = motion((X, Y), *ARGUMENTS)
    memory = [weakref.ref(factor.memory) for factors in run._factors.values() for factor in factors]
    assert len(memory) == STEPS
    gc.disable()
    try:
        del run
        assert not any(kept() is not None for kept in memory)
    finally:
        gc.enable()


S, G = icosphere(42)
TIMES = np.linspace(0.01, 0.03, 4)


def flow(x, A, time, F, ground):
    """A step of curvature flow on springs; A is a matrix of floats, time has a value for each step."""
    L, M = cotan_laplacian(x, F)
    return geoopt.solve(M + 0.01 * A - time * L, M @ x + 0.01 * ground)


def test_matrices_values_for_each_step_and_one_array():
    A = sp.csr_array(sp.diags_array(np.linspace(1, 2, len(S))))
    chain = geoopt.Chain(flow, S, A, TIMES, G, 0.1, steps=4, over="time")
    run = chain(S, A, TIMES, ground=0.1)
    assert isinstance(run.states, np.ndarray) and run.states.shape == (5, *S.shape)
    w = RNG.normal(size=S.shape)
    by_state, by_matrix, by_time, by_ground = run.vjp(lambda number: w if number == 4 else None)

    def whole(x, A, times, ground):
        for time in times:
            x = flow(x, A, time, G, ground)
        return np.sum(w * x)

    want = geoopt.gradient(whole, (0, 1, 2, 3))(S, A, TIMES, 0.1)
    np.testing.assert_allclose(by_state, want[0], atol=1e-10)
    assert (by_matrix.indices == A.indices).all()
    np.testing.assert_allclose(by_matrix.data, want[1].data, atol=1e-10)
    np.testing.assert_allclose(by_time, want[2], atol=1e-8)
    assert np.isclose(by_ground, want[3], atol=1e-10)
    ends = [chain(S, A, TIMES, 0.1 + h).state for h in (1e-5, -1e-5)]
    assert np.isclose(by_ground, np.sum(w * (ends[0] - ends[1])) / 2e-5, rtol=1e-6)


def test_matrices_for_each_step():
    As = [sp.csr_array(sp.diags_array(np.full(3, a))) for a in (2.0, 3.0)]
    chain = geoopt.Chain(lambda x, A: A @ x, np.ones(3), As, steps=2, over="A", dtype=np.float32)
    run = chain(np.ones(3), As)
    assert run.state.dtype == np.float32 and run.state.tolist() == [6, 6, 6]
    by_state, by_matrices = run.vjp(lambda number: np.ones(3) if number == 2 else None)
    assert by_state.tolist() == [6, 6, 6] and [m.data.tolist() for m in by_matrices] == [[3] * 3, [2] * 3]


def test_nothing_moves_without_cotangents(motion):
    run = motion((X, Y), *ARGUMENTS)
    (by_x, by_v), by_stretch, by_wind = run.vjp(None)
    assert not by_x.any() and not by_v.any() and by_stretch == 0 and not by_wind.any()
    one = run.vjp((None, np.ones((STEPS + 1, *V.shape))))
    other = run.vjp(lambda number: (None, np.ones_like(list(run)[number][1])))
    np.testing.assert_array_equal(one[2], other[2])


def test_progress_is_shown(capsys):
    chain = geoopt.Chain(lambda x: 0.5 * x, V, steps=3, progress=True)
    np.testing.assert_array_equal(chain(V).state, V / 8)


def test_what_is_no_chain_is_refused(motion):
    with pytest.raises(ArgumentError, match="whole number from 1 on"):
        geoopt.Chain(flow, S, steps=0)
    with pytest.raises(ShapeError, match=r"(?s)returns arrays of shapes \(3,\).*return a state: \(4,\)"):
        geoopt.Chain(lambda x: x[1:], np.ones(4), steps=2)(np.ones(4))
    with pytest.raises(ShapeError, match="a state has 2 arrays, not 1"):
        geoopt.Chain(lambda x, y: x, (np.ones(4), np.ones(4)), steps=2)((np.ones(4), np.ones(4)))
    with pytest.raises(ArgumentError, match="array 1 of the state is int"):
        geoopt.Chain(lambda x, y: (x, y), (np.ones(4), 3), steps=2)
    with pytest.raises(ArgumentError, match="over='b': the parameters are 'a'"):
        geoopt.Chain(lambda x, a: a * x, np.ones(4), 2.0, steps=2, over="b")
    with pytest.raises(ArgumentError, match="'a' has 3 values; give one for each of the 2 steps"):
        geoopt.Chain(lambda x, a: a * x, np.ones(4), np.ones(3), steps=2, over="a")
    with pytest.raises(ArgumentError, match="'a' is a number; give one for each"):
        geoopt.Chain(lambda x, a: a * x, np.ones(4), 2.0, steps=2, over="a")
    with pytest.raises(ArgumentError, match="'stretch' is missing; call with state, stretch, wind"):
        motion((X, Y))
    with pytest.raises(ShapeError, match=r"array 1 of the state has shape \(2, 3\)"):
        motion((V, np.zeros((2, 3))), *ARGUMENTS)
    with pytest.raises(ShapeError, match="cotangent has shape"):
        motion((X, Y), *ARGUMENTS).vjp((np.ones(V.shape), None))
