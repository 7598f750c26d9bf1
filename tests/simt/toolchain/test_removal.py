"""Is a folder removed whatever lies in it, and nothing outside of it touched?"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from simt.toolchain import cache
from simt.toolchain.removal import remove_tree

DEEP = 1200  # more than Python's recursion and the descriptors of a process allow


def make_deep(folder: Path, depth: int = DEEP) -> None:
    """Make a chain of folders with a file in each, deeper than a path can be."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def make_odd(folder: Path, outside: Path) -> None:
    """Put everything into a folder that could stop its removal or lead out of it."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(outside)
    (folder / "link to a file").symlink_to(outside / "kept")
    (folder / "itself").symlink_to(folder)
    (folder / "nowhere").symlink_to("/does/not/exist")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
    os.link(outside / "kept", folder / "hard link")
    (folder / "\udcff\n-rf").write_text("")
    closed = folder / "closed"
    (closed / "inside").mkdir(parents=True)
    (closed / "inside" / "file").write_text("")
    (closed / "inside").chmod(0)
    closed.chmod(0)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that must stay as it is."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    return folder


def test_a_tree_deeper_than_a_path_is_removed(tmp_path):
    place = tmp_path / "entry"
    place.mkdir()
    make_deep(place)
    assert remove_tree(place) and not os.path.lexists(place)


def test_links_pipes_and_closed_folders_are_removed_and_nothing_outside(tmp_path, outside):
    place = tmp_path / "entry"
    place.mkdir()
    make_odd(place, outside)
    assert remove_tree(place) and not os.path.lexists(place)
    assert (outside / "kept").read_text() == "kept" and os.listdir(outside) == ["kept"]


def test_a_wide_tree_is_removed(tmp_path):
    for one in range(10):
        for other in range(10):
            (tmp_path / "entry" / str(one) / str(other) / "deep").mkdir(parents=True)
            (tmp_path / "entry" / str(one) / str(other) / "file").write_text("")
    assert remove_tree(tmp_path / "entry") and os.listdir(tmp_path) == []


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path, outside):
    (tmp_path / "entry").symlink_to(outside)
    assert remove_tree(tmp_path / "entry")
    assert (outside / "kept").exists() and not os.path.lexists(tmp_path / "entry")


def test_what_is_not_there_is_removed_already(tmp_path):
    assert remove_tree(tmp_path / "entry") and remove_tree(tmp_path / "no" / "entry")


def test_removal_ends_at_its_deadline_and_goes_on_the_next_time(tmp_path):
    place = tmp_path / "entry"
    place.mkdir()
    make_deep(place, 500)
    begun = time.monotonic()
    assert not remove_tree(place, 0.0) and time.monotonic() - begun < 1
    assert remove_tree(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove anything")
def test_what_may_not_be_removed_raises_nothing(tmp_path):
    (tmp_path / "outer" / "entry").mkdir(parents=True)
    (tmp_path / "outer").chmod(0o500)
    assert not remove_tree(tmp_path / "outer" / "entry")


def test_trimming_takes_any_entry(tmp_path, monkeypatch, outside):
    """Does one submission's cache not keep the cache from being trimmed, and are the last used kept?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    kind = tmp_path / "cache" / "submissions"
    for number, name in enumerate(("deep", "odd", "old", "new", "newest")):
        (kind / name).mkdir(parents=True)
        os.utime(kind / name, (number, number))
    make_deep(kind / "deep")
    make_odd(kind / "odd", outside)
    for name, age in (("deep", 1), ("odd", 2)):
        os.utime(kind / name, (age, age))
    (kind / "a link").symlink_to(outside)
    cache.trim("submissions", 2)
    assert sorted(os.listdir(kind)) == ["a link", "new", "newest"] and (outside / "kept").exists()
    cache.trim("no such kind", 2)


def test_what_is_used_meanwhile_stays(tmp_path, monkeypatch):
    """Does an entry stay that another process begins to use between the listing and the removal?"""
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").write_text("kept")
        os.utime(tmp_path / str(number), (number, number))
    listed = cache._list_entries

    def use_one_more(folder):
        found = listed(folder)
        os.utime(tmp_path / "1")
        return found

    monkeypatch.setattr(cache, "_list_entries", use_one_more)
    cache.trim_folder(tmp_path, 2)
    assert sorted(os.listdir(tmp_path)) == ["1", "2", "3"] and (tmp_path / "1" / "file").read_text() == "kept"


def test_an_entry_that_goes_while_it_is_found_is_made_again(tmp_path, monkeypatch):
    """Is an entry rebuilt that is removed after it was found and before its use is noted?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))
    cache.find_or_make("object", "key", lambda folder: (folder / "file").write_text("first"))

    def remove(place):
        was_there = (place / "file").read_text() == "second"
        if not was_there:
            remove_tree(place)
        return not was_there

    place, made = cache.find_or_make("object", "key", lambda folder: (folder / "file").write_text("second"), remove)
    assert made and (place / "file").read_text() == "second"


def test_what_a_killed_process_was_removing_is_removed(tmp_path):
    (tmp_path / f"{cache._OLD}1" / "inner").mkdir(parents=True)
    cache.trim_folder(tmp_path, 2)
    assert os.listdir(tmp_path) == []
