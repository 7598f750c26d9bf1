"""Are archives of strangers read whole and harmlessly, whatever they claim?"""

import datetime
import io
import os
import stat
import struct
import tarfile
import time
import zipfile
from typing import Any

import pytest

from grader.classroom import unpack as module
from grader.classroom.unpack import Handed, LeftOut, is_archive, unpack


def make_zip(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def make_tar(files: dict[str, bytes], mode: Any = "w:gz", *members: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 86400
            archive.addfile(info, io.BytesIO(data))
        for info in members:
            archive.addfile(info)
    return made.getvalue()


def read(data: bytes, name: str = "a.zip") -> tuple[dict[str, bytes], dict[str, str]]:
    """What was read, by path, and what was left out."""
    found = list(unpack(name, data))
    return (
        {one.path: one.data for one in found if isinstance(one, Handed)},
        {one.path: one.why for one in found if isinstance(one, LeftOut)},
    )


FILES = {"groupnorm.py": b"one", "deep/er/conv2d.py": b"two"}


@pytest.mark.parametrize(
    "make", [make_zip, make_tar, lambda files: make_tar(files, "w"), lambda f: make_tar(f, "w:xz")]
)
def test_files_are_read(make):
    """Is every file read, with its path below the archive's?"""
    assert is_archive(make(FILES))
    assert read(make(FILES)) == ({f"a.zip/{name}": data for name, data in FILES.items()}, {})


def test_archives_in_archives():
    """Are they unpacked, but not endlessly, and is a document that happens to be a zip left whole?"""
    data, document = make_zip(FILES), make_zip({"word/document.xml": b"<w/>"})
    for depth in range(1, 5):
        data = make_zip({f"{depth}.zip": data, "report.docx": document})
    files, left = read(data)
    assert files["a.zip/report.docx"] == document and "a.zip/4.zip/3.zip/report.docx" in files
    assert left == {"a.zip/4.zip/3.zip/2.zip": "more than 3 archives are in one another"}
    assert read(make_zip({"in.tar.gz": make_tar(FILES)}))[0].keys() == {f"a.zip/in.tar.gz/{name}" for name in FILES}


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize(
    "name, path",
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a/./b/../c.py", "a/b/c.py"),
        ("é/ü.py", "é/ü.py"),
    ],
)
def test_no_path_leads_out(make, name, path):
    assert read(make({name: b"x"})) == ({f"a.zip/{path}": b"x"}, {})


@pytest.mark.parametrize("name, shown", [("ü.py".encode(), "ü.py"), (b"\x81.py", "ü.py"), (b"a\xff\xfe.py", None)])
def test_names_without_the_flag_of_utf8(name, shown):
    """Is a name of an old zip program read as UTF-8 if it is, and as that program's code page if not?"""
    data = make_zip({"?" * len(name): b"x"}).replace(b"?" * len(name), name)
    ((path, content),) = read(data)[0].items()
    assert content == b"x" and (shown is None or path == f"a.zip/{shown}")


def test_names_of_a_tar_in_another_encoding():
    data = make_tar({"????.py": b"x"}, "w")
    header = bytearray(data[:512])
    header[:4] = b"\xff\xfe\x80a"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert read(bytes(header) + data[512:])[0] == {"a.zip/\\xff\\xfe\\x80a.py": b"x"}


def test_links_and_devices_are_left_out():
    """Is nothing read through a link in a zip or a tar?"""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo("link.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        plain = zipfile.ZipInfo("plain.py")
        plain.external_attr = (stat.S_IFREG | 0o644) << 16
        archive.writestr(plain, "x")
    assert read(made.getvalue()) == ({"a.zip/plain.py": b"x"}, {"a.zip/link.py": "it is a link or a device"})
    members = []
    for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)):
        info = tarfile.TarInfo(f"{number}.py")
        info.type, info.linkname = kind, "/etc/passwd"
        members.append(info)
    files, left = read(make_tar({"plain.py": b"x"}, "w", *members))
    assert files == {"a.zip/plain.py": b"x"} and set(left.values()) == {"it is a link or a device"} and len(left) == 4


def test_bombs_are_bounded(monkeypatch):
    """Does a file of many zeros, a lie on its size, and many files take bounded memory and time?"""
    monkeypatch.setattr(module, "MOST_FILE", 1 << 20)
    monkeypatch.setattr(module, "MOST_BYTES", 4 << 20)
    started = time.monotonic()
    zeros = bytes(64 << 20)
    files, left = read(make_zip({"zeros.bin": zeros, "after.py": b"x"}))
    assert files == {"a.zip/after.py": b"x"} and left == {"a.zip/zeros.bin": "it has more than 1 MiB"}
    files, left = read(make_tar({"zeros.bin": zeros, "after.py": b"x"}))
    assert not files and left["a.zip"] == "what comes after a.zip/zeros.bin was not read"
    files, left = read(make_zip({f"{n}.bin": bytes(1 << 20) for n in range(9)}))
    assert len(files) == 4 and left == {"a.zip": "its files have more than 4 MiB together"}
    monkeypatch.setattr(module, "MOST_FILES", 10)
    files, left = read(make_zip({f"{n}.py": b"" for n in range(20)}))
    assert len(files) == 10 and left == {"a.zip": "it has more than 10 files"}
    assert time.monotonic() - started < 10


def test_a_size_that_is_a_lie():
    """Is a file whose header says less than there is read no further than it says, or left out?"""
    data = bytearray(make_zip({"x.py": b"y" * 1000}))
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 10)
    files, left = read(bytes(data))
    assert len(files) + len(left) == 1 and all(len(one) <= 1000 for one in files.values())


def test_encrypted_files_are_named():
    data = bytearray(make_zip({"x.py": b"y"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    assert read(bytes(data)) == ({}, {"a.zip/x.py": "it is encrypted"})


@pytest.mark.parametrize(
    "make", [make_zip, make_tar, lambda files: make_tar(files, "w"), lambda f: make_tar(f, "w:xz")]
)
def test_damaged_archives_raise_nothing(make):
    """Does an archive cut off or changed anywhere give files and reasons, and no exception?"""
    whole = make(FILES | {"zeros": bytes(5000), "random": os.urandom(3000)})
    for length in range(0, len(whole), 37):
        list(unpack("a.zip", whole[:length]))
        changed = bytearray(whole)
        changed[length] ^= 0xFF
        list(unpack("a.zip", bytes(changed)))
    assert read(whole[:200])[1] or read(whole[:200])[0]


def test_clutter_is_not_handed_in():
    names = ["__MACOSX/._a.py", ".git/config", "x/__pycache__/a.pyc", ".DS_Store", "._b.py", "a.py"]
    assert list(read(make_zip(dict.fromkeys(names, b"x")))[0]) == ["a.zip/a.py"]


def test_times():
    """Is the time of a file what the archive says?"""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.py", (2026, 11, 24, 13, 30, 2)), "x")
    (found,) = unpack("a.zip", made.getvalue())
    assert isinstance(found, Handed) and found.changed == datetime.datetime(2026, 11, 24, 13, 30, 2)
    found, *_ = unpack("a.tar", make_tar(FILES))
    assert isinstance(found, Handed) and found.changed == datetime.datetime(1970, 1, 2)


def test_what_is_no_archive():
    assert not is_archive(b"import torch") and not is_archive(b"")
    assert list(unpack("a.zip", b"import torch")) == [LeftOut("a.zip", "it is no zip or tar archive")]
