"""Working copies: the lessons and exercises that a student opens and edits, in `mine/`, which git ignores.

The course's own files stay as they came, so that `git pull` meets no change of the student's. A copy follows the course
until the student changes it. What the lessons read besides (their modules, data, solutions) is linked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from grader.paths import MINE

KEPT = "kept"  # in MINE: what a reset has replaced
RECORD = ".originals.json"  # in MINE: of each copy the digest of the file that it was made from
COPIED = {"lessons": "*.ipynb", "kernels_student": "*.py"}
# Reached as ../NAME from a lesson, or from a page of docs and benchmarks. Nothing here may be called grader or simt: in
# a terminal in MINE, Python would import that folder.
LINKED = (
    *("benchmarks", "docs", "kernels_ref"),
    *("tests/specimens/WORDS.md", "tests/specimens/honest", "tests/test_rooms.py"),
)
UNKNOWN = ""  # in RECORD: a copy that may be the student's or an old version of the course's
PATIENCE = 10  # seconds for another JupyterLab that is being started
GIT_SECONDS = 20  # for one command
VERSIONS = 100  # of a file in the course's history that a copy is compared with, the newest first


class WorkingCopyError(Exception):
    """The copies cannot be made, in one sentence."""


def prepare(course: Path) -> list[str]:
    """Make or update the copies in a course's folder. Return a sentence for each that the student has changed and whose
    original is newer or gone, and which is kept, and for each that was damaged, the record among them. Raises
    WorkingCopyError.
    """
    with _opened(course) as (record, news):
        _link(course)
        originals = _list_originals(course)
        news += _leave_behind(course, record, {_name(course, original) for original in originals})
        for original in originals:
            name = _name(course, original)
            copy, new = course / MINE / name, _digest(original)
            if copy.is_file() and _read_cells(copy) is None and _read_cells(original) is not None:
                kept = _keep(course, copy)
                news.append(
                    f"{name} was damaged: JupyterLab could not have opened it. It was moved to {kept}, and the "
                    "course's version is in its place."
                )
            own = _digest(copy) if copy.is_file() else None
            made_from = record.get(name, new)
            if own in (None, made_from):  # not there yet, or unchanged
                if own != new:
                    _copy(original, copy)
                record[name] = new
            elif made_from == UNKNOWN and own != new:
                news.append(
                    f"{name} differs from the course's version, and it is not known whether you have changed it. Yours "
                    "is kept: 'Reset to the Course's Version' in JupyterLab's File menu takes the course's."
                )
            elif made_from != new and own != new:
                news.append(
                    f"{name} has a newer version. You have changed yours, which is kept: 'Reset to the Course's "
                    "Version' in JupyterLab's File menu takes the new one."
                )
            else:
                record[name] = new
        return news


def reset(course: Path, name: str) -> str:
    """Put the course's version in place of a copy; a changed one is moved to mine/kept/. Return what happened.

    name: the copy below `mine/`, as in `lessons/01_naive_conv.ipynb`. Raises WorkingCopyError; also if the course has
    no such file.
    """
    if name not in {_name(course, original) for original in _list_originals(course)}:
        raise WorkingCopyError(f"The course has no file {name}: only its lessons and exercises can be reset.")
    with _opened(course) as (record, news):
        original, copy, kept = course / name, course / MINE / name, None
        new = _digest(original)
        if copy.is_file() and _digest(copy) not in (new, record.get(name)):
            kept = _keep(course, copy)
        _copy(original, copy)
        record[name] = new
    moved = f" Yours is {kept}." if kept else ""
    return " ".join([f"{name} is the course's version again.{moved}", *news])


def find_course(folder: Path) -> Path:
    """Return the course that a folder of working copies belongs to; any other folder itself."""
    return folder.parent if folder.name == MINE and (folder / RECORD).is_file() else folder


def find_exercise(course: Path, name: str) -> Path | None:
    """Return the student's copy of `kernels_student/NAME.py` if it was changed, else None: the course's own file then
    says the same, and a student who works without JupyterLab edits that one.
    """
    file = f"kernels_student/{name}.py"
    copy = course / MINE / file
    try:
        made_from = (_read_record(course / MINE / RECORD) or {}).get(file)
        changed = copy.is_file() and _digest(copy) != (made_from or _digest(course / file))
    except OSError:
        return None
    return copy if changed else None


def name_both(copy: Path) -> str:
    """Return a sentence that names the graded file, if the course's own one has changed as well; else empty."""
    name, course = copy.parent.name + "/" + copy.name, copy.parent.parent.parent
    if copy.parent.parent.name != MINE:
        return ""
    try:
        made_from, own = (_read_record(course / MINE / RECORD) or {}).get(name), _digest(course / name)
    except OSError:
        return ""
    if made_from in (None, UNKNOWN, own):
        return ""
    return f"This is {MINE}/{name}. {name} has changed, too, and was not graded."


def _list_originals(course: Path) -> list[Path]:
    return [file for folder, names in COPIED.items() for file in sorted((course / folder).glob(names))]


def _name(course: Path, original: Path) -> str:
    return original.relative_to(course).as_posix()


