"""Cache built files: one folder per key, complete or absent, even when a build is killed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from simt.errors import CacheError
from simt.toolchain.removal import REMOVAL_SECONDS, remove_tree


@dataclass(frozen=True)
class Kind:
    """What the entries of a kind are, and how many entries and bytes of them stay when one is added (see `trim`)."""

    what: str
    keep: int
    most_bytes: int = 1 << 30


KINDS = {
    "header": Kind("precompiled headers", 12, 4 << 30),
    "runtime": Kind("simt's library, its versions", 3),
    "base": Kind("what connects it with torch, its versions", 3),
    "part": Kind("parts of both", 60),
    "binding": Kind("bindings of the course's exercises", 200),
    "object": Kind("compiled kernels", 1000),
    "extension": Kind("linked kernels", 1000),
    "source": Kind("sources of programs", 1000),
    "gpu_code": Kind("kernels compiled for a GPU", 1000),
    "gpu_extension": Kind("linked kernels for a GPU", 1000),
    "problem": Kind("what running a problem's file has shown", 1000),
}


def cache_dir() -> Path:
    """Return the cache's folder: $SIMT_CACHE, or simt in the user's cache folder."""
    return _read_folder("SIMT_CACHE") or user_cache() / "simt"


def shared_dir() -> Path | None:
    """Return $SIMT_CACHE_SHARED: another cache, which is read first and never written to."""
    return _read_folder("SIMT_CACHE_SHARED")


def user_cache() -> Path:
    """Return the folder for all programs' caches: $XDG_CACHE_HOME, or .cache in the user's home."""
    return _read_folder("XDG_CACHE_HOME") or Path.home() / ".cache"


def _read_folder(variable: str) -> Path | None:
    """Return the folder that a variable names as an absolute path, with `~` expanded; None if it is not set."""
    named = os.environ.get(variable)
    return Path(named).expanduser().absolute() if named else None


def make_unusable_error(why: str) -> CacheError:
    """Return the error to raise when the cache cannot be used. why: the reason, as part of a sentence."""
    return CacheError(
        f"The folder for built extensions, {cache_dir()}, cannot be used ({why}). Set SIMT_CACHE to a writable folder "
        "on a disk with 1 GB free."
    )


def free_bytes() -> int:
    """Return the bytes that are free for the cache. Raises OSError where its folder cannot be made."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(cache_dir()).free


