"""Files that the command line writes are whole, and have the mode that the user's new files have."""

from __future__ import annotations

import os
import stat

import pytest

from geoopt.output import beside, write_whole


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_mode_that_the_umask_asks_for(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "file", lambda file: file.write(b"all"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_is_not_finished_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(type(error)) as raised:
        with beside(path) as new:
            assert new.parent == tmp_path and new.suffix == ".txt"
            new.write_text("half")
            raise error
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]
    if isinstance(error, OSError):
        assert raised.value.filename == str(path)
