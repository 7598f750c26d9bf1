"""The command group `grader class`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.class_autograder import pack_autograder, write_result
from grader.cli.class_grade import grade_class, regrade_class
from grader.cli.class_grades import adjust_grade, explain_grade, export_grades, show_grades
from grader.cli.class_pages import make_pages
from grader.cli.class_release import find_class_leaks, release_course
from grader.cli.class_similar import rank_similar
from grader.cli.options import course_option

if TYPE_CHECKING:
    from grader.classroom.collect import State
    from grader.classroom.course import Course

MOST_SHOWN = 20  # sentences on files that cannot be graded


@click.group(name="class")
def class_group() -> None:
    """Grade a class: one folder with course.toml, what was handed in, and the grades."""


GRADES = (grade_class, regrade_class, show_grades, explain_grade, adjust_grade, export_grades)
for command in (*GRADES, pack_autograder, write_result, rank_similar, make_pages, release_course, find_class_leaks):
    class_group.add_command(command)


@class_group.command(name="init")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--title", default="GPU kernels", show_default=True, help="The course's name.")
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Of the deadlines: Europe/Zurich.")
@click.option(
    "--problem", "problems", metavar="NAME", multiple=True, help="May be repeated; without it, every exercise."
)
def init_course(folder: Path, title: str, timezone: str, problems: tuple[str, ...]) -> None:
    """Write FOLDER/course.toml, in which each rule has its usual value and a comment.

    Exit status 2, with nothing written, if there is one already, or if a name is unknown.
    """
    from grader.classroom import course, new_course

    try:
        file = new_course.write_course(folder, title, timezone, list(dict.fromkeys(problems)))
    except course.CourseError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"written: {file}")
    click.echo(
        f"Next: edit it, run `grader class check {folder}`, and put the class list into {folder / 'roster.csv'}."
    )


@class_group.command(name="check")
@click.argument("folder", type=click.Path(path_type=Path), default=".")
def check_course(folder: Path) -> None:
    """Read FOLDER/course.toml and show what it says; the current folder without FOLDER.

    Exit status 2 if it says something impossible: the message names the line.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from grader.classroom import course

    try:
        found = course.read_course(folder)
    except course.CourseError as error:
        raise click.UsageError(str(error)) from None
    table = Table("problem", "due", "weight", "points", box=None, pad_edge=False)
    for name, rules in found.problems.items():
        due, points = found.due(name), found.points_of(name)
        parts = [f"{stage} {value:g}" for stage, value in points.by_stage().items() if value]
        shown = due.astimezone(found.zone).strftime("%Y-%m-%d %H:%M %Z") if due else "–"
        table.add_row(*map(Text, (name, shown, f"{rules.weight:g}", ", ".join(parts))))
    console = Console(highlight=False)
    console.print(Text(found.title))
    console.print(table)


@class_group.command(name="collect")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@course_option
@click.option("--all", "show_all", is_flag=True, help=f"Show every file that cannot be graded, not {MOST_SHOWN}.")
def collect_sources(sources: tuple[Path, ...], folder: Path, show_all: bool) -> None:
    """Take over what was handed in: the exports of Canvas, Moodle or Gradescope, or a folder a student.

    Nothing is unpacked to disk or run. The same SOURCE may be collected again: what is there already stays as it is.

    Exit status 2 if course.toml, roster.csv or a SOURCE cannot be used, 3 if class.db cannot.
    """
    from rich.console import Console
    from rich.text import Text

    from grader.classroom import journal, roster
    from grader.classroom.collect import State, collect, find_states
    from grader.classroom.course import CourseError, read_course
    from grader.classroom.sources import SourceError, read_source
    from grader.cli.statuses import CANNOT
    from grader.pictures.picture import count
    from grader.reports.terminal import line

    console = Console(highlight=False)
    try:
        course = read_course(folder)
        students = roster.read_roster(folder / roster.FILE)
        with journal.Journal(folder) as kept:
            for source in sources:
                made = collect(read_source(source), students, course)
                new = kept.add(made, str(source.resolve()))
                console.print(
                    Text(f"{source}: {count(len(made.attempts), 'attempt')}, {new} of them new"), soft_wrap=True
                )
            remarks = kept.remarks()
            seen = [(one.student, one.problem, State.attempt) for one in kept.attempts()]
    except (CourseError, roster.RosterError, SourceError) as error:
        raise click.UsageError(str(error)) from None
    except journal.JournalError as error:
        click.echo(str(error), err=True)
        click.get_current_context().exit(CANNOT)
    seen += [(student, problem, state) for student, problem, _, _, state, _ in remarks]
    names = {student.id: student.name for student in students}
    for student, _, _, path, _, why in remarks if show_all else remarks[:MOST_SHOWN]:
        console.print(Text(line(f"{names.get(student, student) or path}: {why}")), soft_wrap=True)
    if len(remarks) > MOST_SHOWN and not show_all:
        console.print(Text(f"and {len(remarks) - MOST_SHOWN} more: --all shows them."))
    _show_states(
        course, Counter((problem, state) for (_, problem), state in find_states(seen, students, course).items())
    )


def _show_states(course: Course, counts: Counter[tuple[str, State]]) -> None:
    """Print how many students are in each state, by problem."""
    from rich.console import Console
    from rich.table import Table

    from grader.classroom.collect import State

    table = Table("problem", *(state.value.replace("_", " ") for state in State), box=None, pad_edge=False)
    for problem in course.problems:
        table.add_row(problem, *(str(counts[problem, state]) for state in State))
    Console(highlight=False).print(table)
