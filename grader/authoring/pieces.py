"""Read every text in a folder, wherever it may be hidden: notebooks, archives, base64, caches, git's objects."""

from __future__ import annotations

import base64
import binascii
import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20  # of one file, packed or not
MOST_DEPTH = 5  # archives, and base64 in them, in one another
BASE64 = re.compile(rb"(?:[A-Za-z0-9+/_-]{40,}\s{0,4})+[A-Za-z0-9+/_-]*={0,2}")
PRINTABLE = re.compile(rb"[\t\n\r\x20-\x7e]{40,}")
GIT_HEADER = re.compile(rb"(?:blob|tree|commit|tag) \d+\0")
COMPRESSED = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ": lzma}
# Formats that only other programs can read.
CLOSED = {b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!": "a RAR archive", b"\x28\xb5\x2f\xfd": "compressed with zstd"}
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
DAMAGED += (NotImplementedError, RuntimeError, KeyError, IndexError)


@dataclass(frozen=True)
class Piece:
    """A text and where it stands. tags: of the notebook's cell that it is the source of."""

    place: str
    text: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unreadable:
    """What cannot be looked into, and why, as part of a sentence."""

    place: str
    why: str


Found = Piece | Unreadable


def read_folder(folder: Path) -> Iterator[Found]:
    """Yield every text below a folder, or in one file; equal contents once. Raises OSError."""
    seen: set[bytes] = set()
    files = [folder] if folder.is_file() else _list_files(folder)
    for file in files:
        place = file.name if file == folder else file.relative_to(folder).as_posix()
        if file.is_symlink() or not file.is_file():
            yield Unreadable(place, "it is a link or no file")
        elif file.suffix == ".pack" and file.parent.name == "pack":
            for data in _read_pack(file.parent.parent.parent):
                if data is None:
                    yield Unreadable(place, "git cannot read it")
                else:
                    yield from _read(f"{place}, an object", data, seen)
        elif file.stat().st_size > MOST_BYTES:
            yield Unreadable(place, f"it has more than {MOST_BYTES >> 20} MiB")
        else:
            yield from _read(place, file.read_bytes(), seen)


def _list_files(folder: Path) -> list[Path]:
    """Return all files below a folder, those of a repository's .git last."""
    found = [Path(at) / name for at, _, names in os.walk(folder) for name in names]
    found += [Path(at) / name for at, names, _ in os.walk(folder) for name in names if (Path(at) / name).is_symlink()]
    return sorted(found, key=lambda file: (".git" in file.parts, file))


def _read_pack(repository: Path) -> Iterator[bytes | None]:
    """Yield the objects of a git repository; None if git cannot read them."""
    command = ["git", f"--git-dir={repository}", "cat-file", "--batch-all-objects", "--batch"]
    try:
        out = io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    while header := out.readline().split():
        yield out.read(int(header[2]))
        out.read(1)


def _read(place: str, data: bytes, seen: set[bytes], depth: int = 0) -> Iterator[Found]:
    """Yield the texts of some bytes and of what is packed in them."""
    digest = hashlib.sha256(data).digest()
    if digest in seen or not data:
        return
    seen.add(digest)
    if depth > MOST_DEPTH:
        yield Unreadable(place, f"more than {MOST_DEPTH} archives are in one another")
        return
    if closed := next((words for begin, words in CLOSED.items() if data.startswith(begin)), None):
        yield Unreadable(place, f"it is {closed}")
        return
    try:
        inner = list(_unpack(data))
    except DAMAGED as error:
        inner = []
        yield Unreadable(place, f"it is damaged ({str(error)[:80] or type(error).__name__})")
    for name, content in inner:
        where = f"{place}, in it {name}" if name else place
        if content is None:
            yield Unreadable(where, f"it is a link, encrypted, or has more than {MOST_BYTES >> 20} MiB")
        else:
            yield from _read(where, content, seen, depth + 1)
    if not inner:
        yield from _read_text(place, data)
        for match in BASE64.finditer(data):
            if (decoded := _decode(match[0])) is not None:
                yield from _read(f"{place}, decoded from base64", decoded, seen, depth + 1)


def _unpack(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    """Yield the names and contents in an archive or a compressed file; None for what cannot be read. Raises DAMAGED."""
    if header := GIT_HEADER.match(data):
        yield "", data[header.end() :]
    elif zipfile.is_zipfile(io.BytesIO(data)):
        yield from _unpack_zip(data)
    elif data[257:262] == b"ustar":
        yield from _unpack_tar(data)
    elif module := next((module for begin, module in COMPRESSED.items() if data.startswith(begin)), None):
        with module.open(io.BytesIO(data)) as opened:
            content = opened.read(MOST_BYTES + 1)
        yield "", content if len(content) <= MOST_BYTES else None
    elif data[:1] == b"\x78" and data[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
        yield from _inflate(data)


def _inflate(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what zlib makes of the data, nothing if it only looks like zlib's."""
    try:
        content = zlib.decompressobj().decompress(data, MOST_BYTES)
    except zlib.error:
        return
    yield "", content


def _unpack_zip(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                yield info.filename, None
                continue
            with archive.open(info) as opened:
                content = opened.read(MOST_BYTES + 1)
            yield info.filename, content if len(content) <= MOST_BYTES else None


def _unpack_tar(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for info in archive:
            if info.isdir():
                continue
            opened = archive.extractfile(info) if info.isreg() and info.size <= MOST_BYTES else None
            yield info.name, opened.read() if opened else None


def _decode(text: bytes) -> bytes | None:
    """Return what base64 text stands for, None if it is no base64."""
    plain = re.sub(rb"\s", b"", text).translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


def _read_text(place: str, data: bytes) -> Iterator[Found]:
    """Yield the text of a file; of JSON and notebooks what their strings say; of other bytes what is printable."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        plain = data.replace(b"\0", b"") if data.count(b"\0") * 3 > len(data) else data  # UTF-16 without a mark
        yield Piece(place, "\n".join(part.decode("ascii") for part in PRINTABLE.findall(plain)))
        return
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _read_json(place, json.loads(text))
            return
        except (ValueError, RecursionError):
            pass
    yield Piece(place, text)


def _read_json(place: str, value: Any) -> Iterator[Piece]:
    """Yield the strings of a JSON value; a notebook's cell by cell. Raises RecursionError."""
    if isinstance(value, dict) and isinstance(value.get("cells"), list):
        for number, cell in enumerate(value["cells"], 1):
            yield from _read_cell(f"{place}, cell {number}", cell)
        value = {key: inner for key, inner in value.items() if key != "cells"}
    yield Piece(place, _join_strings(value))


def _read_cell(place: str, cell: Any) -> Iterator[Piece]:
    """Yield the texts of a notebook's cell: source, outputs, and everything else."""
    if not isinstance(cell, dict):
        yield Piece(place, _join_strings(cell))
        return
    rest = {key: inner for key, inner in cell.items() if key not in ("source", "outputs")}
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    names = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    yield Piece(place, _join_strings(cell.get("source", "")), names)
    yield Piece(f"{place}, output", _join_strings(cell.get("outputs", "")))
    yield Piece(f"{place}, metadata and attachments", _join_strings(rest))


def _join_strings(value: Any) -> str:
    """Return all strings of a JSON value, names of fields included, one below the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(part for key, inner in value.items() for part in (key, _join_strings(inner)))
    if isinstance(value, list):
        parts = [_join_strings(inner) for inner in value]
        return "".join(part if part.endswith("\n") else part + "\n" for part in parts)
    return ""
