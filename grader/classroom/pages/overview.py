"""What the page of the course shows: grades, how they are distributed, and at which stage and why students fail."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.classroom.gradebook import Gradebook
from grader.classroom.pages.marks import Mark, make_mark, write_reason
from grader.verdict import EXPLANATIONS, Reason, StageName

BINS = 10  # of a distribution
MOST_LESSONS = 8  # rows of what to teach
MOST_SLOW = 10
SHADES = 5  # of the table of stages


@dataclass(frozen=True)
class Cell:
    """A student's work on one problem."""

    problem: str
    share: float | None
    mark: Mark
    days: int


@dataclass(frozen=True)
class Row:
    """A student in the table. page: the address of the student's page."""

    student: str
    name: str
    page: str
    total: float | None
    cells: list[Cell]


@dataclass(frozen=True)
class Lesson:
    """A reason for which students fail a problem, and how many. of: those whose attempt has a verdict."""

    problem: str
    stage: str
    reason: Reason
    count: int
    of: int

    @property
    def words(self) -> str:
        """Return the reason in words."""
        return write_reason(self.reason)

    @property
    def explanation(self) -> str:
        """Return a sentence on the reason."""
        return EXPLANATIONS[self.reason]


@dataclass(frozen=True)
class Distribution:
    """The grades of one problem. bins: how many students have 0 to 10 %, 10 to 20 %, and so on; 100 % is in the last.

    missing: students without an attempt, who are in no bin; waiting: without a verdict. ends: how many end at a stage,
    with the shade of each number.
    """

    problem: str
    bins: list[int]
    missing: int
    waiting: int
    passed: int
    median: float | None
    ends: list[tuple[str, int, int]]

    @property
    def bars(self) -> list[tuple[int, float]]:
        """Return the number and the height of each bar, 0 to 1."""
        return [(number, number / max(1, *self.bins)) for number in self.bins]

    @property
    def words(self) -> str:
        """Return the distribution in words."""
        step = 100 // BINS
        bins = [f"{n} from {at * step} to {(at + 1) * step} %" for at, n in enumerate(self.bins) if n]
        return f"Grades of {self.problem}: {', '.join(bins) or 'none'}; {self.missing} handed in nothing to grade."


@dataclass(frozen=True)
class Slow:
    """A grading that took long. page: of the student; stage: the one that took the longest."""

    name: str
    page: str
    problem: str
    seconds: float
    stage: str
    stage_seconds: float
    word: str


@dataclass(frozen=True)
class Overview:
    """Everything that the course's page shows."""

    rows: list[Row]
    lessons: list[Lesson]
    distributions: list[Distribution]
    slowest: list[Slow]
    mean: float | None
    handed_in: float
    waiting: int


def make_overview(book: Gradebook, pages: dict[str, str]) -> Overview:
    """Return what the page of the course shows. pages: the address of each student's page."""
    rows = [
        Row(
            student.id,
            student.name,
            pages[student.id],
            book.total(student.id),
            [_make_cell(book, student.id, name) for name in book.course.problems],
        )
        for student in book.students
    ]
    cells = [cell for row in rows for cell in row.cells]
    known = [row.total for row in rows if row.total is not None]
    grades = book.grades.values()
    return Overview(
        rows,
        _find_lessons(cells),
        [_make_distribution(name, [cell for cell in cells if cell.problem == name]) for name in book.course.problems],
        _find_slowest(book, pages),
        statistics.fmean(known) if known else None,
        sum(bool(grade.attempts) for grade in grades) / max(1, len(grades)),
        sum(one.points is None for grade in grades for one in grade.attempts),
    )


def _make_cell(book: Gradebook, student: str, problem: str) -> Cell:
    grade = book.grades[student, problem]
    return Cell(problem, grade.share, make_mark(grade), grade.lateness.days)


def _find_lessons(cells: Sequence[Cell]) -> list[Lesson]:
    """Return the reasons for which most students fail, those of the most first."""
    graded = Counter(cell.problem for cell in cells if cell.mark.word in ("passed", "failed"))
    failed = Counter(
        (cell.problem, cell.mark.stage.value, cell.mark.reason)
        for cell in cells
        if cell.mark.word == "failed" and cell.mark.stage and cell.mark.reason
    )
    return [
        Lesson(problem, stage, reason, count, graded[problem])
        for (problem, stage, reason), count in failed.most_common(MOST_LESSONS)
    ]


def _make_distribution(problem: str, cells: Sequence[Cell]) -> Distribution:
    words = Counter(cell.mark.word for cell in cells)
    attempted = [cell for cell in cells if cell.mark.word in ("passed", "failed", "not attempted")]
    shares = [cell.share for cell in attempted if cell.share is not None]
    bins = [0] * BINS
    for share in shares:
        bins[min(BINS - 1, int(share * BINS + 1e-9))] += 1
    ends = Counter(cell.mark.stage for cell in cells if cell.mark.word == "failed")
    most = max(1, len(attempted))
    return Distribution(
        problem,
        bins,
        words["missing"] + words["unreadable"] + words["wrong name"],
        words["waiting"],
        words["passed"],
        statistics.median(shares) if shares else None,
        [(stage.value, ends[stage], -(-SHADES * ends[stage] // most)) for stage in StageName],
    )


def _find_slowest(book: Gradebook, pages: dict[str, str]) -> list[Slow]:
    """Return the gradings that took the longest, each once; those of equal files under the first student's name."""
    seen = {}
    for grade in book.grades.values():
        for one in grade.attempts:
            if one.graded:
                seen.setdefault(one.graded.key, (grade, one.graded.verdict))
    most = sorted(seen.values(), key=lambda pair: -pair[1].seconds)[:MOST_SLOW]
    found = []
    for grade, verdict in most:
        stage = max(verdict.stages, key=lambda stage: stage.seconds, default=None)
        name, seconds = (stage.name.value, stage.seconds) if stage else ("", 0.0)
        word = write_reason(verdict.reason) or verdict.outcome.value.replace("_", " ")
        student = grade.student
        found.append(Slow(student.name, pages[student.id], grade.problem, verdict.seconds, name, seconds, word))
    return found


def list_reasons(overview: Overview) -> list[tuple[str, str]]:
    """Return the reasons in the table, as values and words, for its filter."""
    reasons = {cell.mark.reason for row in overview.rows for cell in row.cells if cell.mark.word == "failed"}
    return sorted((reason.value, write_reason(reason)) for reason in reasons if reason)


def list_words(overview: Overview) -> list[str]:
    """Return the states in the table, for its filter."""
    return sorted({cell.mark.word for row in overview.rows for cell in row.cells})
