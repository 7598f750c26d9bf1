"""Read the class list, and find the student whom a platform names in its own way."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "roster.csv"
MOST_BYTES = 16 << 20
MOST_STUDENTS = 20_000

# What a column is called, in lower case -> what it is. Among them are Canvas's gradebook, Moodle's grading worksheet,
# and Gradescope's roster.
COLUMNS = {
    "id": "platform id",
    "student id": "id",
    "sis user id": "id",
    "sid": "id",
    "id number": "id",
    "matriculation": "id",
    "login": "login",
    "sis login id": "login",
    "username": "login",
    "user name": "login",
    "github": "login",
    "name": "name",
    "full name": "name",
    "student": "name",
    "first name": "first",
    "given name": "first",
    "last name": "last",
    "surname": "last",
    "family name": "last",
    "email": "email",
    "email address": "email",
    "e-mail": "email",
    "canvas id": "platform id",
    "identifier": "platform id",
    "participant": "platform id",
    "user id": "platform id",
}
NO_STUDENTS = {"points possible", "student, test", "test student", ""}


class RosterError(Exception):
    """The class list cannot be used; the text is one sentence."""


@dataclass(frozen=True)
class Student:
    """One student. id: unique in the class; others: what else platforms name the student by: login, number, mail."""

    id: str
    name: str
    email: str = ""
    others: frozenset[str] = frozenset()

    def list_keys(self) -> set[str]:
        """Return everything that names this student, as make_key() writes it."""
        words = self.name.replace(",", " ").split()
        turned = [*words[-1:], *words[:-1]]  # Canvas writes the last name first
        names = {self.name, " ".join(turned)}
        if "," in self.name:
            last, _, first = self.name.partition(",")
            names.add(f"{first} {last}")
        return {make_key(text) for text in (self.id, self.email, *self.others, *names)} - {""}


def make_key(text: str) -> str:
    """Return a text without case, spaces, accents' encoding and punctuation, in which platforms differ."""
    plain = unicodedata.normalize("NFC", text).casefold()
    return re.sub(r"[^\w@.+-]|_", "", plain).replace("participant", "", 1)


def read_roster(file: Path) -> list[Student]:
    """Return the students of a class list. Raises RosterError."""
    if not file.exists():
        raise RosterError(
            f"{file} is not there: put the class list in it, as Canvas, Moodle or Gradescope exports it, or a CSV file "
            "with the columns id and name."
        )
    return parse_roster(read_text(file), str(file))


def read_text(file: Path) -> str:
    """Return the text of a platform's CSV file. Raises RosterError."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise RosterError(f"{file} cannot be read ({error.strerror}).") from None
    if len(data) > MOST_BYTES:
        raise RosterError(f"{file} has more than {MOST_BYTES >> 20} MiB: is it a class list?")
    return _decode(data)


def _decode(data: bytes) -> str:
    """Return the text of a CSV file: UTF-8, UTF-16 with a mark, or what spreadsheets on Windows write."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def parse_roster(text: str, name: str = FILE) -> list[Student]:
    """Return the students of a CSV text. name: of the text in messages. Raises RosterError."""
    table = parse_table(text, name)
    kinds = find_kinds(table[0][1])
    if not {"id", "email", "login"} & {*kinds}:
        raise RosterError(f"{name}, line 1: no column names a student: call one id, email or login.")
    students = [made for line, row in table[1:] if (made := _make_student(kinds, row, name, line))]
    if not students:
        raise RosterError(f"{name} has no students.")
    if len(students) > MOST_STUDENTS:
        raise RosterError(f"{name} has more than {MOST_STUDENTS:,} students.")
    _check_unique(students, name)
    return students


def parse_table(text: str, name: str) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV text that hold anything, with their lines; the first names the columns."""
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        table = [(rows.line_num, row) for row in rows if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise RosterError(f"{name}, line {rows.line_num}: this is no CSV ({error}).") from None
    if not table:
        raise RosterError(f"{name} is empty. Its first line names the columns, such as id,name,email.")
    return table


def find_kinds(header: Sequence[str]) -> list[str]:
    """Return what each column says of a student: a value of COLUMNS, or "" for any other."""
    kinds = [COLUMNS.get(" ".join(cell.split()).lower(), "") for cell in header]
    if "id" not in kinds and "platform id" in kinds:  # a column "id" and no other one
        kinds[kinds.index("platform id")] = "id"
    return kinds


def _make_student(kinds: Sequence[str], row: Sequence[str], name: str, line: int) -> Student | None:
    """Return the student of a row; None for what platforms add to their lists."""
    cells: dict[str, list[str]] = {}
    for kind, cell in zip(kinds, row):
        if cell.strip():
            cells.setdefault(kind, []).append(" ".join(cell.split()))

    def first(kind: str) -> str:
        return cells.get(kind, [""])[0]

    full = first("name") or f"{first('first')} {first('last')}".strip()
    key = first("id") or first("login") or first("email")
    if not key and full.lower() in NO_STUDENTS:
        return None
    if not key:
        raise RosterError(f"{name}, line {line}: {full} has no id, login or email.")
    others = {text for kind in ("id", "login", "email", "platform id") for text in cells.get(kind, [])} - {key}
    return Student(key, full or key, first("email"), frozenset(others))


def _check_unique(students: Sequence[Student], name: str) -> None:
    seen: set[str] = set()
    for student in students:
        if make_key(student.id) in seen:
            raise RosterError(f"{name}: two students have the id {student.id}.")
        seen.add(make_key(student.id))


class Names:
    """Finds students by what a platform calls them."""

    def __init__(self, students: Iterable[Student]):
        self.known: dict[str, set[Student]] = {}
        for student in students:
            for key in student.list_keys():
                self.known.setdefault(key, set()).add(student)

    def find(self, *texts: str) -> Student | None:
        """Return the student whom the first of these texts names that names exactly one; None if none does."""
        for text in texts:
            found = self.known.get(make_key(text), set())
            if len(found) == 1:
                return next(iter(found))
        return None
