"""Make the folders that hold one submission's builds, and replace those that an earlier worker left unusable."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from grader.worker.quota import MOST_DEPTH
from simt.toolchain.removal import remove_tree

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_usable(folder: Path) -> None:
    """Make a folder, or replace one that cannot be used, with what is in it. Raises OSError where that is impossible.

    A worker can leave links, pipes, and folders without permissions, which would break the next grading of its file.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(folder) and not is_usable(folder):
        remove_tree(folder)
    folder.mkdir(exist_ok=True)
    if not is_usable(folder):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def is_usable(folder: Path) -> bool:
    """Return whether a folder holds regular files and folders alone, with their owner's permissions to use them.

    No link is followed and no file is opened.
    """
    try:
        return _is_plain(str(folder), None, 0)
    except OSError:
        return False


def _is_plain(name: str, parent: int | None, depth: int) -> bool:
    if depth > MOST_DEPTH:
        return False
    descriptor = os.open(name, _FOLDER, dir_fd=parent)
    try:
        if os.fstat(descriptor).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            return False
        with os.scandir(descriptor) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another worker of this submission removes what it built
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode):
                        if not _is_plain(entry.name, descriptor, depth + 1):
                            return False
                    elif not stat.S_ISREG(mode) or not mode & stat.S_IRUSR:
                        return False
    finally:
        os.close(descriptor)
    return True
