"""Libraries that read mesh files: without what they write to the terminal on the way, with what they do not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def know_vtk_types() -> None:
    """VTK 9 names integers of files of its older versions by their bits, and numbers of points, which it writes as 32
    bits, by another name; meshio's reader of these versions has the older names."""
    from meshio.vtk import _vtk_42

    sized = {f"vtktype{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
    _vtk_42.vtk_to_numpy_dtype_name.update(sized | {"vtkIdType": "int32", "vtkidtype": "int32"})


@contextmanager
def quiet() -> Iterator[None]:
    """trimesh logs tracebacks of what it then does without."""
    import trimesh

    log = trimesh.util.log
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
