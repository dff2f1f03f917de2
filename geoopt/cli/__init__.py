"""``geoopt ...`` at the command line: a file for each command, or for a few that are alike."""

from __future__ import annotations

import _thread
import functools
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import typer

from ..errors import GeooptError, MeshWarning
from .apps import arap, cloth
from .cached import cache
from .demo import demo
from .parametrize import parametrize
from .partition import partition
from .tools import cotan, coverage, view

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
operator = typer.Typer(no_args_is_help=True)
app.add_typer(operator, name="operator", help="Compute an operator of a mesh and save it.")
for command in (demo, arap, cloth, parametrize, partition, view, coverage, cache):
    app.command()(command)
operator.command()(cotan)


@app.callback()
def geoopt() -> None:
    """geoopt makes NumPy/SciPy-style geometry code fast for one mesh."""


def _warn(show: Callable, message: Warning, category: type[Warning], *where: Any, **more: Any) -> None:
    """Without the line of code, where it is about a mesh, and without what to write instead: commands have no such
    options. show : how other warnings are shown"""
    if issubclass(category, MeshWarning):
        print(f"geoopt: {str(message).partition('; give ')[0]}", file=sys.stderr)
    else:
        show(message, category, *where, **more)


def _interrupt_again(show: Callable, unraisable: Any) -> None:
    """An interrupt that came while a finalizer ran, where nothing can be raised, comes again a little later.

    show : how other exceptions there are shown
    """
    if unraisable.exc_type is KeyboardInterrupt:
        threading.Timer(0.01, _interrupt).start()
    else:
        show(unraisable)


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # ends waiting, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    else:
        _thread.interrupt_main()


def main() -> None:
    """Run the command line; errors of the input, and what is said of it, are one line each, and errors exit with 2.
    SIGTERM ends it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = functools.partial(_interrupt_again, sys.unraisablehook)
    warnings.showwarning = functools.partial(_warn, warnings.showwarning)
    try:
        app(standalone_mode=True)
    except GeooptError as error:
        first, *_ = str(error).splitlines()
        print(f"geoopt: {first}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"geoopt: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
