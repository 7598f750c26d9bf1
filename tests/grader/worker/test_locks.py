"""Does a lock of builds hold, and can nothing that a worker leaves in its folder stop the judge or lead it astray?"""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from grader.worker import locks
from grader.worker.builds import BuildReporter
from grader.worker.locks import lock_folder, sole_builder, sole_user


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_two_builders_take_turns(tmp_path):
    events, inside = [], threading.Event()

    def second() -> None:
        inside.wait()
        with sole_builder(tmp_path / "one"):
            events.append("second")

    other = threading.Thread(target=second)
    other.start()
    with sole_builder(tmp_path / "one"):
        inside.set()
        time.sleep(0.3)
        events.append("first")
    other.join(10)
    assert events == ["first", "second"]
    with sole_builder(tmp_path / "one"), sole_builder(tmp_path / "another"):
        pass


def test_one_grading_at_a_time_uses_a_gpu():
    """Does a second one wait and say so once, also after the first has failed, and is another GPU free?"""
    events, inside = [], threading.Event()

    def second() -> None:
        inside.wait()
        with sole_user("one", lambda: events.append("waiting")):
            events.append("second")

    other = threading.Thread(target=second)
    other.start()
    with pytest.raises(RuntimeError), sole_user("one", lambda: events.append("wrong")):
        with sole_user("another", lambda: events.append("wrong")):
            inside.set()
        time.sleep(0.5)
        events.append("first")
        raise RuntimeError
    other.join(10)
    assert events == ["waiting", "first", "second"]


def make_link(path, outside):
    path.symlink_to(outside)


def make_pipe(path, outside):
    os.mkfifo(path)


@pytest.mark.parametrize("make", [make_link, make_pipe])
def test_what_lies_in_the_folder_of_builds_is_not_touched(tmp_path, make):
    outside, builds = tmp_path / "outside", tmp_path / "builds"
    outside.write_text("kept")
    (builds / "extension").mkdir(parents=True)
    for path in (builds / ".judge", builds / "extension" / "lock", builds / "lock"):
        make(path, outside)
    begun = time.monotonic()
    with sole_builder(builds):
        pass
    assert outside.read_text() == "kept" and time.monotonic() - begun < 5
    assert len(os.listdir(builds)) == 3 and os.listdir(lock_folder()) == [builds.name]


@pytest.mark.parametrize("make", [make_link, make_pipe])
def test_a_lock_that_is_no_file_is_replaced(tmp_path, make):
    """Is a lock that was replaced, where there is no sandbox, neither followed nor waited for?"""
    (tmp_path / "outside").write_text("kept")
    lock_folder().mkdir(parents=True)
    make(lock_folder() / "builds", tmp_path / "outside")
    with sole_builder(tmp_path / "builds"):
        assert (lock_folder() / "builds").is_file() and not (lock_folder() / "builds").is_symlink()
    assert (tmp_path / "outside").read_text() == "kept"


def test_a_lock_that_is_held_for_ever_is_passed_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LONGEST_WAIT_S", 0.3)
    with sole_builder(tmp_path / "one"), sole_builder(tmp_path / "one"):
        pass


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_written_needs_no_lock(monkeypatch, tmp_path, code):
    """Can what was built before be used from a folder that is read-only, and is any other trouble still reported?"""

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(locks, "_open", refuse)
    with sole_builder(tmp_path):
        entered = True
    assert entered
    code = errno.ENOSPC
    with pytest.raises(OSError, match="No space"), sole_builder(tmp_path):
        pass


def test_the_worker_removes_the_locks_that_torch_would_wait_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    (tmp_path / "extension").mkdir()
    (tmp_path / "extension" / "lock").write_text("")
    (tmp_path / "extension" / "main.cpp").write_text("")
    BuildReporter(lambda reply: None, gpu=False).start("", {})
    assert os.listdir(tmp_path / "extension") == ["main.cpp"]
