"""Threads that share the tasks of calls; `geoopt.codegen.llvm.crew` says how."""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from ..codegen.llvm.crew import BELL, BOARD, HELPER, HELPERS, NEVER, WORDS
from ..plan import KERNEL

_Address, _Number = ctypes.c_void_p, ctypes.c_int64
_new_lock = ctypes.PYFUNCTYPE(_Address)(("PyThread_allocate_lock", ctypes.pythonapi))
_acquire = ctypes.PYFUNCTYPE(ctypes.c_int, _Address, ctypes.c_int)(("PyThread_acquire_lock", ctypes.pythonapi))


class Work:
    """The tasks of a program, as threads read them.

    kernels : (kernels, 2) of each, the address of its function and where its buffers begin among those of a call
    tasks : (tasks, fields) in running order; the first field is the kernel
    shares : (phases, workers + 1) see `Schedule`;  helpers : the most that may help
    """

    def __init__(self, kernels: np.ndarray, tasks: np.ndarray, shares: np.ndarray, helpers: int):
        # where parts begin, none of them empty, and the end; of phases, the first part, and the end
        bounds = np.unique(shares)
        first = np.searchsorted(bounds, np.append(shares[:, 0], shares[-1:, -1]))
        self.count, self.helpers = len(tasks), helpers if len(bounds) > len(first) else 0
        self._arrays = kernels, tasks, bounds, first  # stay in memory
        places = [a.ctypes.data for a in self._arrays]
        places.insert(2, tasks.shape[1])
        self._words = np.array([*places, len(first) - 1, self.helpers], np.int64)
        self.address = self._words.ctypes.data

    def of_kernel(self, number: int) -> Work:
        """The tasks of one kernel, for one thread: to measure what it takes."""
        kernels, tasks = self._arrays[:2]
        own = np.ascontiguousarray(tasks[tasks[:, KERNEL] == number])
        return Work(kernels, own, np.array([[0, len(own)]]), 0)

    def of_batch(self, groups: list[int], buffers: int, helpers: int) -> Work:
        """The same for the items of a batch, group by group. buffers : of the kernels of one item"""
        kernels, tasks = self._arrays[:2]
        items = np.arange(sum(groups))
        own = np.tile(kernels, (len(items), 1))
        own[:, 1] += np.repeat(items * buffers, len(kernels))
        of_items = np.tile(tasks, (len(items), 1))
        of_items[:, KERNEL] += np.repeat(items * len(kernels), len(tasks))
        shares = np.cumsum([0, *groups]) * len(tasks)
        return Work(own, of_items, shares[None], helpers)


class Crew:
    """Helpers for one call at a time, started when they are first wanted, asleep between calls.

    run, lead, help_ : addresses of their functions;  size : the most helpers
    """

    def __init__(self, run: int, lead: int, help_: int, size: int):
        # all of them without the interpreter's lock
        self._run = ctypes.CFUNCTYPE(None, _Address, _Address, _Number, _Number)(run)
        self._lead = ctypes.CFUNCTYPE(None, _Address, _Address, _Address)(lead)
        self._help = ctypes.CFUNCTYPE(None, _Address, _Address)(help_)
        self.size, self._started = size, 0
        self._helpers = _lines(size * HELPER)
        self._helpers[BELL::HELPER] = [_taken_lock() for _ in range(size)]
        self._board = _lines(BOARD)
        self._board[[HELPERS, NEVER]] = self._helpers.ctypes.data, _taken_lock()
        self._address = self._board.ctypes.data
        self._is_led = threading.Lock()

    def run(self, work: Work, buffers: int) -> None:
        """Run all tasks: alone where that was asked for, or while the helpers help another call.

        buffers : the address of the kernels' buffers, an address each
        """
        if not work.helpers or not self._is_led.acquire(blocking=False):
            self._run(work.address, buffers, 0, work.count)
            return
        try:
            if self._started < work.helpers:
                self._start(work.helpers)
            self._lead(self._address, work.address, buffers)
        finally:
            self._is_led.release()

    def _start(self, helpers: int) -> None:
        """Have so many helpers, or as many as the system gives: calls do without them."""
        for number in range(self._started, helpers):
            place = self._helpers.ctypes.data + number * HELPER * self._helpers.itemsize
            thread = threading.Thread(target=self._help, args=(self._address, place), daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return
            self._started = number + 1


def _lines(words: int) -> np.ndarray:
    """Zeros that begin with a line of memory."""
    block = np.zeros(words + WORDS, np.int64)
    first = -block.ctypes.data // block.itemsize % WORDS
    return block[first : first + words]


def _taken_lock() -> int:
    """The address of a lock, for ever: helpers may sleep on it until the process ends."""
    lock = _new_lock()
    _acquire(lock, 1)
    return lock
