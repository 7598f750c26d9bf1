"""Removes folders in which a program that is not trusted may have left anything."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from pathlib import Path

REMOVAL_SECONDS = 20.0  # for one folder: what is left then is removed the next time
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path, seconds: float = REMOVAL_SECONDS) -> bool:
    """Remove a folder or a file; return whether nothing is left of it. Raises nothing.

    No link is followed, no file is opened, and a tree of any depth takes three descriptors and no recursion: a folder
    inside another one is first moved up to the outermost, so every folder that is emptied lies there.
    """
    deadline = time.monotonic() + seconds
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return not os.path.lexists(path)
    try:
        return _remove(parent, path.name, deadline)
    except OSError:
        return False
    finally:
        os.close(parent)


def _remove(parent: int, name: str, deadline: float) -> bool:
    if not _is_folder(parent, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        return True
    top = _open(parent, name)
    try:
        before: list[str] = []
        while (inside := _empty(top, top, deadline)) and inside != before and time.monotonic() < deadline:
            for folder in inside:
                _remove_folder(top, folder, deadline)
            before = inside
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)
    return True


def _remove_folder(top: int, name: str, deadline: float) -> None:
    """Remove a folder of the outermost one, after its own folders were moved there."""
    with contextlib.suppress(OSError):  # what cannot be removed stays, and the rest is removed all the same
        descriptor = _open(top, name)
        try:
            _empty(descriptor, top, deadline)
        finally:
            os.close(descriptor)
        os.rmdir(name, dir_fd=top)


def _empty(folder: int, top: int, deadline: float) -> list[str]:
    """Remove the files in a folder and move its folders to `top`; return the names of those that are there now."""
    found: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > deadline:
                return found
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                elif folder == top:
                    found.append(entry.name)
                else:
                    _move_up(folder, entry.name, top)
    return found


def _move_up(folder: int, name: str, top: int) -> None:
    """Move a folder to the outermost one, under a name that is not taken."""
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=folder)  # most are empty
        return
    target = secrets.token_hex(8)
    try:
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:  # its owner may not write to it
        os.close(_open(folder, name))
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=top)


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _open(parent: int, name: str) -> int:
    """Open a folder by its name, after giving its owner every permission on it."""
    itself = os.open(name, _NAME_ONLY, dir_fd=parent)
    try:
        if os.fstat(itself).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            with contextlib.suppress(OSError):
                os.chmod(f"/proc/self/fd/{itself}", stat.S_IRWXU)
        return os.open(name, _FOLDER, dir_fd=parent)
    finally:
        os.close(itself)