def _leave_behind(course: Path, record: dict[str, str], present: set[str]) -> list[str]:
    """Remove unchanged copies of files that the course no longer has. Return a sentence for each changed one."""
    news = []
    for name in sorted(record.keys() - present):
        copy, made_from = course / MINE / name, record.pop(name)
        if not any(Path(name).match(f"{folder}/{names}") for folder, names in COPIED.items()) or ".." in name:
            continue  # the record is damaged: this was never a copy
        if copy.is_file() and _digest(copy) == made_from:
            copy.unlink()
        elif copy.is_file():
            news.append(f"The course has no {name} any more. You have changed yours, which stays where it is.")
    return news


def _keep(course: Path, copy: Path) -> Path:
    """Move a copy to mine/kept/. Return where it lies in the course's folder."""
    kept = _find_free(course / MINE / KEPT / copy.name)
    kept.parent.mkdir(exist_ok=True)
    copy.rename(kept)
    return kept.relative_to(course)


def _link(course: Path) -> None:
    """Link what the lessons read besides their own text: the files beside them, and some folders of the course. Remove
    links to what is gone.
    """
    for folder in {course / MINE / "lessons", *((course / MINE / name).parent for name in LINKED)}:
        for place in folder.iterdir() if folder.is_dir() else ():
            if place.is_symlink() and not place.exists():
                place.unlink()
    beside = [
        one for one in (course / "lessons").iterdir() if one.suffix != ".ipynb" and not one.name.startswith((".", "__"))
    ]
    for target in [*beside, *(course / name for name in LINKED)]:
        place = course / MINE / target.relative_to(course)
        if target.exists() and not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(os.path.relpath(target, place.parent))


@contextlib.contextmanager
def _opened(course: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Lock the copies and yield their record, which is written afterwards, and a sentence if it was damaged."""
    from filelock import FileLock, Timeout  # here: `grader check` only asks for a file

    folder = course / MINE
    try:
        folder.mkdir(exist_ok=True)
        with FileLock(folder / ".lock", timeout=PATIENCE):
            record, news = _read_record(folder / RECORD), []
            if record is None:
                record, news = _recover(course)
            yield record, news
            _write(folder / RECORD, json.dumps(record, indent=1).encode())
    except Timeout:
        raise WorkingCopyError(f"{folder} is in use by another program.") from None
    except OSError as error:
        place = error.filename2 or error.filename or folder
        reason = error.strerror or error
        raise WorkingCopyError(f"{place} cannot be written ({reason}): move it away and start again.") from None


def _read_record(file: Path) -> dict[str, str] | None:
    """Return the record; None if there is none or it is damaged."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        return None
    return record


def _recover(course: Path) -> tuple[dict[str, str], list[str]]:
    """Return a new record of the copies that there are, and a sentence if there was one before, which is moved to
    mine/kept/. A copy that is a version of the course's file in its history was made from that one.
    """
    record = {}
    for original in _list_originals(course):
        name = _name(course, original)
        copy = course / MINE / name
        if copy.is_file():
            own = _digest(copy)
            record[name] = own if own == _digest(original) or own in _list_earlier(course, name) else UNKNOWN
    file, what = course / MINE / RECORD, f"{MINE}/{RECORD}, the record of what your copies were made from,"
    if os.path.lexists(file):
        return record, [f"{what} was damaged. It was moved to {_keep(course, file)}, and a new one was written."]
    return record, [f"{what} was missing. A new one was written."] if record else []


def _list_earlier(course: Path, name: str) -> Iterator[str]:
    """Yield the digests of a file's versions in the course's history, the newest first; none without git."""
    for commit in _run_git(course, "log", f"--max-count={VERSIONS}", "--format=%H", "--", name).split():
        if content := _run_git(course, "show", f"{commit.decode()}:./{name}"):
            yield _digest_content(name, content)


def _run_git(course: Path, *words: str) -> bytes:
    """Return what a command of git prints; nothing if it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=course, capture_output=True, check=False, timeout=GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return b"" if done.returncode else done.stdout


def _digest(file: Path) -> str:
    """Return the SHA-256 of what a student may write in a file, as _digest_content does."""
    return _digest_content(file.name, file.read_bytes())


def _digest_content(name: str, content: bytes) -> str:
    """Return the SHA-256 of what a student may write in a file, whatever ends its lines: of a notebook, which
    JupyterLab writes anew when it is only opened, the cells without their outputs.
    """
    cells = _parse_cells(content) if name.endswith(".ipynb") else None
    content = content if cells is None else json.dumps(cells).encode()
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _read_cells(file: Path) -> list[tuple[str, str]] | None:
    """Return kind and source of a notebook's cells; None of another file, or a damaged one."""
    return _parse_cells(file.read_bytes()) if file.suffix == ".ipynb" else None


def _parse_cells(content: bytes) -> list[tuple[str, str]] | None:
    """Return kind and source of a notebook's cells; None of a damaged one."""
    try:
        cells = json.loads(content)["cells"]
        return [(cell["cell_type"], "".join(cell["source"]).replace("\r\n", "\n")) for cell in cells]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _copy(original: Path, copy: Path) -> None:
    _write(copy, original.read_bytes())
    shutil.copymode(original, copy)


def _write(file: Path, content: bytes) -> None:
    """Write a file at once or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.new")
    draft.write_bytes(content)
    os.replace(draft, file)


def _find_free(path: Path) -> Path:
    """Return the first of NAME_1, NAME_2, … that does not exist."""
    number = 1
    while os.path.lexists(found := path.with_name(f"{path.stem}_{number}{path.suffix}")):
        number += 1
    return found
