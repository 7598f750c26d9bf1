"""`grader class show`, `explain`, `adjust` and `export`: the grades, and where they come from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.options import course_option
from grader.cli.statuses import CANNOT

if TYPE_CHECKING:
    from grader.classroom.course import Course
    from grader.classroom.gradebook import Grade, Gradebook, Scored
    from grader.classroom.journal import Journal
    from grader.classroom.roster import Student


@contextlib.contextmanager
def open_class(folder: Path) -> Iterator[tuple[Journal, Course, list[Student]]]:
    """Yield the open database, the course and its students; exit with a sentence where one of them cannot be used."""
    from grader.classroom import journal, roster
    from grader.classroom.course import CourseError, read_course

    try:
        course = read_course(folder)
        students = roster.read_roster(folder / roster.FILE)
        with journal.Journal(folder) as kept:
            yield kept, course, students
    except (CourseError, roster.RosterError) as error:
        raise click.UsageError(str(error)) from None
    except journal.JournalError as error:
        click.echo(str(error), err=True)
        click.get_current_context().exit(CANNOT)


def percent(share: float | None) -> str:
    """Return a share as a table shows it."""
    return "–" if share is None else f"{100 * share:.1f} %"


@click.command(name="show")
@course_option
def show_grades(folder: Path) -> None:
    """Show the grades of all students, and how many attempts wait for a verdict.

    Exit status 2 if course.toml or roster.csv cannot be used, 3 if class.db cannot.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from grader.pictures.picture import count
    from grader.reports.terminal import line

    with open_class(folder) as (journal, course, students):
        book = _read(journal, course, students, folder)
    table = Table(box=None, pad_edge=False)
    for name in ("student", *course.problems, "total"):
        table.add_column(Text(name))
    for student in students:
        grades = [book.grades[student.id, name] for name in course.problems]
        row = [line(student.name), *map(_show_grade, grades), percent(book.total(student.id))]
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    console.print(table)
    waiting = sum(one.points is None for grade in book.grades.values() for one in grade.attempts)
    if waiting:
        console.print(f"{count(waiting, 'attempt')} without a verdict: `grader class grade` grades them.", markup=False)


def _show_grade(grade: Grade) -> str:
    if not grade.attempts:
        return f"{percent(grade.share)} ({grade.state.value.replace('_', ' ')})"
    late = f" ({grade.lateness.days} d late)" if grade.lateness.days else ""
    return percent(grade.share) + late


@click.command(name="explain")
@click.argument("student")
@click.argument("problem")
@course_option
def explain_grade(student: str, problem: str, folder: Path) -> None:
    """Show how the grade of STUDENT for PROBLEM comes about: each attempt, its stages, lateness and adjustments."""
    from grader.pictures.picture import count
    from grader.reports.terminal import clean

    with open_class(folder) as (journal, course, students):
        book = _read(journal, course, students, folder)
    grade = _find(book, student, problem)
    out = [f"{grade.student.name}, {problem}: {percent(grade.share)}"]
    for number, one in enumerate(grade.attempts, 1):
        out += _explain_attempt(number, one, one is grade.counted)
    if not grade.attempts:
        out.append(f"  {grade.state.value.replace('_', ' ')}")
    if days := grade.lateness.days:
        paid = f", {grade.lateness.free} of them free" if grade.lateness.free else ""
        out.append(f"  late: {count(days, 'day')} begun{paid}: times {grade.lateness.factor:.2f}")
    out += [f"  adjusted by {one.points:+g} on {one.at:%Y-%m-%d}: {one.because}" for one in grade.adjustments]
    for each in out:
        click.echo(clean(each))


def _explain_attempt(number: int, one: Scored, counts: bool) -> list[str]:
    """Return the lines on one attempt."""
    when = f"{one.attempt.handed_in:%Y-%m-%d %H:%M} UTC" if one.attempt.handed_in else "time unknown"
    out = [f"  attempt {number}, {when}, {one.attempt.path}{' (counts)' if counts else ''}"]
    if one.graded is None:
        return [*out, "    not graded yet"]
    if one.points is None:
        return [*out, "    the grader could not grade it"]
    for part in one.points.parts:
        out.append(f"    {part.stage.value:<9}{part.earned:7.2f} of {part.possible:g}  {part.why}".rstrip())
    out += [f"    {one.points.note}"] if one.points.note else []
    if stage := one.graded.verdict.first_problem:
        out.append(f"    {stage.name.value}: {stage.message.partition(chr(10))[0]}")
    again = f" again, because {one.graded.because}" if one.graded.because else ""
    return [*out, f"    graded{again} on {one.graded.at:%Y-%m-%d %H:%M} UTC, seed {one.graded.verdict.seed}"]


