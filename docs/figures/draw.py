"""Draw all pictures of the documentation, or those that are named: `make figures`.

GEOOPT_MESHES : the folder with armadillo.obj, of github.com/libigl/libigl-tutorial-data
"""

from __future__ import annotations

import sys
from pathlib import Path

import charts
import diagrams
import surfaces

FIGURES = {
    "six_triangles.svg": diagrams.six_triangles,
    "two_kernels.svg": diagrams.two_kernels,
    "cotan.svg": charts.cotan,
    "existing.svg": charts.existing,
    "scaling.svg": charts.scaling,
    "bumpy.webp": surfaces.first,
    "meshes.webp": surfaces.generated,
    "flow.webp": surfaces.flow,
    "parametrize.webp": surfaces.layout,
    "parts.webp": surfaces.parts,
    "readme.webp": surfaces.readme,
}

if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "pictures"
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name](folder / name)
        print(f"{folder / name}: {(folder / name).stat().st_size / 1000:.0f} kB")
