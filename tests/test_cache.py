"""The cache of machine code: nothing is run that somebody else may have written, and nothing is left behind."""

from __future__ import annotations

import os
import stat
import time

import pytest

from geoopt.native import cache

KEY, OTHER = cache.key("one"), cache.key("another")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "programs"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_stored_is_loaded(folder):
    assert cache.load(folder, KEY) is None
    cache.store(folder, KEY, b"code")
    cache.store(folder, OTHER, b"")
    assert cache.load(folder, KEY) == b"code" and cache.load(folder, OTHER) == b""


def test_folders_and_files_are_the_users_alone(folder):
    cache.store(folder, KEY, b"code")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / KEY).stat().st_mode) == 0o600


def test_loops_lie_beside_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("GEOOPT_CACHE_DIR", str(tmp_path / "here"))
    assert cache.programs() == tmp_path / "here" and cache.loops() == tmp_path / "here-loops"
    monkeypatch.delenv("GEOOPT_CACHE_DIR")
    assert cache.programs().name == "geoopt" and cache.loops().name == "geoopt-loops"


# -- what is not used -------------------------------------------------------------------------------------


def test_an_entry_under_another_name_is_none(folder):
    cache.store(folder, KEY, b"code")
    (folder / OTHER).write_bytes((folder / KEY).read_bytes())
    assert cache.load(folder, OTHER) is None


@pytest.mark.parametrize(
    "change", [lambda s: s[:-1], lambda s: s + b"x", lambda s: b"", lambda s: s[:5] + b"?" + s[6:]]
)
def test_what_is_damaged_is_none(folder, change):
    cache.store(folder, KEY, b"code")
    (folder / KEY).write_bytes(change((folder / KEY).read_bytes()))
    assert cache.load(folder, KEY) is None


def test_what_others_may_write_to_is_not_used(folder):
    cache.store(folder, KEY, b"code")
    (folder / KEY).chmod(0o622)
    assert cache.load(folder, KEY) is None
    (folder / KEY).chmod(0o644)
    assert cache.load(folder, KEY) == b"code"
    folder.chmod(0o777)
    with pytest.warns(
        UserWarning, match=r"geoopt's cache .* is not used: others may write to it \(mode 777\); make it"
    ):
        assert cache.load(folder, KEY) is None
    cache.store(folder, OTHER, b"code")  # said once
    assert names(folder) == [KEY]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may give files away")
def test_what_belongs_to_another_user_is_not_used(folder):
    cache.store(folder, KEY, b"code")
    os.chown(folder / KEY, 12345, 12345)
    assert cache.load(folder, KEY) is None
    os.chown(folder, 12345, 12345)
    with pytest.warns(UserWarning, match=r"it belongs to another user \(12345\)"):
        cache.store(folder, OTHER, b"code")
    assert names(folder) == [KEY]


def test_what_is_no_file_is_none(folder, monkeypatch):
    cache.store(folder, KEY, b"code")
    (folder / OTHER).symlink_to(folder / KEY)
    assert cache.load(folder, OTHER) is None
    (folder / OTHER).unlink()
    os.mkfifo(folder / OTHER, 0o600)
    assert cache.load(folder, OTHER) is None  # and does not wait for somebody who writes
    monkeypatch.setattr(cache, "LARGEST", 10)
    assert cache.load(folder, KEY) is None


# -- what is left -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [OSError("no space left on device"), KeyboardInterrupt()], ids=lambda e: type(e).__name__
)
def test_what_cannot_be_stored_leaves_nothing(folder, monkeypatch, error):
    def fails(*paths):
        raise error

    monkeypatch.setattr(os, "replace", fails)
    if isinstance(error, OSError):
        cache.store(folder, KEY, b"code")
    else:
        with pytest.raises(KeyboardInterrupt):
            cache.store(folder, KEY, b"code")
    assert names(folder) == []


def test_what_was_never_finished_goes(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    old, new = folder / f"{cache.UNFINISHED}old", folder / f"{cache.UNFINISHED}new"
    for path in (old, new):
        path.write_bytes(b"part")
    os.utime(old, (time.time() - 2 * cache.HOUR,) * 2)
    cache.store(folder, KEY, b"code")
    assert names(folder) == sorted([KEY, new.name])


def test_what_was_not_used_for_longest_goes(folder, monkeypatch):
    monkeypatch.setattr(cache, "MOST", 10_000)
    keys = [cache.key(str(k)) for k in range(9)]
    for k, key in enumerate(keys):
        cache.store(folder, key, bytes(980))
        os.utime(folder / key, (1000 + k,) * 2)
    assert len(names(folder)) == 9
    assert cache.load(folder, keys[0])  # and so is the one used last
    for key in (KEY, OTHER):
        cache.store(folder, key, bytes(980))
    left = names(folder)
    assert {keys[0], OTHER} < set(left) and keys[1] not in left and len(left) <= 6


def test_its_contents_are_told_and_cleared(folder, tmp_path):
    assert cache.contents(folder) == cache.clear(folder) == (0, 0, 0.0, 0.0)
    cache.store(folder, KEY, b"code")
    cache.store(folder, OTHER, b"")
    os.utime(folder / OTHER, (100, 100))
    (folder / "unfinished-x").touch()
    (folder / "letter.txt").write_text("precious")
    found = cache.contents(folder)
    assert found.files == 3 and found.bytes == 2 * cache.DIGEST + len(b"code")
    assert found.oldest == 100 and abs(found.newest - time.time()) < 60
    assert cache.clear(folder)[:2] == (3, 2 * cache.DIGEST + len(b"code"))
    assert names(folder) == ["letter.txt"]


def test_the_environment_says_how_much_there_may_be(folder, monkeypatch):
    assert cache.most() == cache.MOST
    monkeypatch.setenv("GEOOPT_CACHE_MB", "much")
    assert cache.most() == cache.MOST
    monkeypatch.setenv("GEOOPT_CACHE_MB", "1")
    for age, key in enumerate((KEY, cache.key("a second one"), OTHER)):
        cache.store(folder, key, bytes(400_000))
        os.utime(folder / key, (100 + age, 100 + age)) if key != OTHER else None
    assert names(folder) == [OTHER]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache.store(tmp_path / "file" / "programs", KEY, b"code")
    assert cache.load(tmp_path / "file" / "programs", KEY) is None
