"""Threads share tasks: each runs once, after those of the phases before; the caller waits for what was begun only."""

from __future__ import annotations

import ctypes
import multiprocessing
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.codegen.llvm.crew import ASLEEP, HELPER
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.runtime import cpu
from geoopt.runtime.crew import Crew, Work

KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64))
MOST = 3
LONG = 60  # seconds, after which a test fails rather than to wait


def new_crew(size: int = MOST) -> Crew:
    run, lead, help_ = cpu._sharing()[1]
    return Crew(run, lead, help_, size)


@pytest.fixture(scope="module")
def helped():
    return new_crew()


class Recorded:
    """Work whose only kernel is Python's: what ran, and in which thread.

    shares : see `Schedule`;  during : called with the number of each task, by the thread that runs it
    """

    def __init__(self, shares, helpers=MOST, during=lambda task: None):
        self.ran, shares = [], np.array(shares)

        def run(buffers, task):
            self.ran.append(("begin", task[1], threading.get_ident()))
            assert buffers[0] == 17
            during(task[1])
            self.ran.append(("end", task[1], threading.get_ident()))

        self._kernel = KERNEL(run)  # in memory as long as this is
        tasks = np.array([(0, t) for t in range(shares.max(initial=0))], np.int64).reshape(-1, 2)
        self.work = Work(np.array([[ctypes.cast(self._kernel, ctypes.c_void_p).value, 1]]), tasks, shares, helpers)

    def by(self, crew: Crew) -> Recorded:
        buffers = np.array([0, 17])
        crew.run(self.work, buffers.ctypes.data)
        return self

    def tasks(self, what: str = "begin") -> list[int]:
        return [task for kind, task, _ in self.ran if kind == what]

    def threads(self) -> list[int]:
        return [thread for kind, _, thread in sorted(self.ran, key=lambda r: r[1]) if kind == "begin"]


def check_order(found: Recorded, shares: list[list[int]]) -> None:
    assert sorted(found.tasks()) == sorted(found.tasks("end")) == list(range(max(map(max, shares), default=0)))
    place = {record[:2]: number for number, record in enumerate(found.ran)}
    thread = found.threads()
    for before, after in pairwise(shares):
        begun = [place["begin", t] for t in range(after[0], after[-1])]
        assert max(place["end", t] for t in range(before[0], before[-1])) < min(begun)
    for begin, end in (part for shared in shares for part in pairwise(shared)):
        assert len(set(thread[begin:end])) <= 1
        assert all(place["end", t] < place["begin", t + 1] for t in range(begin, end - 1))


@st.composite
def shares_of(draw):
    """Of some phases, none of them empty, shared by some workers."""
    workers, begin, shares = draw(st.integers(1, MOST + 1)), 0, []
    for sizes in draw(st.lists(st.lists(st.integers(0, 3), min_size=workers, max_size=workers), max_size=6)):
        if sum(sizes):
            shares.append([begin, *(begin + np.cumsum(sizes)).tolist()])
            begin = shares[-1][-1]
    return shares


@given(shares=shares_of(), helpers=st.integers(0, MOST))
def test_every_task_runs_once_after_the_phases_before(helped, shares, helpers):
    if shares:
        check_order(Recorded(shares, helpers).by(helped), shares)


def test_nothing_to_do_is_done(helped):
    assert Recorded(np.zeros((0, 3), int)).by(helped).ran == []


def test_parts_are_begun_by_several_threads_at_once(helped):
    """Each part of the first phase waits for all others."""
    meeting = threading.Barrier(MOST + 1, timeout=LONG)
    shares = [[0, 1, 2, 3, 4], [4, 4, 4, 8, 8]]
    found = Recorded(shares, during=lambda task: meeting.wait() if task < 4 else None).by(helped)
    assert not meeting.broken and len(set(found.threads()[:4])) == MOST + 1
    check_order(found, shares)


