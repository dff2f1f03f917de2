"""What `parameter_sweep.py` and `thousand_meshes.py` run on: joblib, Dask or Ray, as they are.

    with engine("dask", workers=2) as each:
        for result in each(function, items, *shared):
            ...

gives ``function(*shared, item)`` for each item, computed by worker processes of one thread, in the order in which they
finish. What all items share goes to a worker once on Dask and Ray, and with each batch of items on joblib.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any

Each = Callable[..., Iterator[Any]]


@contextmanager
def on_joblib(workers: int) -> Iterator[Each]:
    """Its processes are those of loky. One that is killed ends all, with a BrokenProcessPool."""
    from joblib import Parallel, delayed, parallel_config

    def each(function: Callable, items: Iterable, *shared: Any) -> Iterator[Any]:
        with parallel_config("loky", inner_max_num_threads=1):
            calls = (delayed(function)(*shared, item) for item in items)
            yield from Parallel(n_jobs=workers, return_as="generator_unordered")(calls)

    yield each


@contextmanager
def on_dask(workers: int) -> Iterator[Each]:
    """A cluster on this machine; ``Client("tcp://scheduler:8786")`` would be one that runs. What a killed worker has
    lost is computed again."""
    from dask.distributed import Client, as_completed

    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:

        def each(function: Callable, items: Iterable, *shared: Any) -> Iterator[Any]:
            there = [client.submit(itself, value, pure=False) for value in shared]  # what is scattered may be lost
            futures = [client.submit(function, *there, item, pure=False) for item in items]
            for future in as_completed(futures):
                yield future.result()

        yield each


@contextmanager
def on_ray(workers: int) -> Iterator[Each]:
    """A cluster on this machine; ``ray.init("auto")`` would be one that runs. Tasks of killed workers run again."""
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")

    def each(function: Callable, items: Iterable, *shared: Any) -> Iterator[Any]:
        there = [ray.put(value) for value in shared]
        remote = ray.remote(max_retries=3)(function)
        pending = [remote.remote(*there, item) for item in items]
        while pending:
            done, pending = ray.wait(pending)
            yield from ray.get(done)

    try:
        yield each
    finally:
        ray.shutdown()


def itself(value: Any) -> Any:
    return value


ENGINES = {"joblib": on_joblib, "dask": on_dask, "ray": on_ray}
PACKAGES = {"joblib": ("joblib",), "dask": ("dask", "distributed"), "ray": ("ray",)}


def engine(name: str, workers: int) -> AbstractContextManager[Each]:
    """One of `ENGINES`; ends the program, and says why, where it is not installed."""
    missing = [package for package in PACKAGES[name] if find_spec(package) is None]
    if missing:
        sys.exit(f"--on {name}: {' and '.join(missing)} not found; pip install {' '.join(missing)}, or choose another")
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # of what workers prepare; joblib sets it itself
    return ENGINES[name](workers)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--on", choices=ENGINES, default="joblib")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
