"""Find who handed in what and when in the exports of course platforms, and in plain folders.

Each platform writes the student into the path of a file in its own way:

    Canvas      a zip of files: lovelaceada_LATE_4711_98765_groupnorm-1.py
    Moodle      a zip of folders or files: Ada Lovelace_815_assignsubmission_file/groupnorm.py
    Gradescope  a zip of folders: submission_123/groupnorm.py, and submission_metadata.yml with names and times
    folders     ada/groupnorm.py, or groupnorm/ada.py, or groupnorm_ada.py
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from grader.classroom.unpack import MOST_FILE, Handed, LeftOut, is_archive, is_clutter, unpack
from grader.verdict import spelled

METADATA = "submission_metadata.yml"
MOST_SOURCE = 4 << 30  # bytes of one export
_CANVAS = re.compile(r"(?P<name>[^_/]+)_(?:(?P<late>LATE)_)?(?P<user>\d+)_(?P<attachment>\d+)_(?P<file>[^/]+)")
_MOODLE = re.compile(r"(?P<name>[^/]+)_(?P<participant>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)")
_RESUBMITTED = re.compile(r"-\d{1,3}(?=\.[^.]+$)")  # what Canvas adds to the name of a second file


Person = tuple[str, ...]  # what names one person
People = Mapping[str, tuple[tuple[Person, ...], datetime.datetime | None]]  # of each folder, and its time


class SourceError(Exception):
    """A source cannot be read; the text is one sentence."""


@dataclass(frozen=True)
class Found:
    """One file of a source. who: what its place says on each of its students, the surest first. name: as they called
    it. folders: names around it that say neither. at: when it was handed in, as far as the source knows; without a time
    zone, in the course's. late: the platform says so.
    """

    path: str
    data: bytes
    name: str
    who: tuple[Person, ...]
    folders: tuple[str, ...] = ()
    at: datetime.datetime | None = None
    late: bool = False


def read_source(source: Path) -> Iterator[Found | LeftOut]:
    """Yield every file of a source, which is an export or a folder, and what cannot be read. Raises SourceError."""
    files: list[Handed] = []
    for one in _read_folder(source) if source.is_dir() else _read_file(source):
        if isinstance(one, LeftOut):
            yield one
        else:
            files.append(one)
    place = _choose_platform(files)
    for file in files:
        if (found := place(file)) is not None:
            yield found


def _read_file(source: Path) -> Iterator[Handed | LeftOut]:
    """Yield the files of an archive, or a single file."""
    try:
        if source.stat().st_size > MOST_SOURCE:
            raise SourceError(f"{source} has more than {MOST_SOURCE >> 30} GiB.")
        data = source.read_bytes()
    except OSError as error:
        raise SourceError(f"{source} cannot be read ({error.strerror}).") from None
    if not is_archive(data):
        raise SourceError(f"{source} is neither a folder nor a zip or tar archive.")
    yield from (_strip(one) for one in unpack(spelled(source.name), data))


def _read_folder(source: Path) -> Iterator[Handed | LeftOut]:
    """Yield the files in a folder and in the archives in it. No link is followed."""
    for folder, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            path = spelled(str(file.relative_to(source)))
            if is_clutter(path):
                continue
            yield from _read_one(file, path)


def _read_one(file: Path, path: str) -> Iterator[Handed | LeftOut]:
    if file.is_symlink() or not file.is_file():
        yield LeftOut(path, "it is a link or a device")
        return
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_FILE + 1)
            changed = datetime.datetime.fromtimestamp(os.fstat(opened.fileno()).st_mtime)
    except OSError as error:
        yield LeftOut(path, f"it cannot be read ({error.strerror})")
        return
    if len(data) > MOST_FILE:
        yield LeftOut(path, f"it has more than {MOST_FILE >> 20} MiB")
    elif path.lower().endswith((".zip", ".tar", ".tgz", ".gz", ".xz")) and is_archive(data):
        yield from unpack(path, data)
    else:
        yield Handed(path, data, changed)


def _strip(one: Handed | LeftOut) -> Handed | LeftOut:
    """Return it without the source's own name at the beginning of its path."""
    return replace(one, path=one.path.partition("/")[2] or one.path)


# --- who and when ---

Place = Callable[[Handed], Found | None]  # None: a file of the platform's own


def _choose_platform(files: Sequence[Handed]) -> Place:
    """Return what reads the places of these files.

    A platform is known by all of the outermost names, which students do not choose: one who hands in a folder that
    looks like another student's, or another list of names, is not believed.
    """
    root = os.path.commonpath([file.path for file in files]) if len(files) > 1 else ""
    listed = f"{root}/{METADATA}".removeprefix("/")
    if metadata := next((file for file in files if file.path == listed), None):
        people = _read_metadata(metadata.data)
        return lambda file: _place_of_gradescope(file, root, people)
    outermost = {file.path.partition("/")[0] for file in files}
    if all(map(_MOODLE.fullmatch, outermost)):
        return _place_of_moodle
    return _place_of_canvas if all(map(_CANVAS.fullmatch, outermost)) else _place_plainly


def _read_metadata(text: bytes) -> People:
    """Return the people and the time of each of Gradescope's folders."""
    try:
        table = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SourceError(f"{METADATA} cannot be read ({str(error)[:100]}).") from None
    found = {}
    for folder, entry in table.items() if isinstance(table, dict) else ():
        if isinstance(entry, dict):
            people = [one for one in entry.get(":submitters") or [] if isinstance(one, dict)]
            who = tuple(tuple(str(one[key]) for key in (":sid", ":email", ":name") if one.get(key)) for one in people)
            found[str(folder)] = who, _read_time(entry.get(":created_at"))
    return found


def _read_time(value: object) -> datetime.datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.replace(" UTC", "+00:00"))
        except ValueError:
            return None
    return value if isinstance(value, datetime.datetime) else None


def _place_of_gradescope(file: Handed, root: str, people: People) -> Found | None:
    folder, _, rest = file.path.removeprefix(f"{root}/" if root else "").partition("/")
    *folders, name = rest.split("/")
    who, at = people.get(folder, ((), None))
    return Found(file.path, file.data, name, who, tuple(folders), at or file.changed) if name else None


def _place_of_moodle(file: Handed) -> Found:
    outermost, *folders = file.path.split("/")
    match = _MOODLE.fullmatch(outermost)
    assert match
    name = folders.pop() if folders else match["file"]
    return Found(file.path, file.data, name, ((match["participant"], match["name"]),), tuple(folders), file.changed)


def _place_of_canvas(file: Handed) -> Found:
    outermost, *folders = file.path.split("/")
    match = _CANVAS.fullmatch(outermost)
    assert match
    name = folders.pop() if folders else _RESUBMITTED.sub("", match["file"])
    who = (match["user"], match["name"])
    return Found(file.path, file.data, name, (who,), tuple(folders), file.changed, bool(match["late"]))


def _place_plainly(file: Handed) -> Found:
    *folders, name = file.path.split("/")
    return Found(file.path, file.data, name, (tuple(_list_words(folders, name)),), tuple(folders), file.changed)


def _list_words(folders: Sequence[str], name: str) -> Iterator[str]:
    """Yield what may name a student in a plain path: each folder and the file, whole and divided."""
    for text in (*folders, name.rpartition(".")[0] or name):
        yield text
        for mark in "_-. ":
            parts = text.split(mark)
            for place in range(1, len(parts)):
                yield mark.join(parts[place:])
                yield mark.join(parts[:place])