def test_what_was_begun_is_waited_for(helped):
    """The caller goes on while another thread is in its part, but to no other phase, and not home."""
    caller, begun = threading.get_ident(), threading.Event()

    def during(task):
        if threading.get_ident() == caller and task < 2:
            assert begun.wait(LONG)  # until a helper has begun the other part
        elif task < 2:
            begun.set()
            time.sleep(0.05)

    found = Recorded([[0, 1, 2], [2, 3, 4]], helpers=1, during=during).by(helped)
    assert len(set(found.threads()[:2])) == 2
    check_order(found, [[0, 1, 2], [2, 3, 4]])


@pytest.mark.parametrize("why", ["is not scheduled", "cannot be had"])
def test_a_helper_that_never_comes_is_not_waited_for(monkeypatch, why):
    def start(thread):
        if why == "cannot be had":
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    crew, shares = new_crew(), [[0, 2, 4, 6], [6, 7, 7, 9]]
    for _ in range(3):
        found = Recorded(shares).by(crew)
        check_order(found, shares)
        assert set(found.threads()) == {threading.get_ident()}


def test_a_helper_that_comes_late_finds_nothing_of_calls_that_are_over(monkeypatch):
    waiting = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: waiting.append(thread))
        crew = new_crew(1)
        Recorded([[0, 2, 4]], helpers=1).by(crew)  # whose memory may be gone by now
    waiting[0].start()
    meeting = threading.Barrier(2, timeout=LONG)
    found = Recorded([[0, 1, 2]], helpers=1, during=lambda task: meeting.wait()).by(crew)
    assert len(set(found.threads())) == 2


def test_callers_at_once_do_not_wait_for_each_other():
    crew, inside, may_leave = new_crew(1), threading.Event(), threading.Event()

    def during(task):
        inside.set()
        assert may_leave.wait(LONG)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: Recorded([[0, 1, 2]], helpers=1, during=during).by(crew))
        assert inside.wait(LONG)
        second = Recorded([[0, 2, 4]], helpers=1).by(crew)  # by its caller alone
        assert set(second.threads()) == {threading.get_ident()} and not first.done()
        may_leave.set()
        check_order(first.result(), [[0, 1, 2]])


def test_helpers_sleep_when_nobody_calls(helped):
    meeting = threading.Barrier(MOST + 1, timeout=LONG)
    Recorded([[0, 1, 2, 3, 4]], during=lambda task: meeting.wait()).by(helped)
    end = time.monotonic() + LONG
    while not helped._helpers[ASLEEP::HELPER].all() and time.monotonic() < end:
        time.sleep(0.001)
    assert helped._helpers[ASLEEP::HELPER].tolist() == [1] * MOST


V, F = bumpy(5000)


@pytest.fixture
def crew_of_many(monkeypatch):
    """As on a machine of eight cores."""
    monkeypatch.setattr(cpu, "_most_helpers", lambda: 7)
    cpu._crew.cache_clear()
    yield
    cpu._crew.cache_clear()


def laplacians(count: int, threads: int) -> list[np.ndarray]:
    program = geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(threads=threads))
    return [np.concatenate([m.data for m in program((1 + k) * V)]) for k in range(count)]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_programs_give_the_same_bits_on_busy_cores(crew_of_many, threads):
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        np.testing.assert_array_equal(laplacians(50, threads), laplacians(50, 1))
    finally:
        for process in others:
            process.kill()
            process.wait()


def test_many_callers_of_programs_with_helpers(crew_of_many):
    program = geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(threads=3))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: program((1 + k) * V)[0].data, [0, 1] * 50))
    for k in (0, 1):
        np.testing.assert_array_equal(found[k::2], [program((1 + k) * V)[0].data] * 50)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_a_forked_process_has_helpers_of_its_own(crew_of_many):
    mine = laplacians(3, 2)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found, helpers = pool.apply(in_the_child)
    np.testing.assert_array_equal(found, mine)
    assert helpers == 1


def in_the_child() -> tuple[list[np.ndarray], int]:
    before = cpu._crew.cache_info().currsize
    return laplacians(3, 2), cpu._crew()._started if not before else -1
