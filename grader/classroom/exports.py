"""Grades as the tables that spreadsheets and course platforms read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from grader.classroom.gradebook import Gradebook
from grader.classroom.roster import Names, Student, find_kinds, parse_table

HEADER = ("id", "name", "email", "problem", "state", "percent", "days_late", "attempts", "reason", "total")
POINTS = "points possible"  # begins the row of Canvas's table that says what each column is worth
KEPT = ("student", "id", "sis user id", "sis login id", "section")  # columns by which Canvas finds a student again
FORMULA = ("=", "+", "-", "@", "\t", "\r")
MOST_NAMED = 5  # students that a sentence names


class ExportError(Exception):
    """A platform's table cannot be filled in; the text is one sentence."""


def make_csv(book: Gradebook) -> str:
    """Return the grades as CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    rows: list[Sequence[object]] = [HEADER]
    for (student, problem), grade in book.grades.items():
        verdict = grade.counted.graded.verdict if grade.counted and grade.counted.graded else None
        reason = verdict.reason.value if verdict and verdict.reason else ""
        cells = [
            *(student, grade.student.name, grade.student.email, problem, grade.state.value),
            *(_write(grade.share, 100), grade.lateness.days, len(grade.attempts)),
            *(reason, _write(book.total(student), 100)),
        ]
        rows.append([f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell for cell in cells])
    return _join(rows)


def fill_canvas(text: str, book: Gradebook, name: str) -> tuple[str, list[str]]:
    """Return Canvas's gradebook with the grades filled in, as it imports it, and sentences on what could not be.

    Of its columns those stay that name students, and those whose names hold a problem's: Canvas leaves the others as
    they are. name: of the text in messages.
    """
    table = [row for _, row in parse_table(text, name)]
    worth = next((row for row in table[1:] if row[0].strip().lower() == POINTS), None)
    if worth is None:
        raise ExportError(f'{name} has no row "Points Possible": export the whole gradebook from Canvas.')
    header, kinds = table[0], find_kinds(table[0])
    columns = {at: problem for at, cell in enumerate(header) if (problem := _find_problem(cell, book))}
    if not columns:
        problems = ", ".join(book.course.problems)
        raise ExportError(f"No column of {name} holds the name of a problem: {problems}. Name the assignments so.")
    kept = [at for at, cell in enumerate(header) if cell.strip().lower() in KEPT or at in columns]
    names, found = Names(book.students), set()
    rows: list[Sequence[object]] = []
    for number, given in enumerate(table):
        row = [*given, *[""] * (len(header) - len(given))]
        student = None if not number or given is worth else _identify(row, kinds, names)
        if student is not None:
            found.add(student.id)
            for at, problem in columns.items():
                row[at] = _write(book.grades[student.id, problem].share, _read_points(worth, at, name))
        rows.append([row[at] for at in kept])
    absent = [problem for problem in book.course.problems if problem not in columns.values()]
    remarks = [f"No column of {name} holds the name {problem}: its grades are not in the file." for problem in absent]
    return _join(rows), remarks + _name_missing(book, found, name)


def fill_moodle(text: str, book: Gradebook, problem: str, name: str) -> tuple[str, list[str]]:
    """Return Moodle's grading worksheet of one assignment with the grades filled in, and sentences on what could not.

    name: of the text in messages.
    """
    if problem not in book.course.problems:
        raise ExportError(f"The course has no problem {problem}: it has {', '.join(book.course.problems)}.")
    table = [row for _, row in parse_table(text, name)]
    header = [cell.strip().lower() for cell in table[0]]
    if not {"grade", "maximum grade"} <= {*header}:
        raise ExportError(f'{name} has no columns "Grade" and "Maximum grade": is it Moodle\'s grading worksheet?')
    grade, maximum, kinds = header.index("grade"), header.index("maximum grade"), find_kinds(table[0])
    names, found = Names(book.students), set()
    for row in table[1:]:
        row += [""] * (len(header) - len(row))
        if student := _identify(row, kinds, names):
            found.add(student.id)
            row[grade] = _write(book.grades[student.id, problem].share, _read_points(row, maximum, name))
    return _join(table), _name_missing(book, found, name)


def _find_problem(column: str, book: Gradebook) -> str:
    """Return the problem whose name a column's holds, the longest; "" if it holds none."""
    words = re.sub(r"[^a-z0-9]+", "_", column.lower())
    fitting = [name for name in book.course.problems if re.search(rf"(?:^|_){name}(?:_|$)", words)]
    return max(fitting, key=len, default="")


def _identify(row: Sequence[str], kinds: Sequence[str], names: Names) -> Student | None:
    """Return the student of a row: by what is unique first, by the name last."""
    cells = [(kind == "name", cell) for kind, cell in zip(kinds, row) if kind and cell.strip()]
    return names.find(*(cell for _, cell in sorted(cells, key=lambda each: each[0])))


def _read_points(row: Sequence[str], at: int, name: str) -> float:
    try:
        return float(row[at].replace(",", "."))
    except (IndexError, ValueError):
        raise ExportError(f"{name} does not say how many points column {at + 1} is worth.") from None


def _write(share: float | None, points: float) -> str:
    """Return a grade in points; empty while it is not known, so that the platform keeps what it has."""
    return "" if share is None else f"{share * points:.2f}"


def _name_missing(book: Gradebook, found: set[str], name: str) -> list[str]:
    missing = [student.name for student in book.students if student.id not in found]
    if not missing:
        return []
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    return [f"Not in {name}: {', '.join(missing[:MOST_NAMED])}{more}."]


def _join(rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()
