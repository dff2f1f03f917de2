"""Ctrl-C at any moment of a trace leaves NumPy, SciPy and Python as they were, and the next trace works."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.sparse.constructors import FUNCTIONS
from geoopt.trace import trace
from geoopt.trace.interrupts import allowed, held

X = np.linspace(1.0, 2.0, 5)
FILES = ("trace/substitutes.py", "trace/interrupts.py", "trace/__init__.py", "sparse/constructors.py", "contextlib.py")


@pytest.fixture(autouse=True)
def _pythons_handler():
    """Also where tests run in the background, whose interrupts a shell ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def function(x):
    y = np.zeros_like(x)
    y[1:] = np.concatenate([x[:2], x[3:]]) * math.sqrt(x[0])
    return sp.diags(y) @ x + max(x[0], x[1])


def names():
    """All that traces may set."""
    found = {
        f"{home.__name__}.{name}": value
        for home in (np, np.linalg, np.random, math)
        for name, value in vars(home).items()
    }
    return found | {f"sp.{name}": getattr(sp, name).__code__ for name in FUNCTIONS} | {"sqrt here": math.sqrt}


class At:
    """Raises an interrupt at one of the lines that some files of geoopt run; counts them."""

    def __init__(self, line):
        self.line, self.lines = line, 0

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.line:
                signal.raise_signal(signal.SIGINT)
        return self

    def run(self):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            trace(function, (X,))
        finally:
            sys.settrace(before)


def test_interrupts_leave_nothing_behind():
    trace(function, (X,))
    before, want = names(), str(trace(function, (X,))[0])
    whole = At(0)
    whole.run()
    interrupted = 0
    for line in range(1, whole.lines + 1, 7):
        try:
            At(line).run()
        except KeyboardInterrupt:
            interrupted += 1
        changed = [name for name, value in names().items() if before[name] is not value]
        assert not changed, f"line {line} of {whole.lines}"
        assert not getattr(geoopt.sparse.constructors.TRACING, "depth", 0)
        if line % 5 == 1:
            assert str(trace(function, (X,))[0]) == want
    assert interrupted > 0.9 * whole.lines / 7  # one after the last name was put back may have no line to come at


def test_what_waits_comes_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with held():
            signal.raise_signal(signal.SIGINT)
            done.append("held")
    assert done == ["held"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_waits_comes_where_it_is_allowed():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with held():
            signal.raise_signal(signal.SIGINT)
            with held(), allowed():
                done.append("never")
    assert not done


def test_traces_of_other_threads_and_of_programs_with_handlers_of_their_own():
    done = []
    thread = threading.Thread(target=lambda: done.append(trace(function, (X,))))
    thread.start()
    thread.join()
    assert len(done) == 1
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert str(trace(function, (X,))[0]) == str(done[0][0])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_ends_at_a_signal_that_comes_while_a_finalizer_runs():
    script = """if True:
        import signal, time
        from geoopt import cli

        class Dying:
            def __del__(self):
                signal.raise_signal(signal.SIGTERM)

        def command(**how):
            Dying()
            time.sleep(10)
            print("went on")

        cli.app = command
        cli.main()
    """
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode and "KeyboardInterrupt" in ended.stderr and "went on" not in ended.stdout
