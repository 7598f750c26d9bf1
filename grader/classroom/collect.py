"""Sort what was handed in: each student and problem of a course is in exactly one state."""

from __future__ import annotations

import datetime
import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from grader.classroom.course import Course
from grader.classroom.roster import Names, Student
from grader.classroom.sources import Found
from grader.classroom.unpack import LeftOut, is_archive

MOST_SUBMISSION = 256 << 10  # bytes that the grader reads of one
SURE = 0.75  # how alike a name and a problem's must be to be meant
# What begins a file of another kind -> what it is
KINDS = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\xd0\xcf\x11\xe0", "a document of an office program"),
    (b"{\\rtf", "a document of a word processor"),
    (b"\x7fELF", "a compiled program"),
)


class State(StrEnum):
    """What there is of one student for one problem."""

    attempt = "attempt"
    unreadable = "unreadable"
    wrong_name = "wrong_name"
    missing = "missing"


@dataclass(frozen=True)
class Attempt:
    """A file that can be graded. path: in its source; at: when it was handed in, in UTC, None if nothing says so."""

    student: str
    problem: str
    path: str
    data: bytes
    at: datetime.datetime | None
    late: bool = False

    @property
    def sha256(self) -> str:
        """Return the digest of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Remark:
    """A file that cannot be graded, and why, in a sentence. problem: of which it would be; "" if nothing says so."""

    student: str
    problem: str
    path: str
    state: State
    why: str


@dataclass
class Collected:
    """Everything of one source. attempts: the oldest of each student and problem first. strangers: files of nobody on
    the class list, and files that could not be read, with a sentence on each.
    """

    attempts: list[Attempt] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    strangers: dict[str, str] = field(default_factory=dict)


def find_states(
    seen: Iterable[tuple[str, str, State]], students: Iterable[Student], course: Course
) -> dict[tuple[str, str], State]:
    """Return the state of each student and problem. seen: (student, problem, state) of what was handed in."""
    found = {(student.id, problem): State.missing for student in students for problem in course.problems}
    order = list(State)
    for student, problem, state in seen:
        key = student, problem
        if key in found and order.index(state) < order.index(found[key]):
            found[key] = state
    return found


def collect(files: Iterable[Found | LeftOut], students: Sequence[Student], course: Course) -> Collected:
    """Sort the files of a source by student and problem."""
    made, names = Collected(), Names(students)
    for one in files:
        if isinstance(one, LeftOut):
            made.strangers[one.path] = f"It was not read: {one.why}."
            continue
        owners = {found.id: found for person in one.who if (found := names.find(*person))}
        if not owners:
            made.strangers[one.path] = "Nobody on the class list is named by its place or name."
        for owner in owners:
            _sort(made, one, owner, course)
    made.attempts.sort(key=lambda each: (each.student, each.problem, each.at is not None, each.at, each.path))
    return made


def _sort(made: Collected, file: Found, student: str, course: Course) -> None:
    """Add one file of a student to what was collected."""
    problem, meant = find_problem(file, course)
    kind = find_kind(file)
    if problem and not kind:
        made.attempts.append(Attempt(student, problem, file.path, file.data, _to_utc(file.at, course), file.late))
    elif problem:
        made.remarks.append(Remark(student, problem, file.path, State.unreadable, kind))
    elif meant and file.name.lower().endswith(".py"):
        why = f"No problem of the course has the name {file.name}. Is {meant} meant?"
        made.remarks.append(Remark(student, meant, file.path, State.wrong_name, why))
    else:
        why = kind or f"No problem of the course has the name {file.name}."
        made.remarks.append(Remark(student, meant, file.path, State.unreadable if kind else State.wrong_name, why))


def find_problem(file: Found, course: Course) -> tuple[str, str]:
    """Return the problem that a file answers by its name or its folders', or else the one that is likely meant."""
    stem = file.name.rpartition(".")[0] or file.name
    for text in (stem, *reversed(file.folders)):
        for name in sorted(course.problems, key=len, reverse=True):  # the longest: groupnorm_backward is no groupnorm
            if re.search(rf"(?:^|[^a-zA-Z0-9]){re.escape(name)}(?:$|[^a-zA-Z0-9])", text):
                return name, ""
    return "", _guess(stem, course)


def _guess(stem: str, course: Course) -> str:
    """Return the problem whose name is most like a part of this one, "" if none is."""
    plain = {re.sub(r"[^a-z0-9]", "", name): name for name in course.problems}
    words = [word for word in re.split(r"[^a-z0-9]+", stem.lower()) if word]
    spans = ["".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
    best = max(
        (
            (difflib.SequenceMatcher(None, span, name).ratio(), len(name), name)
            for span in spans[:200]
            for name in plain
        ),
        default=(0.0, 0, ""),
    )
    return plain[best[2]] if best[0] >= SURE else ""


def find_kind(file: Found) -> str:
    """Return what a file is that is no Python program, in a sentence; "" if it may be one."""
    data, name = file.data, file.name
    what = next((words for begin, words in KINDS if data.startswith(begin)), "")
    if is_archive(data):
        office = b"word/" in data[:4096] or name.lower().endswith((".docx", ".odt", ".pages", ".xlsx"))
        what = "a document of a word processor" if office else "an archive, which was not unpacked"
    if _is_notebook(data):
        return f"{name} is a notebook. Put the code of its ModelNew, with imports and CUDA source, into a .py file."
    if what:
        return f"{name} is {what}. Hand in the Python file itself."
    if not name.lower().endswith(".py"):
        return f"{name} is no .py file. Hand in the whole submission as one Python file."
    if len(data) > MOST_SUBMISSION:
        return f"{name} has more than {MOST_SUBMISSION >> 10} KiB."
    return f"{name} holds bytes that no text has." if b"\0" in data else ""


def _is_notebook(data: bytes) -> bool:
    if data.lstrip()[:1] != b"{" or b'"cells"' not in data:
        return False
    try:
        return isinstance(json.loads(data).get("cells"), list)
    except (ValueError, RecursionError, AttributeError):
        return False


def _to_utc(at: datetime.datetime | None, course: Course) -> datetime.datetime | None:
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=course.zone)).astimezone(datetime.UTC)
