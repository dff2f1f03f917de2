"""The syntax of files with traced code."""

from __future__ import annotations

import ast
import gc
import sys
import threading

import pytest

from geoopt.sources import syntax_of


class Switching:
    """In a circle, so that it dies while garbage is collected; other threads run meanwhile."""

    def __init__(self):
        self.circle = self

    def __del__(self):
        sum(range(200))


@pytest.fixture
def hurried():
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-5)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def test_threads_that_parse_at_a_time_get_what_one_gets(hurried):
    source = "\n".join(f"def f{i}(x):\n    return [x * {i} if x < {i} else -x for _ in range({i})]" for i in range(200))
    want, failed = ast.dump(ast.parse(source)), []

    def parse():
        for _ in range(5):
            Switching()
            try:
                assert ast.dump(syntax_of(source)) == want
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_what_is_no_python_is_refused():
    with pytest.raises(SyntaxError):
        syntax_of("def f(:")
