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
        self._new = folder / UNFINISHED
        self._is_alone = False  # whether what an earlier recording left is gone

    def add(self, frame: Frame, draw: Callable[[Path], None] | None = None) -> None:
        """Keep a frame, and its picture, which `draw` writes to a path."""
        if not self.frames:
            self.folder.mkdir(exist_ok=True)
            shutil.rmtree(self._new, ignore_errors=True)
        drawing = Stopwatch()
        if draw is not None:
            (self._new / "frames").mkdir(parents=True, exist_ok=True)
            with drawing.part("drawing"):
                draw(self._new / "frames" / _name(len(self.frames)))
        drawn = {part: frame.seconds.get(part, 0.0) + s for part, s in drawing.seconds.items()}
        self.frames.append(replace(frame, seconds=frame.seconds | drawn))

    def finish(self) -> list[Path]:
        """Write timings.csv and the film, and move all to its place; returns what there is now.

        Where that fails, an earlier recording stays as it is, and the new one in the folder "unfinished".
        """
        self._new.mkdir(exist_ok=True)
        found = [self._write_table()]
        if pictures := self._drawn():
            found += [self._new / "frames"]
            found += [self._write_film(pictures)] if importlib.util.find_spec("imageio") else []
        self._clear()
        written = [self._moved(path) for path in found]
        self._new.rmdir()
        return written

    def medians(self) -> dict[str, float]:
        """The median over all frames of each part [s], 0 in frames that lack it."""
        parts = dict.fromkeys(part for frame in self.frames for part in frame.seconds)
        return {part: float(np.median([f.seconds.get(part, 0.0) for f in self.frames])) for part in parts}

    def _drawn(self) -> list[Path]:
        """The pictures of all frames, of which some have been moved already."""
        ways = ([at / "frames" / _name(i) for at in (self._new, self.folder)] for i in range(len(self.frames)))
        found = (next((p for p in way if p.is_file()), None) for way in ways)
        return [path for path in found if path] if self._is_alone or (self._new / "frames").is_dir() else []

    def _clear(self) -> None:
        """Remove what an earlier recording left; other files stay."""
        if not self._is_alone:
            pictures = [p for p in (self.folder / "frames").glob("*.png") if p.stem.isdigit() and len(p.stem) >= 4]
            for old in (*pictures, *(self.folder / name for name in (TABLE, *FILMS))):
                old.unlink(missing_ok=True)
        self._is_alone = True

    def _moved(self, path: Path) -> Path:
        """A file, or the files of a folder, that are where they belong now."""
        place = self.folder / path.relative_to(self._new)
        if path.is_dir():
            place.mkdir(exist_ok=True)
            for inner in path.iterdir():
                inner.replace(place / inner.name)
            path.rmdir()
        elif path.is_file():
            path.replace(place)
        return place

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

    def _write_film(self, pictures: list[Path]) -> Path:
        imageio: Any = importlib.import_module("imageio.v2")  # its writers have no type in common
        has_encoder = importlib.util.find_spec("imageio_ffmpeg") is not None
        path = self._new / FILMS[0 if has_encoder else 1]
        settings = {"fps": round(1 / FRAME), "macro_block_size": 2} if has_encoder else {"duration": 1000 * FRAME}
        with imageio.get_writer(path, **settings) as film:
            for picture in pictures:
                film.append_data(imageio.imread(picture)[..., :3])
        return path


def _name(number: int) -> str:
    """Of a frame's picture."""
    return f"{number:04d}.png"
