"""Where built things are kept: a folder a key, made whole or not at all, also when a build is killed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock


def cache_dir() -> Path:
    """The cache's folder: $SIMT_CACHE, or simt in the user's cache folder."""
    named = os.environ.get("SIMT_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simt"


def key_of(*parts: str) -> str:
    """A key for what is built from these texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()[:32]


def entry(kind: str, key: str, make) -> tuple[Path, bool]:
    """The folder of `kind` and `key`, and whether it was made now; make(folder) fills it where there is none.

    A folder appears by a rename, so it is whole whenever it is there. The lock is the operating system's: it falls
    with the process that holds it, so a killed build blocks nobody.
    """
    place = cache_dir() / kind / key
    if place.is_dir():
        return place, False
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(str(place) + ".lock"):
        if place.is_dir():
            return place, False
        _sweep(place.parent)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=place.parent))
        try:
            make(unfinished)
            unfinished.rename(place)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return place, True


def _sweep(folder: Path) -> None:
    """Removes what killed builds left: unfinished folders older than an hour."""
    for left in folder.glob(".*-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > 3600:
                shutil.rmtree(left, ignore_errors=True)


def trim(kind: str, keep: int) -> None:
    """Keeps the `keep` newest entries of a kind."""
    folder = cache_dir() / kind
    if not folder.is_dir():
        return
    entries = sorted((p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")), key=_age)
    for old in entries[keep:]:
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(OSError):
            Path(str(old) + ".lock").unlink()


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
