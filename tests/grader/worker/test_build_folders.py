"""Is a submission's folder of builds fit for use when its worker starts, whatever an earlier one left there?"""

import os
import platform
import socket
from pathlib import Path

import pytest

from grader.worker import sandbox
from grader.worker.build_folders import is_usable, make_usable
from grader.worker.levels import Level
from tests.grader.worker.attacked import Attacked

pytestmark = pytest.mark.skipif(os.name != "posix" or platform.system() != "Linux", reason="Linux only")


@pytest.fixture
def builds(tmp_path):
    """A folder with a build in it."""
    folder = tmp_path / "submissions" / "abc"
    (folder / "extension" / "key").mkdir(parents=True)
    (folder / "extension" / "key" / "kernel.so").write_bytes(b"elf")
    return folder


def outside(builds: Path) -> Path:
    """Return a folder outside, with a file that must survive."""
    folder = builds.parent.parent / "outside"
    folder.mkdir(exist_ok=True)
    (folder / "kept").write_text("kept")
    return folder


def be_moved(folder: Path) -> Path:
    """Rename a folder, so that something else can have its name."""
    return folder.rename(folder.with_name("moved"))


def make_deep(folder: Path) -> None:
    for _ in range(100):
        folder = folder / "d"
        folder.mkdir()


LEFT = {
    "no permissions": lambda builds: builds.chmod(0),
    "a folder that cannot be written to": lambda builds: (builds / "extension").chmod(0o500),
    "an inner folder without permissions": lambda builds: (builds / "extension" / "key").chmod(0),
    "a file that cannot be read": lambda builds: (builds / "extension" / "key" / "kernel.so").chmod(0),
    "a link for a folder": lambda builds: (
        be_moved(builds / "extension"),
        (builds / "extension").symlink_to(outside(builds)),
    ),
    "a link for the whole": lambda builds: (be_moved(builds), builds.symlink_to(outside(builds))),
    "a link to nothing": lambda builds: (be_moved(builds), builds.symlink_to("nowhere")),
    "a file for the whole": lambda builds: (be_moved(builds), builds.write_text("")),
    "a pipe": lambda builds: os.mkfifo(builds / ".files"),
    "a socket": lambda builds: socket.socket(socket.AF_UNIX).bind(os.path.relpath(builds / "s")),
    "too deep": make_deep,
}


@pytest.mark.parametrize("what", LEFT)
def test_what_was_left_is_replaced(builds, what):
    """Is a folder that a worker made unusable replaced by an empty one, and nothing outside touched?"""
    kept = outside(builds) / "kept"
    LEFT[what](builds)
    assert not is_usable(builds)
    make_usable(builds)
    assert builds.is_dir() and not builds.is_symlink() and os.listdir(builds) == [] and is_usable(builds)
    assert kept.read_text() == "kept"


def test_builds_are_kept(builds):
    """Does an ordinary folder stay as it is, also one whose files are read-only, and is a missing one made?"""
    kernel = builds / "extension" / "key" / "kernel.so"
    kernel.chmod(0o444)
    make_usable(builds)
    assert kernel.read_bytes() == b"elf"
    make_usable(builds.with_name("new"))
    assert is_usable(builds.with_name("new"))


def test_a_folder_that_cannot_be_replaced(builds, monkeypatch):
    """Is it an error that names the folder, before a submission is blamed for it?"""
    builds.chmod(0)
    monkeypatch.setattr("grader.worker.build_folders.remove_tree", lambda folder: False)
    with pytest.raises(PermissionError, match="abc"):
        make_usable(builds)
    builds.chmod(0o700)


@pytest.mark.slow
@pytest.mark.parametrize("level", list(Level))
def test_the_next_worker_of_the_same_file(tmp_path, level):
    """Can a second worker write to its folders after the first has taken away all permissions on them?"""
    folder = tmp_path.resolve() / "handed_in"
    folder.mkdir()
    names = ["TORCH_EXTENSIONS_DIR"] + ["SIMT_CACHE"] * (level is not Level.none)  # else that is the judge's own
    first = Attacked(level, folder)
    first.run(f"[os.chmod(os.environ[name], 0) for name in {names}]")
    first.process.kill()
    second = Attacked(level, folder)
    try:
        for name in names:
            assert second.run(f"open(os.environ[{name!r}] + '/a', 'w').close() or 'done'") == "'done'"
            assert second.run(f"oct(os.stat(os.environ[{name!r}]).st_mode & 0o700)") == repr("0o700")
    finally:
        second.process.kill()


def test_a_worker_without_a_sandbox_leaves_the_judges_cache(tmp_path, monkeypatch):
    """Is simt's cache, which all submissions share where there is no sandbox, never replaced?"""
    monkeypatch.setattr(sandbox, "why_not", lambda: "none in this test")
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "link").symlink_to("nowhere")
    sandbox.make_folders(tmp_path / "builds")
    assert (tmp_path / "cache" / "link").is_symlink() and (tmp_path / "builds").is_dir()
