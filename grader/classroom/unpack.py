"""Read the files of archives that strangers handed in, without writing anything to disk.

Whatever an archive says of itself is a claim: sizes, names, links, nesting. What is read is bounded, links and devices
are left out, and a path never leads anywhere, because nothing is opened by it.
"""

from __future__ import annotations

import datetime
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.verdict import spelled

MOST_FILES = 5_000  # in one archive with all that are in it
MOST_BYTES = 256 << 20  # of their contents together
MOST_FILE = 32 << 20  # of one file: a notebook with pictures, an archive in an archive
MOST_DEPTH = 3  # archives in one another
MOST_NAME = 1_000  # characters of a path
# What operating systems and version control add: nothing of it was handed in.
CLUTTER = ("__MACOSX", ".git", "__pycache__", ".ipynb_checkpoints", ".venv", "node_modules")
CLUTTER_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
# Errors of zipfile and tarfile on damaged data.
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
DAMAGED += (RuntimeError, IndexError, KeyError, OverflowError)


@dataclass(frozen=True)
class Handed:
    """One file of an archive. path: with / between the names, those of the archives around it included; changed: as the
    archive says, without a time zone; None if it says nothing that can be.
    """

    path: str
    data: bytes
    changed: datetime.datetime | None = None


@dataclass(frozen=True)
class LeftOut:
    """What could not be read, and why, as part of a sentence."""

    path: str
    why: str


@dataclass
class _Budget:
    """What may still be read."""

    files: int
    bytes: int


def is_archive(data: bytes) -> bool:
    """Return whether these bytes are an archive that unpack() reads."""
    return _find_reader(data) is not None


def unpack(path: str, data: bytes) -> Iterator[Handed | LeftOut]:
    """Yield each file of an archive, and of the archives in it, and what had to be left out. Raises nothing."""
    yield from _unpack(path, data, _Budget(MOST_FILES, MOST_BYTES), 1)


def _unpack(path: str, data: bytes, budget: _Budget, depth: int) -> Iterator[Handed | LeftOut]:
    reader = _find_reader(data)
    if reader is None:
        yield LeftOut(path, "it is no zip or tar archive")
        return
    if depth > MOST_DEPTH:
        yield LeftOut(path, f"more than {MOST_DEPTH} archives are in one another")
        return
    try:
        for found in reader(path, data, budget):
            if isinstance(found, Handed) and _is_packed(found):
                yield from _unpack(found.path, found.data, budget, depth + 1)
            else:
                yield found
    except DAMAGED as error:
        yield LeftOut(path, f"it is damaged ({_shorten(error)})")


def _is_packed(found: Handed) -> bool:
    """Return whether a file is an archive by its name and its bytes: a docx is a zip, too, and is not unpacked."""
    return found.path.lower().endswith((".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")) and is_archive(
        found.data
    )


Reader = Callable[[str, bytes, _Budget], Iterator[Handed | LeftOut]]


def _find_reader(data: bytes) -> Reader | None:
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        return _read_zip
    if data[:2] == b"\x1f\x8b" or data[:6] == b"\xfd7zXZ\x00" or data[:3] == b"BZh" or data[257:262] == b"ustar":
        return _read_tar
    return None


def _read_zip(path: str, data: bytes, budget: _Budget) -> Iterator[Handed | LeftOut]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            inner = _join(path, _read_zip_name(info))
            if info.is_dir() or is_clutter(inner):
                continue
            if budget.files <= 0 or budget.bytes <= 0:
                yield LeftOut(path, _describe_excess(budget))
                return
            mode = info.external_attr >> 16
            if mode and (mode & 0o170000) not in (0, 0o100000):
                yield LeftOut(inner, "it is a link or a device")
                continue
            if info.flag_bits & 1:
                yield LeftOut(inner, "it is encrypted")
                continue
            try:
                with archive.open(info) as opened:
                    yield _read(inner, opened, budget, _make_time(info.date_time))
            except DAMAGED as error:
                yield LeftOut(inner, f"it is damaged ({_shorten(error)})")


def _read_tar(path: str, data: bytes, budget: _Budget) -> Iterator[Handed | LeftOut]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as archive:
        for info in archive:
            inner = _join(path, info.name)
            if info.isdir() or is_clutter(inner):
                continue
            if budget.files <= 0 or budget.bytes <= 0:
                yield LeftOut(path, _describe_excess(budget))
                return
            opened = archive.extractfile(info) if info.isreg() else None
            if opened is None:
                yield LeftOut(inner, "it is a link or a device")
                continue
            found = _read(inner, opened, budget, _make_time_of(info.mtime))
            yield found
            if isinstance(found, LeftOut):  # to find the next file, all of this one would be unpacked
                yield LeftOut(path, f"what comes after {inner} was not read")
                return


def _read(path: str, opened, budget: _Budget, changed: datetime.datetime | None) -> Handed | LeftOut:
    """Read one file, whatever its header says of its size."""
    most = min(MOST_FILE, budget.bytes)
    data = opened.read(most + 1)
    budget.files -= 1
    budget.bytes -= len(data)
    if len(data) > MOST_FILE:
        return LeftOut(path, f"it has more than {MOST_FILE >> 20} MiB")
    return LeftOut(path, _describe_excess(budget)) if budget.bytes < 0 else Handed(path, data, changed)


def is_clutter(path: str) -> bool:
    """Return whether nobody handed this in on purpose."""
    names = path.split("/")
    return bool({*names} & {*CLUTTER}) or names[-1] in CLUTTER_FILES or names[-1].startswith("._")


def _read_zip_name(info: zipfile.ZipInfo) -> str:
    """Return an entry's path. A name without the flag of UTF-8 is UTF-8 all the same where it can be."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _join(path: str, inner: str) -> str:
    """Return the path of a file in an archive, without parts that lead upwards or name a drive."""
    parts = [part for part in inner.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    kept = "/".join(part[-MOST_NAME:] for part in parts)[-MOST_NAME:]
    return f"{path}/{spelled(kept)}"


def _make_time(fields: tuple[int, int, int, int, int, int]) -> datetime.datetime | None:
    try:
        return datetime.datetime(*fields)
    except ValueError:
        return None


def _make_time_of(seconds: float) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


def _describe_excess(budget: _Budget) -> str:
    if budget.files <= 0:
        return f"it has more than {MOST_FILES:,} files"
    return f"its files have more than {MOST_BYTES >> 20} MiB together"


def _shorten(error: BaseException) -> str:
    return str(error)[:100] or type(error).__name__