def hash_texts(*parts: str) -> str:
    """Return a key for the files that are built from these texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()[:32]


def find_or_make(kind: str, key: str, make, current=lambda place: True) -> tuple[Path, bool]:
    """Return the folder of `kind` and `key`, and whether this call made it.

    make(folder) fills the folder if it is missing, or if current(folder) is false because it is out of date.
    A folder appears by a rename, with a list of its files and their sizes, so that an incomplete folder is rebuilt. The
    lock belongs to the operating system and ends with its process, so that a killed build blocks no other. When one is
    made, entries past the kind's limits go.
    Raises KeyError for a kind that KINDS lacks, CacheError if the cache cannot be used.
    """
    limits = KINDS[kind]
    shared = shared_dir()
    if shared and _is_whole(shared / kind / key) and current(shared / kind / key):
        return shared / kind / key, False
    try:
        place, made = _find_or_make(cache_dir() / kind / key, make, current)
    except OSError as error:
        raise make_unusable_error(error.strerror or str(error)) from None
    if made:
        trim(kind, limits.keep, limits.most_bytes)
    return place, made


def _find_or_make(place: Path, make, current) -> tuple[Path, bool]:
    if _is_whole(place) and current(place) and _mark_used(place):
        return place, False
    place.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place.parent).free < _MIN_FREE:  # otherwise the compiler would fail half a minute later
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    from filelock import FileLock  # here, so that cache_dir() does not wait for the import

    # Lock files are never removed: otherwise two processes could hold the same lock. A few locks serve all keys.
    with FileLock(place.parent / f".lock-{place.name[:2]}"):
        if _is_whole(place) and current(place):
            return place, False
        remove_tree(place)
        _sweep(place)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            make(unfinished)
            (unfinished / _LIST).write_text(
                "".join(f"{p.stat().st_size} {p.name}\n" for p in sorted(unfinished.iterdir())), encoding="utf-8"
            )
            unfinished.rename(place)
        finally:
            remove_tree(unfinished)
    return place, True


def _mark_used(place: Path) -> bool:
    """Note that an entry is used, so that trimming leaves it. Return whether it is still there."""
    try:
        os.utime(place)
    except FileNotFoundError:
        return False
    except OSError:  # the cache may be read-only: nothing removes the entry
        pass
    return True


_LIST = ".files"
_OLD = ".old-"  # begins the name of an entry that is being removed
_MIN_FREE = 1 << 20  # bytes
RECENT_S = 24 * 3600


def find_entry(kind: str, key: str) -> Path | None:
    """Return the folder of an entry that the cache has."""
    places = (folder / kind / key for folder in (shared_dir(), cache_dir()) if folder)
    return next((place for place in places if _is_whole(place)), None)


def has_entry(kind: str, key: str) -> bool:
    """Return whether the cache has this entry."""
    return find_entry(kind, key) is not None


def _is_whole(place: Path) -> bool:
    try:
        files = [line.split(" ", 1) for line in (place / _LIST).read_text(encoding="utf-8").splitlines()]
        return all((place / name).stat().st_size == int(size) for size, name in files)
    except (OSError, ValueError):
        return False


def _sweep(place: Path) -> None:
    """Remove the unfinished folders of killed builds: those of this key, whose lock the caller holds, and all others
    older than an hour.
    """
    for left in place.parent.glob(".*-*"):
        with contextlib.suppress(OSError):
            age = time.time() - left.lstat().st_mtime
            if not left.is_symlink() and left.is_dir() and (left.name.startswith(f".{place.name}-") or age > 3600):
                remove_tree(left)


def trim(kind: str, keep: int, most_bytes: int = 1 << 30) -> None:
    """Remove all entries of a kind except the `keep` most recently used and those used within RECENT_S, and of these
    all but the last that have so many bytes together. Raises nothing, whatever is in the entries.

    Several versions of simt share a cache: the count alone would have two of them remove each other's entries in turn.
    """
    folder, left = cache_dir() / kind, most_bytes
    entries, begun = _list_entries(folder), time.time_ns() - RECENT_S * 10**9
    keep = max(keep, sum(used > begun for used, _ in entries))
    for number, (_, entry) in enumerate(entries[:keep]):
        left -= _read_size(entry)
        if left < 0:
            keep = max(1, number)  # the newest stays, however large it is
            break
    trim_folder(folder, keep)


def _read_size(entry: Path) -> int:
    """Return an entry's size as its list of files says it; 0 where that is missing."""
    try:
        return sum(int(line.split(" ", 1)[0]) for line in (entry / _LIST).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return 0


def measure(folder: Path) -> int:
    """Return the bytes of the files in a folder and in those below it, as far as they can be looked at."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def trim_folder(folder: Path, keep: int) -> None:
    """Remove all entries of a folder except the `keep` most recently used. One that another process begins to use
    meanwhile stays.
    """
    deadline = time.monotonic() + REMOVAL_SECONDS
    for left in folder.glob(f"{_OLD}*"):  # by a process that was killed
        remove_tree(left, deadline - time.monotonic())
    for used, entry in _list_entries(folder)[keep:]:
        aside = folder / f"{_OLD}{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            entry.rename(aside)
            if aside.lstat().st_mtime_ns == used:
                remove_tree(aside, deadline - time.monotonic())
            else:
                aside.rename(entry)


def _list_entries(folder: Path) -> list[tuple[int, Path]]:
    """Return the entries in a kind's folder and when they were used, in nanoseconds, the last used first."""
    found: list[tuple[int, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [(used, Path(path)) for used, path in sorted(found, reverse=True)]