@click.command(name="adjust", context_settings={"ignore_unknown_options": True})
@click.argument("student")
@click.argument("problem")
@click.argument("points", type=float)
@click.option("--because", metavar="TEXT", required=True, help="Why: it is kept with the grade.")
@course_option
def adjust_grade(student: str, problem: str, points: float, because: str, folder: Path) -> None:
    """Add POINTS to what STUDENT earned for PROBLEM, or take them away: +5, -2.5. Lateness does not touch them."""
    from grader.classroom.gradebook import add_adjustment

    if not abs(points) <= 1e6:  # NaN is not
        raise click.UsageError(f"{points} is no number of points.")
    with open_class(folder) as (journal, course, students):
        before = _find(_read(journal, course, students, folder), student, problem)
        add_adjustment(journal, before, points, because)
        after = _find(_read(journal, course, students, folder), student, problem)
    click.echo(f"{before.student.name}, {problem}: {percent(before.share)} -> {percent(after.share)}")


@click.command(name="export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--canvas", "sheet", metavar="CSV", type=click.Path(path_type=Path), help="Canvas's export of its gradebook."
)
@click.option("--moodle", metavar="CSV", type=click.Path(path_type=Path), help="Moodle's grading worksheet.")
@click.option("--problem", metavar="NAME", help="That Moodle's worksheet is for.")
@click.option("--nbgrader", is_flag=True, help="FILE is nbgrader's gradebook.db, to which the grades are added.")
@course_option
def export_grades(
    file: Path, sheet: Path | None, moodle: Path | None, problem: str | None, nbgrader: bool, folder: Path
) -> None:
    """Write the grades to FILE as CSV: a row for each student and problem, in percent of what could be earned.

    With --canvas or --moodle FILE becomes a copy of that platform's own table with the grades filled in, for its
    import. In Canvas's, the columns are filled in whose names hold a problem's. With --nbgrader the grades are added
    to nbgrader's database; each problem is an assignment.

    Exit status 2 if nbgrader or the platform's table cannot be used, 3 if FILE cannot be written; what it held before
    stays then.
    """
    from grader.classroom.exports import ExportError, fill_canvas, fill_moodle, make_csv
    from grader.classroom.files import replace_file
    from grader.classroom.nbgrader import write_nbgrader
    from grader.classroom.roster import RosterError, read_text

    if (moodle is None) != (problem is None) or (sheet is not None) + (moodle is not None) + nbgrader > 1:
        raise click.UsageError("Give --canvas CSV, --moodle CSV with --problem NAME, --nbgrader, or none of them.")
    with open_class(folder) as (journal, course, students):
        book = _read(journal, course, students, folder)
    try:
        remarks: list[str] = []
        if sheet:
            text, remarks = fill_canvas(read_text(sheet), book, str(sheet))
        elif moodle and problem:
            text, remarks = fill_moodle(read_text(moodle), book, problem, str(moodle))
        elif nbgrader:
            text, remarks = None, write_nbgrader(file, book)
        else:
            text = make_csv(book)
    except (ExportError, RosterError) as error:
        raise click.UsageError(str(error)) from None
    try:
        if text is not None:
            replace_file(file, text)
    except OSError as error:
        click.echo(f"{file} cannot be written ({error.strerror}).", err=True)
        click.get_current_context().exit(CANNOT)
    for remark in remarks:
        click.echo(remark, err=True)
    click.echo(f"written: {file}")


def _read(journal: Journal, course: Course, students: list[Student], folder: Path) -> Gradebook:
    from grader.classroom.gradebook import read_gradebook

    return read_gradebook(journal, course, students, folder)


def _find(book: Gradebook, student: str, problem: str) -> Grade:
    """Return a grade. Raises UsageError for a student or a problem that the course does not have."""
    from grader.classroom.roster import Names

    if problem not in book.course.problems:
        raise click.UsageError(f"The course has no problem {problem}: it has {', '.join(book.course.problems)}.")
    found = Names(book.students).find(student)
    if found is None:
        raise click.UsageError(f"Nobody on the class list is called {student}.")
    return book.grades[found.id, problem]
