"""Lets one process at a time build a submission, and one grading at a time use a GPU.

The locks lie where only the judges of one user write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from simt.toolchain.cache import user_cache
from simt.toolchain.removal import remove_tree

LONGEST_WAIT_S = 1800.0  # longer than any build or timing: without a sandbox a submission may hold the lock itself
POLL_S = 0.1
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def lock_folder() -> Path:
    """Return the folder of the locks, in which no worker builds anything."""
    return user_cache() / "grader" / "locks"


def sole_builder(builds: Path) -> contextlib.AbstractContextManager[None]:
    """Wait until no other process builds in this folder, which is torch's for one submission.

    The judge opens nothing in it: a worker may have put a link or a pipe there. Where the locks cannot be written,
    nothing needs them: builds can be used, and no process builds there.
    """
    return _alone(builds.name, lambda: None)


def sole_user(gpu: str, waiting: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Wait until no other grading of this user computes on a GPU: it would make times longer and memory short.

    gpu: what no other one is called. waiting: called once if another one has it.
    """
    return _alone(f"gpu-{gpu}", waiting)


@contextlib.contextmanager
def _alone(name: str, waiting: Callable[[], None]) -> Iterator[None]:
    try:
        descriptor = _open(lock_folder() / name)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        yield
        return
    try:
        _wait_for(descriptor, waiting)
        yield
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    """Open or make a lock. Whatever else has its name, such as a link or a pipe, is removed first."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not stat.S_ISREG(_mode(file)):
        remove_tree(file)
    descriptor = os.open(file, _FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{file} is not a regular file")
    return descriptor


def _mode(file: Path) -> int:
    """Return the kind of what has this name; a regular file's where there is nothing."""
    try:
        return file.lstat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG


def _wait_for(descriptor: int, waiting: Callable[[], None]) -> None:
    told, deadline = False, time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not told:
                told = True
                waiting()
            time.sleep(POLL_S)
