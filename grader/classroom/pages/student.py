"""What a student's page shows: each problem's verdict, code, speed, hints, and how the grade came about."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from grader.classroom.course import Course
from grader.classroom.gradebook import Adjustment, Grade, Gradebook, Scored, count_days
from grader.classroom.journal import Journal
from grader.classroom.pages.marks import Mark, find_verdict, make_mark, mark_verdict, write_reason
from grader.classroom.pages.speeds import Place, Quartiles, Speed
from grader.classroom.pages.text import make_address
from grader.classroom.roster import Student, make_key
from grader.classroom.scores import Part
from grader.diagnosis import hints
from grader.reports import feedback
from grader.reports.terminal import OUTPUT_LINES
from grader.source.syntax import split_lines
from grader.verdict import EXPLANATIONS, Outcome, Reason, Stage, Status, Verdict

MOST_LINES = 4000  # of a submission that a page shows
MOST_NOTES = 3  # evidence of a stage that is noted in the code
WITHHELD = "The reason names another student. Ask who teaches the course."


@dataclass(frozen=True)
class Shared:
    """What the pages of all students need. remarks: (student, problem) -> sentences on files that cannot be graded.

    speeds, quartiles: by problem; boards: of the problems that have a leaderboard.
    """

    book: Gradebook
    journal: Journal
    remarks: dict[tuple[str, str], list[str]]
    speeds: dict[str, dict[str, Speed]]
    quartiles: dict[str, Quartiles]
    boards: dict[str, list[Place]]


@dataclass(frozen=True)
class StageRow:
    """One stage of a verdict with its points; part is None where it has none."""

    name: str
    status: str
    remark: str
    part: Part | None


@dataclass(frozen=True)
class AttemptRow:
    """One attempt. when, worth: in words; file: without folders, which a platform names after people."""

    number: int
    when: str
    file: str
    mark: Mark | None
    points: str
    days: int
    counts: bool


@dataclass(frozen=True)
class Line:
    """One line of the submission. notes: what was found there; marked: whether it is shown as wrong."""

    text: str
    marked: bool
    notes: list[str]


@dataclass
class Section:
    """One problem on a student's page."""

    name: str
    grade: Grade
    mark: Mark
    attempts: list[AttemptRow]
    remarks: list[str]
    adjustments: list[Adjustment]
    stages: list[StageRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parts: list[tuple[str, object]] = field(default_factory=list)
    output: str = ""
    hints: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    left_out: int = 0
    speed: Speed | None = None
    quartiles: Quartiles | None = None
    measured: list[tuple[str, str]] = field(default_factory=list)
    place: Place | None = None

    @property
    def marked(self) -> list[int]:
        """Return the lines of the submission that are marked, from 1."""
        return [number for number, line in enumerate(self.lines, 1) if line.marked]


def make_sections(student: Student, shared: Shared) -> list[Section]:
    """Return what a student's page shows, in the order of the course."""
    return [_make_section(shared.book.grades[student.id, name], shared) for name in shared.book.course.problems]


def _make_section(grade: Grade, shared: Shared) -> Section:
    student, name, course = grade.student, grade.problem, shared.book.course
    made = Section(
        name,
        grade,
        make_mark(grade),
        [_make_attempt(number, one, grade, course) for number, one in enumerate(grade.attempts, 1)],
        [] if grade.attempts else shared.remarks.get((student.id, name), []),
        [_withhold(one, student, shared.book.students) for one in grade.adjustments],
    )
    made.speed, made.quartiles = shared.speeds[name].get(student.id), shared.quartiles.get(name)
    made.place = next((place for place in shared.boards.get(name, []) if place.student == student.id), None)
    verdict = find_verdict(grade)
    if verdict is not None and grade.counted is not None:
        source = shared.journal.content(grade.counted.attempt.sha256).decode("utf-8-sig", "replace")
        _add_verdict(made, verdict, grade.counted, source)
    return made


def _make_attempt(number: int, one: Scored, grade: Grade, course: Course) -> AttemptRow:
    points = f"{one.points.earned:.4g} of {one.points.possible:.4g}" if one.points else "–"
    return AttemptRow(
        number,
        write_time(one.attempt.handed_in, course),
        PurePosixPath(one.attempt.path.replace("\\", "/")).name,
        mark_verdict(one.graded.verdict) if one.graded and one.points else None,
        points,
        count_days(one.attempt, course),
        one is grade.counted,
    )


def write_time(at: datetime.datetime | None, course: Course) -> str:
    """Return a time in the course's time zone."""
    return at.astimezone(course.zone).strftime("%Y-%m-%d %H:%M %Z") if at else "time unknown"


def _withhold(one: Adjustment, student: Student, students: Sequence[Student]) -> Adjustment:
    """Return an adjustment whose reason names no other student, not even by a part of the name."""
    others = [other for other in students if other is not student]
    known = {word for other in others for word in _list_words(f"{other.name} {other.id} {other.email}")}
    said = _list_words(one.because) - _list_words(f"{student.name} {student.id}")
    whole = {make_key(name) for other in others for name in (other.name, other.id)}
    inside = any((len(name) > 4 or not name.isascii()) and name in make_key(one.because) for name in whole)
    return Adjustment(one.points, WITHHELD, one.at) if said & known or inside else one


def _list_words(text: str) -> set[str]:
    """Return the words of a text that are long enough for a name."""
    return {word for word in re.split(r"[\W_]+", text.casefold()) if len(word) > 2}


# --- the verdict that counts ---


def _add_verdict(made: Section, verdict: Verdict, counted: Scored, source: str) -> None:
    """Add what the verdict on the attempt that counts says."""
    parts = {part.stage: part for part in counted.points.parts} if counted.points else {}
    made.stages = [
        StageRow(one.name.value, one.status.value, _remark(one), parts.get(one.name)) for one in verdict.stages
    ]
    made.notes = [stage.message for stage in verdict.stages if stage.status is Status.passed and stage.message]
    made.parts, marked = _explain(verdict, source)
    if verdict.outcome is not Outcome.passed:
        made.output = "\n".join(line[:200] for line in verdict.output.strip().split("\n")[-OUTPUT_LINES:])
    tries = sum(mark is not None and mark.word == "failed" for mark in (one.mark for one in made.attempts))
    made.hints = hints.of(verdict)[:tries]
    made.lines, made.left_out = _make_lines(source, _find_notes(verdict), marked)
    made.measured = [
        (one.name, f"{one.value:.4g} {one.unit}") for stage in verdict.stages for one in stage.measurements
    ]


def _remark(stage: Stage) -> str:
    """Return what a stage says next to its points."""
    if stage.reason is Reason.not_reached:
        return "not reached" if stage.message in ("", EXPLANATIONS[Reason.not_reached]) else stage.message
    if stage.status is Status.skipped:
        return stage.message or write_reason(stage.reason)
    right = sum(case.status is Status.passed for case in stage.cases)
    cases = f"{right} of {len(stage.cases)} cases right" if stage.cases else ""
    return ", ".join(filter(None, (write_reason(stage.reason), cases)))


def _explain(verdict: Verdict, source: str) -> tuple[list[tuple[str, object]], set[int]]:
    """Return the report's parts on what did not pass, as the templates show them, and the lines that they mark."""
    try:
        parts = feedback.failure_parts(verdict, source, _draw(verdict))
        shown = [_convert(part) for part in parts]
    except Exception as error:  # whatever one submission does to the analysis of its text, the class gets its pages
        stage = verdict.first_problem
        note = f"The lines could not be analysed ({type(error).__name__})."
        parts = [feedback.Words(stage.message if stage else ""), feedback.Words(note, "soft")]
        shown = [_convert(part) for part in parts]
    marked = {n for part in parts if isinstance(part, feedback.Code) for n, _, wrong in part.lines if wrong}
    return shown, marked


def _draw(verdict: Verdict) -> Sequence[feedback.Drawn]:
    """Return the pictures that explain a verdict; none without matplotlib, which the lessons bring."""
    with contextlib.suppress(ImportError):
        from grader import pictures

        return pictures.explain_verdict(verdict)
    return []


def _convert(part: object) -> tuple[str, object]:
    """Return a part of a report with the name by which the templates know it."""
    if isinstance(part, feedback.Image):
        return "image", {"alt": part.picture.alt, "address": make_address(part.picture.svg())}
    return type(part).__name__.lower(), part


def _find_notes(verdict: Verdict) -> dict[int, list[str]]:
    """Return what was found at each line of the submission."""
    found: dict[int, list[str]] = {}
    for stage in verdict.stages:
        if stage.status not in (Status.failed, Status.error):
            continue
        for number, one in enumerate(stage.evidence[:MOST_NOTES]):
            if one.line:
                text = stage.message.partition("\n")[0] if number == 0 else write_reason(stage.reason)
                notes = found.setdefault(one.line, [])
                notes += [f"{stage.name.value}: {text}"] if not any(text in note for note in notes) else []
    return found


def _make_lines(source: str, notes: dict[int, list[str]], marked: set[int]) -> tuple[list[Line], int]:
    """Return the lines of a submission, and how many are left out."""
    lines = split_lines(feedback.cut_lines(source))
    shown = [
        Line(text, number in marked or number in notes, notes.get(number, []))
        for number, text in enumerate(lines[:MOST_LINES], 1)
    ]
    return shown, len(lines) - len(shown)
