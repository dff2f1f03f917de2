"""What a run leaves behind: pictures of its frames, a film of them, and a table of what each frame took."""

from __future__ import annotations

import csv
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.apps.simulation import FRAME, Frame
from geoopt.errors import ArgumentError
from geoopt.timing import Stopwatch

FILMS = ("film.mp4", "film.gif")  # with imageio's encoder, and without
TABLE = "timings.csv"


class Recording:
    """Frames, kept in a folder as they come.

    folder : gets frames/0000.png and so on, timings.csv, and film.mp4 or film.gif where imageio is installed
    """

    def __init__(self, folder: Path, force: bool = False):
        """Raises ArgumentError where the folder holds something already, unless `force` lets it be replaced."""
        if not folder.absolute().parent.is_dir():
            raise ArgumentError(f"{folder}: there is no folder {folder.absolute().parent}")
        if folder.exists() and not folder.is_dir():
            raise ArgumentError(f"{folder} is not a folder")
        if folder.exists() and any(folder.iterdir()) and not force:
            raise ArgumentError(f"{folder} exists and is not empty; give another name or --force")
        self.folder = folder
        self.frames: list[Frame] = []

    def add(self, frame: Frame, draw: Callable[[Path], None] | None = None) -> None:
        """Keep a frame, and its picture, which `draw` writes to a path."""
        number = len(self.frames)
        if not number:
            self._clear()
        drawing = Stopwatch()
        if draw is not None:
            self._pictures.mkdir(exist_ok=True)
            with drawing.part("drawing"):
                draw(self._pictures / f"{number:04d}.png")
        drawn = {part: frame.seconds.get(part, 0.0) + s for part, s in drawing.seconds.items()}
        self.frames.append(replace(frame, seconds=frame.seconds | drawn))

    def finish(self) -> list[Path]:
        """Write timings.csv and the film; returns what there is now."""
        written = [self._write_table()]
        if self._pictures.is_dir():
            written.append(self._pictures)
            written += [self._write_film()] if importlib.util.find_spec("imageio") else []
        return written

    def medians(self) -> dict[str, float]:
        """The median over all frames of each part [s], 0 in frames that lack it."""
        parts = dict.fromkeys(part for frame in self.frames for part in frame.seconds)
        return {part: float(np.median([f.seconds.get(part, 0.0) for f in self.frames])) for part in parts}

    @property
    def _pictures(self) -> Path:
        return self.folder / "frames"

    def _own_pictures(self) -> list[Path]:
        found = [p for p in self._pictures.glob("*.png") if p.stem.isdigit() and len(p.stem) >= 4]
        return sorted(found, key=lambda p: int(p.stem))

    def _clear(self) -> None:
        """Remove what an earlier recording left; other files stay."""
        self.folder.mkdir(exist_ok=True)
        for old in (*self._own_pictures(), *(self.folder / name for name in (TABLE, *FILMS))):
            old.unlink(missing_ok=True)

    def _write_table(self) -> Path:
        rows = [
            {
                "frame": i,
                "time [s]": (i + 1) * FRAME,
                **{f"{part} [s]": s for part, s in f.seconds.items()},
                **f.measures,
            }
            for i, f in enumerate(self.frames)
        ]
        path = self.folder / TABLE
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def _write_film(self) -> Path:
        imageio: Any = importlib.import_module("imageio.v2")  # its writers have no type in common
        has_encoder = importlib.util.find_spec("imageio_ffmpeg") is not None
        path = self.folder / FILMS[0 if has_encoder else 1]
        settings = {"fps": round(1 / FRAME), "macro_block_size": 2} if has_encoder else {"duration": 1000 * FRAME}
        with imageio.get_writer(path, **settings) as film:
            for picture in self._own_pictures():
                film.append_data(imageio.imread(picture)[..., :3])
        return path
