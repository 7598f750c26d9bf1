"""Where built things are kept: a folder a key, made whole or not at all, also when a build is killed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from .errors import CacheError


def cache_dir() -> Path:
    """The cache's folder: $SIMT_CACHE, or simt in the user's cache folder."""
    return _named("SIMT_CACHE") or user_cache() / "simt"


def shared_dir() -> Path | None:
    """$SIMT_CACHE_SHARED: another cache, looked into first and never written to, for those who must not write to it."""
    return _named("SIMT_CACHE_SHARED")


def user_cache() -> Path:
    """The folder for all programs' caches: $XDG_CACHE_HOME, or .cache in the user's home."""
    return _named("XDG_CACHE_HOME") or Path.home() / ".cache"


def _named(variable: str) -> Path | None:
    """The folder that a variable names: `~` is the home, and what is relative counts from the current folder, for the processes started
    elsewhere too."""
    named = os.environ.get(variable)
    return Path(named).expanduser().absolute() if named else None


def unusable(why: str) -> CacheError:
    """What to raise where the cache can't be used; why: a few words."""
    return CacheError(
        f"The folder for built extensions, {cache_dir()}, can't be used ({why}): set SIMT_CACHE to a folder that can be "
        "written, on a disk with 1 GB free."
    )


def key_of(*parts: str) -> str:
    """A key for what is built from these texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()[:32]


def entry(kind: str, key: str, make, current=lambda place: True) -> tuple[Path, bool]:
    """The folder of `kind` and `key`, and whether it was made now; make(folder) fills it where there is none, or where
    current(folder) says that it is out of date.

    A folder appears by a rename, with a list of its files and their sizes, so it is whole or it is made again. The
    lock is the operating system's: it falls with the process that holds it, so a killed build blocks nobody.
    Raises CacheError where the folder can't be used.
    """
    shared = shared_dir()
    if shared and _whole(shared / kind / key) and current(shared / kind / key):
        return shared / kind / key, False
    try:
        return _entry(cache_dir() / kind / key, make, current)
    except OSError as error:
        raise unusable(error.strerror or str(error)) from None


def _entry(place: Path, make, current) -> tuple[Path, bool]:
    if _whole(place) and current(place):
        with contextlib.suppress(OSError):  # the cache may be somebody else's, to be read only
            os.utime(place)
        return place, False
    place.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place.parent).free < _LEAST:  # or the compiler says so, half a minute later
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    from filelock import FileLock  # not above: whoever only asks where the cache is need not wait for it

    # Locks are never removed, which would let two processes hold "the" lock: few of them serve all keys.
    with FileLock(place.parent / f".lock-{place.name[:2]}"):
        if _whole(place) and current(place):
            return place, False
        shutil.rmtree(place, ignore_errors=True)
        _sweep(place)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            make(unfinished)
            (unfinished / _LIST).write_text("".join(f"{p.stat().st_size} {p.name}\n" for p in sorted(unfinished.iterdir())), encoding="utf-8")
            unfinished.rename(place)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return place, True


_LIST = ".files"
_LEAST = 1 << 20  # bytes free


def has(kind: str, key: str) -> bool:
    """Whether an entry is there."""
    return any(_whole(folder / kind / key) for folder in (shared_dir(), cache_dir()) if folder)


def _whole(place: Path) -> bool:
    try:
        files = [line.split(" ", 1) for line in (place / _LIST).read_text(encoding="utf-8").splitlines()]
        return all((place / name).stat().st_size == int(size) for size, name in files)
    except (OSError, ValueError):
        return False


def _sweep(place: Path) -> None:
    """Removes what killed builds left: unfinished folders of this key, whose lock we hold, and those older than an hour."""
    for left in place.parent.glob(".*-*"):
        with contextlib.suppress(OSError):
            if left.is_dir() and (left.name.startswith(f".{place.name}-") or time.time() - left.stat().st_mtime > 3600):
                shutil.rmtree(left, ignore_errors=True)


def trim(kind: str, keep: int) -> None:
    """Keeps the `keep` entries of a kind that were used last."""
    folder = cache_dir() / kind
    if not folder.is_dir():
        return
    entries = sorted((p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")), key=_age)
    for old in entries[keep:]:
        shutil.rmtree(old, ignore_errors=True)


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
