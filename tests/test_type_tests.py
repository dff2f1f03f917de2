"""Code that asks for types takes the branch that it takes with NumPy's arrays and floats."""

from __future__ import annotations

import numbers
from functools import singledispatch

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt

X = np.array([[1.5, -2.0], [0.25, 3.0]])
QUESTIONS = {
    "an array is an ndarray": lambda x: isinstance(x, np.ndarray),
    "a comparison is an ndarray": lambda x: isinstance(x > 1, np.ndarray),
    "an array is no float": lambda x: isinstance(x, (float, numbers.Number)),
    "an array is no scalar": np.isscalar,
    "a number is a float": lambda x: isinstance(x[0, 0], float),
    "a number is one of NumPy's": lambda x: isinstance(x[0, 0], (np.floating, np.generic)),
    "a number is real": lambda x: isinstance(x[0, 0] + 1, numbers.Real),
    "a number is no int": lambda x: isinstance(x[0, 0], (int, np.integer, numbers.Integral)),
    "a number is no array": lambda x: isinstance(x[0, 0], np.ndarray),
    "a number is a scalar": lambda x: np.isscalar(x.sum()),
    "neither is a matrix": lambda x: isinstance(x, np.matrix) or sp.issparse(x),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_traced_values_pass_for_what_they_stand_for(question):
    asked = QUESTIONS[question]
    answers = []
    geoopt.compile(lambda x: answers.append(asked(x)) or x, X)
    assert answers == [asked(X)]


@singledispatch
def norm(x):
    raise TypeError(type(x))


@norm.register
def _(x: np.ndarray):
    return np.sqrt(np.sum(x * x))


@norm.register
def _(x: float):
    return abs(x)


def test_functions_of_one_type_each_are_chosen():
    def both(x):
        return norm(x), norm(x[0, 1])

    np.testing.assert_allclose(geoopt.compile(both, X)(2 * X), both(2 * X), rtol=1e-14)


def test_scipy_does_not_take_them_for_its_own():
    A = sp.csr_array(np.arange(4.0).reshape(2, 2))

    def products(x):
        return A @ x, A @ x[0], x @ A, A.dot(x), A.maximum(x), (A * x[0, 0]).toarray(), A.power(x[1, 0]).toarray()

    for got, want in zip(geoopt.compile(products, X)(X), products(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


class Field(np.ndarray):
    """As finite element libraries have them: values with a gradient."""

    unit = "m"

    def __new__(cls, values, grad=None):
        made = np.asarray(values).view(cls)
        made.grad = grad
        return made

    def __array_finalize__(self, obj):
        self.grad = getattr(obj, "grad", None)

    def doubled(self):
        return 2 * self

    @property
    def steepest(self):
        return np.max(self.grad)


class Made(np.ndarray):
    """As NumPy's documentation makes them."""

    def __new__(cls, shape, dtype=float, buffer=None, offset=0, strides=None, order=None, *, info=None):
        made = super().__new__(cls, shape, dtype, buffer, offset, strides, order)
        made.info = info
        return made

    def __array_finalize__(self, obj):
        if obj is not None:
            self.info = getattr(obj, "info", None)


class Rotation(np.ndarray):
    def __new__(subtype, q, **kwargs):
        q = np.array(q, dtype=float)
        q /= np.linalg.norm(q)
        made = super(Rotation, subtype).__new__(subtype, q.shape, float, q)  # noqa: UP008 - as many write it
        made.A = q
        return made

    def __array_finalize__(self, obj):
        self.A = getattr(obj, "A", np.array([1.0, 0, 0, 0]))

    def conjugate(self):
        return self.A * np.array([1.0, -1, -1, -1])

    def dot(self, other):
        raise NotImplementedError("NumPy's functions do not call it")


class Tracked(np.ndarray):
    def __hash__(self):
        return hash(self.tobytes())


def test_subclasses_of_arrays_keep_attributes_and_methods():
    def function(x):
        u = Field(x, 2 * x)
        assert isinstance(u, Field) and isinstance(u, np.ndarray) and u.unit == "m"
        return u.grad + u * 3 + u.doubled() + u.steepest + np.asarray(u).sum() + np.sqrt(u) + u[1:2]

    x = np.linspace(0.5, 2.0, 5)
    np.testing.assert_allclose(geoopt.compile(function, x)(x), np.asarray(function(x)), rtol=1e-14)


def test_subclasses_that_are_made_of_memory_share_it():
    def function(x):
        part, q, known = Made((2, 2), buffer=x, info=3), Rotation(x), Made((2,), buffer=np.array([1.0, 2.0]))
        part[0, 0] += 1
        q[1] *= 2
        assert (
            isinstance(q[1:] + 1, Rotation) and part.T[0].info == (part * 2).reshape(-1).info == 3 == part.copy().info
        )
        assert not isinstance(np.cross(q[1:], q[1:]), Rotation) and not isinstance(np.asarray(q), Rotation)
        assert isinstance(q, Rotation) and part.info == 3 and known.info is None
        seen = x.view(Field)
        seen[2] = 0.5
        numbers = known.sum() * x[0], np.linalg.norm(q), np.dot(q, q)
        return part.info * part, q.conjugate(), (q * 2).conjugate(), x, *numbers

    x = np.linspace(0.5, 2.0, 4)
    for got, wanted in zip(geoopt.compile(function, x)(x.copy()), function(x.copy()), strict=True):
        np.testing.assert_allclose(got, np.asarray(wanted), rtol=1e-14)
    assert "super" not in globals()
    for layout, why in (((0, None, "F"), "memory, and an offset"), ((8,), "memory, and an offset")):
        with pytest.raises(geoopt.UnsupportedError, match=why):
            geoopt.compile(lambda x, layout=layout: np.asarray(Made((2,), float, x, *layout)), x)
    with pytest.raises(geoopt.ShapeError, match="is made of 4 numbers"):
        geoopt.compile(lambda x: np.asarray(Made((2, 3), float, x)), x)


def test_subclasses_that_read_memory_are_refused_by_name():
    with pytest.raises(
        geoopt.UnsupportedError, match=r"test_type_tests.Tracked, which reads .*\n.*\n  hand in the arrays"
    ):
        geoopt.compile(lambda x: x.view(Tracked) * 2, np.ones(3))


def test_numbers_have_no_elements():
    def of_rows(x):
        return np.stack([sum(row) if hasattr(row, "__iter__") or hasattr(row, "__len__") else row * 2 for row in x])

    for x in (np.ones(3), np.ones((3, 2))):
        np.testing.assert_array_equal(geoopt.compile(of_rows, x)(x), of_rows(x))


def test_code_that_asks_for_the_type_itself(tmp_path):
    path = tmp_path / "asking.py"
    path.write_text(
        "import numpy as np\n"
        "def checked(x, k=2):\n"
        "    if type(x) is not np.ndarray or type(x[0, 0]) != np.float64 or type(k) is not int:\n"
        "        raise ValueError(type(x).__name__)\n"
        "    return x @ x.T\n"
    )
    names: dict = {"__name__": "asking"}
    exec(compile(path.read_text(), path, "exec"), names)
    checked = names["checked"]
    np.testing.assert_allclose(geoopt.compile(lambda x: checked(2 * x), X)(3 * X), checked(6 * X), rtol=1e-14)
    assert "type" not in names
    with pytest.raises(ValueError, match="ndarray"):
        geoopt.compile(lambda x: checked(x, 1.5), X)
