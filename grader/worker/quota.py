"""Measure the folders that a worker writes to, without following links or opening files."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER_BYTES = 4 << 30  # in all folders of one worker
MOST_ENTRIES = 100_000
MOST_DEPTH = 64  # of folders in one another: compilers make three
INTERVAL_S = 0.5
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _ExcessError(Exception):
    """Raised where a limit is exceeded; the text names it."""


class Quota:
    """The limit on a worker's folders. excess: which limit it exceeded, in words; empty if none."""

    def __init__(self, folders: Sequence[Path], most_bytes: int = FOLDER_BYTES, most_entries: int = MOST_ENTRIES):
        self.folders = folders
        self.most_bytes, self.most_entries = most_bytes, most_entries
        self.excess = ""
        self.bytes, self.entries = 0, 0
        self.next = 0.0

    def is_exceeded(self) -> bool:
        """Return whether a limit is exceeded. Measures at most every INTERVAL_S, more rarely where it takes long."""
        now = time.monotonic()
        if not self.excess and now >= self.next:
            self.excess = self._measure()
            self.next = time.monotonic() + max(INTERVAL_S, 10 * (time.monotonic() - now))
        return bool(self.excess)

    def _measure(self) -> str:
        self.bytes, self.entries = 0, 0
        try:
            for folder in self.folders:
                self._add(str(folder), None, 0)
        except _ExcessError as error:
            return str(error)
        return ""

    def _add(self, name: str, parent: int | None, depth: int) -> None:
        """Add what is in a folder. What cannot be read, or is gone again, counts nothing."""
        if depth > MOST_DEPTH:
            raise _ExcessError(f"it made more than {MOST_DEPTH} folders inside one another")
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=parent)
        except OSError:
            return
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    self._count(entry)
                    if entry.is_dir(follow_symlinks=False):
                        self._add(entry.name, descriptor, depth + 1)
        except OSError:
            return
        finally:
            os.close(descriptor)

    def _count(self, entry: os.DirEntry) -> None:
        try:
            self.bytes += 512 * entry.stat(follow_symlinks=False).st_blocks
        except OSError:
            return
        self.entries += 1
        if self.bytes > self.most_bytes:
            raise _ExcessError(f"it wrote more than {self.most_bytes / (1 << 30):.3g} GiB to disk")
        if self.entries > self.most_entries:
            raise _ExcessError(f"it made more than {self.most_entries:,} files")
