"""The grades of a class, computed from attempts, verdicts and course.toml whenever they are read."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.collect import State, find_states
from grader.classroom.course import Course
from grader.classroom.gradings import Graded, Verdicts, find_keys
from grader.classroom.journal import Journal, Kept
from grader.classroom.lateness import Lateness, count_late_days, find_factor, find_lateness
from grader.classroom.roster import Student
from grader.classroom.scores import Score, score


@dataclass(frozen=True)
class Scored:
    """One attempt with its verdict. graded, points: None without a verdict on it."""

    attempt: Kept
    graded: Graded | None
    points: Score | None


@dataclass(frozen=True)
class Adjustment:
    """Points that an instructor added or took away, and why."""

    points: float
    because: str
    at: datetime.datetime


@dataclass
class Grade:
    """What a student has for a problem.

    possible: the points that could be earned. counted: the attempt that counts; None if there is none, or if it has no
    verdict yet.
    """

    student: Student
    problem: str
    state: State
    possible: float
    attempts: list[Scored] = field(default_factory=list)
    counted: Scored | None = None
    lateness: Lateness = field(default_factory=Lateness)
    adjustments: list[Adjustment] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Return how many attempts have no verdict."""
        return sum(one.points is None for one in self.attempts)

    @property
    def share(self) -> float | None:
        """Return what counts of what could be earned, 0 to 1, or more with adjustments; None while it is not known."""
        if self.counted is None and self.attempts:
            return None
        earned = self.counted.points.earned * self.lateness.factor if self.counted and self.counted.points else 0.0
        earned += sum(one.points for one in self.adjustments)
        return max(0.0, earned) / self.possible if self.possible else 0.0


@dataclass
class Gradebook:
    """All grades. grades: by student and problem, in the order of the class list and of the course."""

    course: Course
    students: Sequence[Student]
    grades: dict[tuple[str, str], Grade]

    def total(self, student: str) -> float | None:
        """Return the weighted mean of a student's shares, 0 to 1; None while a grade is not known."""
        weights = {name: rules.weight for name, rules in self.course.problems.items() if rules.weight}
        shares = [(self.grades[student, name].share, weight) for name, weight in weights.items()]
        if any(share is None for share, _ in shares):
            return None
        return statistics.fmean((share or 0.0 for share, _ in shares), [weight for _, weight in shares])


def read_gradebook(journal: Journal, course: Course, students: Sequence[Student], folder: Path) -> Gradebook:
    """Return the grades. folder: of the course. Raises JournalError."""
    verdicts = Verdicts(journal).read_last()
    attempts = [one for one in journal.attempts() if one.problem in course.problems]
    seen = [(one.student, one.problem, State.attempt) for one in attempts]
    seen += [(row[0], row[1], row[4]) for row in journal.remarks()]
    states = find_states(seen, students, course)
    known = {student.id: student for student in students}
    grades = {
        (student, problem): Grade(known[student], problem, state, sum(course.points_of(problem).by_stage().values()))
        for (student, problem), state in states.items()
    }
    for one, key in zip(attempts, find_keys(attempts, course, folder)):
        if grade := grades.get((one.student, one.problem)):
            grade.attempts.append(_score(one, verdicts.get(key), course))
    for student, problem, points, because, made in journal.read(
        "SELECT student, problem, points, because, made FROM adjustments ORDER BY number"
    ):
        if grade := grades.get((student, problem)):
            grade.adjustments.append(Adjustment(points, because, datetime.datetime.fromisoformat(made)))
    for student in students:
        _choose([grades[student.id, name] for name in course.problems], course)
    return Gradebook(course, students, grades)


def add_adjustment(journal: Journal, grade: Grade, points: float, because: str) -> None:
    """Keep points to add to a grade, and why. Raises JournalError."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with journal.writing():
        values = grade.student.id, grade.problem, points, because, now
        journal.connection.execute("INSERT INTO adjustments VALUES (NULL, ?, ?, ?, ?, ?)", values)


def _score(attempt: Kept, graded: Graded | None, course: Course) -> Scored:
    points = graded and score(graded.verdict, course.points_of(attempt.problem), course.speed_of(attempt.problem))
    return Scored(attempt, graded, points or None)


def _choose(grades: Iterable[Grade], course: Course) -> None:
    """Choose the attempts of one student that count, and take off what their lateness costs.

    The best is the one that is worth most if no free day is spent; of equal ones the first.
    """
    for grade in grades:
        among = grade.attempts[-1:] if course.counts == "last" else grade.attempts
        grade.counted = max(
            (one for one in among if one.points), key=lambda one: _find_worth(one, course), default=None
        )
        if grade.counted and grade.counted.points:
            grade.possible = grade.counted.points.possible
    counted = {grade.problem: grade.counted.attempt for grade in grades if grade.counted}
    lateness = find_lateness(course, {name: count_days(one, course) for name, one in counted.items()})
    for grade in grades:
        grade.lateness = lateness.get(grade.problem, grade.lateness)


def _find_worth(one: Scored, course: Course) -> float:
    days = count_days(one.attempt, course)
    return one.points.share * find_factor(days, days, course.late) if one.points else 0.0


def count_days(attempt: Kept, course: Course) -> int:
    """Return how many days late an attempt was: 1 if the platform calls it late and gives no time."""
    if attempt.handed_in is None:
        return int(attempt.late)
    return count_late_days(attempt.handed_in, course.due(attempt.problem), course.late.grace_minutes)
