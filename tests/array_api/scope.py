"""What of the array API's tests is out of geoopt's scope, and why: a pytest plugin that skips it.

Besides, single examples of a test are not drawn where they overstep limits of geoopt: see `array.BEYOND`.
"""

from __future__ import annotations

import re

import pytest

_ROUNDING = "floor|ceil|trunc|round|floor_divide|remainder|__i?(floordiv|mod)__"
_SIGNS = "signbit|copysign|nextafter"
_ITERATED = "eigh?|eigvalsh|eigvals|qr|svd|svdvals|matrix_rank|pinv"

# a reason, and the tests, as regular expressions for all of "file::test" or "file::test[parameter"
OUT_OF_SCOPE = {
    "rounding is no operation of geoopt": (
        rf"test_operators_and_elementwise_functions::test_({_ROUNDING})",
        rf"test_operators_and_elementwise_functions::test_binary_with_scalars_\w+\[({_ROUNDING})",
        rf"test_special_cases::test_\w+\[({_ROUNDING})",
    ),
    "signs of zeros and of NaN, and last bits, are not promised: kernels are compiled with fast-math flags": (
        rf"test_operators_and_elementwise_functions::test_({_SIGNS})",
        rf"test_operators_and_elementwise_functions::test_binary_with_scalars_real\[({_SIGNS})",
        rf"test_special_cases::test_\w+\[({_SIGNS})",
    ),
    "the result would be indices, a count or an order, which are structure and must be known while tracing": (
        "test_sorting_functions::.*",
        "test_set_functions::.*",
        "test_searching_functions::test_(argmax|argmin|count_nonzero|nonzero|searchsorted.*)",
    ),
    "needs iterations or pivots, whose number or order depend on the values": (rf"test_linalg::test_({_ITERATED})",),
    "geoopt has no Fourier transforms": ("test_fft::.*",),
    "complex numbers are NumPy's": (r"test_special_cases::test_unary\[\w+\(.*\b(real|imag)\(x_i\).*",),
    "about types, devices and signatures, which are NumPy's": (
        r"test_data_type_functions::test_(finfo|iinfo)",
        r"test_inspection_functions::TestInspection::test_devices",
        r"test_signatures::test_func_signature\[(clip|sort|argsort)",
        r"test_signatures::test_extension_func_signature\[fft\.r?fftfreq",
    ),
}


def reason(node: str) -> str | None:
    """Why a test is out of scope, if it is: its pattern covers the name as far as a parameter or its arguments."""
    name = re.sub(r"^(?:[\w.-]*/)*(\w+)\.py(::.*?)\]?$", r"\1\2", node)
    covered = (why for why, tests in OUT_OF_SCOPE.items() for t in tests if re.fullmatch(rf"({t})([\[(].*)?", name))
    return next(covered, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if why := reason(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=why))
