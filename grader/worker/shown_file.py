"""Show a worker its submission's file as the judge has read it, whatever lies at the file's path by then.

Whoever can write to the folder of a submission can replace its file by a link after the judge has read it. So the judge
resolves the path once and gives the sandbox the bytes themselves, or a descriptor whose content it has compared.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import stat
import tempfile
from pathlib import Path

from grader.worker.levels import Level
from grader.worker.view import View
from simt.toolchain.removal import remove_tree

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class SubmissionChanged(Exception):
    """Raised where a submission's path no longer leads to the file that the judge has read."""


class Copy:
    """A copy of a submission's file in a folder that only the judge can write to, for bubblewrap to show."""

    def __init__(self, content: bytes):
        self.folder = Path(tempfile.mkdtemp(prefix="grader-")).resolve()
        self.file = self.folder / "submission.py"
        self.write(content)

    def write(self, content: bytes) -> None:
        """Replace the content, also for a worker that runs."""
        self.file.write_bytes(content)

    def remove(self) -> None:
        """Remove the copy with its folder."""
        remove_tree(self.folder)


@dataclasses.dataclass
class Shown:
    """How a worker gets to see its submission's file. copy: with bubblewrap. opened: with Landlock, its descriptor."""

    copy: Copy | None = None
    opened: list[int] = dataclasses.field(default_factory=list)

    def close(self) -> None:
        """Close the descriptor, once the worker has it."""
        while self.opened:
            os.close(self.opened.pop())

    def discard(self) -> None:
        """Remove the copy of a worker that did not start."""
        if self.copy is not None:
            self.copy.remove()


def show(level: Level, view: View, content: bytes) -> Shown:
    """Return what a level needs to show a file with this content at the view's path. Raises SubmissionChanged.

    bubblewrap shows a copy. Landlock can only allow the file that lies at the path, so that must still be the same.
    """
    if view.submission is None or level is Level.none:
        return Shown()
    if level is Level.bubblewrap:
        return Shown(copy=Copy(content))
    return Shown(opened=[open_unchanged(view.submission, content)])


def open_unchanged(path: Path, content: bytes) -> int:
    """Return a descriptor of the file at a path. Raises SubmissionChanged unless it is a file with this content."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _READ)
        if _has_content(descriptor, content):
            return descriptor
        os.close(descriptor)
    raise SubmissionChanged(f"{path} is no longer the file that the judge has read")


def _has_content(descriptor: int, content: bytes) -> bool:
    """Return whether a descriptor is a regular file's with this content."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return False
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(len(content) + 1) == content
