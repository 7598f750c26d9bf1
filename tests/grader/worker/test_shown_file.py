"""Does a worker see the bytes that the judge has read, whatever happens to the submission's path meanwhile?"""

import os
import platform
from pathlib import Path

import pytest

from grader.worker import shown_file
from grader.worker.levels import Level
from grader.worker.sandbox import SubmissionChanged
from tests.grader.worker.attacked import Attacked
from tests.sample import sample

linux_only = pytest.mark.skipif(os.name != "posix" or platform.system() != "Linux", reason="Linux only")
SECRET = "of the judge"
OWN = "# mine\n"  # what Attacked hands in


def replace_by_link(path: Path) -> None:
    """Put a link to a secret in the place of a file, as somebody who can write to its folder can."""
    secret = path.with_name("secret")
    secret.write_text(SECRET)
    link = path.with_name("link")
    link.symlink_to(secret)
    link.rename(path)


def replace_folder(path: Path) -> None:
    """Replace a submission's folder by a link to another one, which holds a secret under the submission's name."""
    other = path.parent.with_name("other")
    other.mkdir()
    (other / path.name).write_text(SECRET)
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to(other)


def replace_by_pipe(path: Path) -> None:
    """Put a pipe, which nobody writes to, in the place of a file."""
    path.unlink()
    os.mkfifo(path)


CHANGES = [replace_by_link, replace_folder, replace_by_pipe, Path.unlink, lambda path: path.write_text(SECRET)]


@pytest.fixture
def handed_in(tmp_path):
    """A file in a folder of its own, and its content."""
    path = tmp_path.resolve() / "handed_in" / "submission.py"
    path.parent.mkdir()
    path.write_text(OWN)
    return path


@linux_only
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed(handed_in, change):
    """Is a path refused at once that leads to anything but what was read, and an unchanged one opened?"""
    descriptor = shown_file.open_unchanged(handed_in, OWN.encode())
    assert os.pread(descriptor, 100, 0) == OWN.encode()
    os.close(descriptor)
    change(handed_in)
    with pytest.raises(SubmissionChanged):
        shown_file.open_unchanged(handed_in, OWN.encode())


@linux_only
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", sample(["before the start", "after the start"], ["after the start"]))
@pytest.mark.parametrize("level", sample([Level.bubblewrap, Level.landlock], [Level.landlock]))
def test_a_file_that_is_replaced(handed_in, level, when, change):
    """Does the worker read its own bytes or nothing, and never what its path leads to now?"""
    if when == "after the start":
        attacked = Attacked(level, handed_in.parent)
        change(handed_in)
    else:
        try:
            attacked = Attacked(level, handed_in.parent, change=change)
        except SubmissionChanged:
            assert level is Level.landlock  # bubblewrap shows the bytes themselves
            return
    try:
        seen = attacked.run(f"os.read(os.open({str(handed_in)!r}, os.O_RDONLY | os.O_NONBLOCK), 100)")
    finally:
        attacked.process.kill()
    if level is Level.bubblewrap:
        assert seen == repr(OWN.encode())
    elif change is CHANGES[-1]:  # the same file: who can write to it may as well hand it in
        assert seen == repr(SECRET.encode())
    else:
        assert seen in ("EACCES", "ENOENT", "ELOOP")


@linux_only
def test_what_surrounds_the_copy(handed_in):
    """Does the folder of the submission hold nothing else, can its file not be changed, and is no copy left behind?"""
    (handed_in.parent / "neighbour.py").write_text(SECRET)
    attacked = Attacked(Level.bubblewrap, handed_in.parent)
    copy = attacked.process.copy
    assert copy is not None and copy.file.read_text() == OWN and copy.folder.stat().st_mode & 0o077 == 0
    names = attacked.run(f"sorted(os.listdir({str(handed_in.parent)!r}))")
    assert names == repr([handed_in.name])
    assert attacked.run(f"os.path.exists({str(copy.file)!r})") == "False"
    for expression in ("open(path, 'a')", "os.unlink(path)", "os.chmod(path, 0o777)", "os.rename(path, path + 'x')"):
        result = attacked.run(expression.replace("path", repr(str(handed_in))))
        assert result in ("EROFS", "EACCES", "EBUSY", "EPERM"), (expression, result)
    attacked.process.kill()
    assert not copy.folder.exists()


@linux_only
def test_the_lines_of_a_traceback(handed_in):
    """Do linecache and inspect find the lines that were read, by the submission's own path?"""
    attacked = Attacked(Level.bubblewrap, handed_in.parent, change=replace_by_link)
    try:
        assert attacked.run(f"__import__('linecache').getline({str(handed_in)!r}, 1)") == repr(OWN)
    finally:
        attacked.process.kill()
