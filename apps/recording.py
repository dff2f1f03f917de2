"""What a run leaves behind: pictures of its frames, a film of them, and a table of what each frame took.

All of it is written in a folder within the recording's, and moved when all is there: an earlier recording stays until
then.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import shutil
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
UNFINISHED = "unfinished"


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
        self._pictures: list[Path] = []
        self._new = folder / UNFINISHED

    def add(self, frame: Frame, draw: Callable[[Path], None] | None = None) -> None:
        """Keep a frame, and its picture, which `draw` writes to a path."""
        if not self.frames:
            self.folder.mkdir(exist_ok=True)
            shutil.rmtree(self._new, ignore_errors=True)
        drawing = Stopwatch()
        if draw is not None:
            picture = self._new / "frames" / f"{len(self.frames):04d}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            with drawing.part("drawing"):
                draw(picture)
            self._pictures.append(picture)
        drawn = {part: frame.seconds.get(part, 0.0) + s for part, s in drawing.seconds.items()}
        self.frames.append(replace(frame, seconds=frame.seconds | drawn))

    def finish(self) -> list[Path]:
        """Write timings.csv and the film, and move all to its place; returns what there is now.

        Where that fails, an earlier recording stays as it is, and the new one in the folder "unfinished".
        """
        self._new.mkdir(exist_ok=True)
        table = self._write_table()
        film = self._write_film() if self._pictures and not self.lacks_film else None
        self._clear()
        self._pictures = [self._moved(path) for path in self._pictures]
        written = [self._moved(table)]
        if self._pictures:
            written.append(self.folder / "frames")
        if film:
            written.append(self._moved(film))
        shutil.rmtree(self._new)
        return written

    @property
    def lacks_film(self) -> bool:
        """Whether there are pictures, but nothing that makes a film of them."""
        return bool(self._pictures) and not importlib.util.find_spec("imageio")

    def medians(self) -> dict[str, float]:
        """The median over all frames of each part [s], 0 in frames that lack it."""
        parts = dict.fromkeys(part for frame in self.frames for part in frame.seconds)
        return {part: float(np.median([f.seconds.get(part, 0.0) for f in self.frames])) for part in parts}

    def _clear(self) -> None:
        """Remove what an earlier recording left; other files stay, and so do pictures that have been moved already."""
        pictures = {p for p in (self.folder / "frames").glob("*.png") if p.stem.isdigit() and len(p.stem) >= 4}
        for old in (*pictures.difference(self._pictures), *(self.folder / name for name in (TABLE, *FILMS))):
            old.unlink(missing_ok=True)

    def _moved(self, path: Path) -> Path:
        """Where a file is, once it has been moved to its place."""
        if not path.is_relative_to(self._new):
            return path
        place = self.folder / path.relative_to(self._new)
        place.parent.mkdir(exist_ok=True)
        return path.replace(place)

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
        path = self._new / TABLE
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def _write_film(self) -> Path:
        imageio: Any = importlib.import_module("imageio.v2")  # its writers have no type in common
        has_encoder = importlib.util.find_spec("imageio_ffmpeg") is not None
        path = self._new / FILMS[0 if has_encoder else 1]
        settings = {"fps": round(1 / FRAME), "macro_block_size": 2} if has_encoder else {"duration": 1000 * FRAME}
        with imageio.get_writer(path, **settings) as film:
            for picture in self._pictures:
                film.append_data(imageio.imread(picture)[..., :3])
        return path
