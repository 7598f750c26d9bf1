"""`grader class similar`: rank pairs of students whose work is alike."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.options import course_option
from grader.cli.statuses import CANNOT

if TYPE_CHECKING:
    from rich.console import Console

    from grader.classroom.course import Course
    from grader.classroom.journal import Journal
    from grader.classroom.roster import Student
    from grader.classroom.similar_page import Part
    from grader.classroom.similarity import Work

HEADS = "rank", "students", "score", "alike", "surroundings", "passages", "rare"


@click.command(name="similar")
@click.argument("problems", metavar="PROBLEM...", nargs=-1)
@click.option(
    "--most", type=click.IntRange(1, 500), default=30, show_default=True, help="Pairs of each problem to show."
)
@click.option(
    "--html", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with both files."
)
@click.option(
    "--json", "data", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write the pairs."
)
@course_option
def rank_similar(problems: tuple[str, ...], most: int, html: Path | None, data: Path | None, folder: Path) -> None:
    """Rank pairs of students whose work on a PROBLEM is alike, beyond what was handed out; without PROBLEM, on each.

    Names, layout, comments, order and the spelling of loops do not matter; what many students have counts little. It is
    a ranking, not a verdict: --html shows both files of each pair, with the lines that both have. Nothing is run.

    Exit status 2 if course.toml or roster.csv cannot be used or there is no such PROBLEM, 3 if class.db cannot be used
    or FILE cannot be written.
    """
    from rich.console import Console

    from grader.classroom.similar_page import make_page
    from grader.cli.class_grades import open_class

    console = Console(highlight=False)
    with open_class(folder) as (journal, course, students):
        if unknown := [name for name in problems if name not in course.problems]:
            raise click.UsageError(f"The course has no problem {unknown[0]}: it has {', '.join(course.problems)}.")
        parts = [
            _find_part(name, journal, course, students, folder, most)
            for name in dict.fromkeys(problems or course.problems)
        ]
    for part in parts:
        _show(console, part)
    click.echo("This is a ranking, not a verdict: read both files of a pair before you conclude anything.")
    if html:
        foot = f"Written by grader class similar on {datetime.date.today().isoformat()}."
        _write(html, make_page(course.title, parts, foot))
    if data:
        _write(data, _make_json(parts))


def _find_part(
    problem: str, journal: Journal, course: Course, students: list[Student], folder: Path, most: int
) -> Part:
    """Return the first pairs of a problem. Raises UsageError if the problem's own file cannot be read."""
    from grader.classroom.handed_out import read_handed
    from grader.classroom.similar_page import Part
    from grader.classroom.similarity import find_pairs, read_class

    try:
        handed = read_handed(problem, course, folder)
    except OSError as error:
        raise click.UsageError(f"The file of {problem} cannot be read ({error.strerror}).") from None
    works = _read_works(problem, journal, students)
    made = read_class(works, handed)
    return Part(problem, len({one.student for one in works}), len(works), find_pairs(made, most))


def _read_works(problem: str, journal: Journal, students: list[Student]) -> list[Work]:
    """Return every attempt on a problem."""
    from grader.classroom.similarity import Work

    names = {student.id: student.name for student in students}
    found = []
    for one in journal.attempts():
        if one.problem == problem:
            when = f" of {one.handed_in:%Y-%m-%d %H:%M} UTC" if one.handed_in else ""
            text = journal.content(one.sha256).decode("utf-8-sig", errors="replace")
            name = names.get(one.student) or one.student
            found.append(Work(one.student, name, f"{Path(one.path).name}{when}", text))
    return found


def _show(console: Console, part: Part) -> None:
    """Print the pairs of a problem."""
    from rich.table import Table
    from rich.text import Text

    from grader.pictures.picture import count
    from grader.reports.terminal import line

    compared = f"{count(part.works, 'submission')} of {count(part.students, 'student')}"
    console.print(Text(f"{part.problem}: {compared}{'' if part.pairs else ', no pair shares anything'}"))
    if not part.pairs:
        return
    table = Table(box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head, justify="left" if head == "students" else "right")
    for rank, pair in enumerate(part.pairs, 1):
        names = line(f"{pair.first.name} and {pair.second.name}")
        shares = (f"{100 * share:.0f} %" for share in (pair.alike, pair.surroundings, pair.passages))
        table.add_row(*map(Text, (str(rank), names, f"{pair.score:.2f}", *shares, str(pair.shared))))
    console.print(table)


def _make_json(parts: list[Part]) -> str:
    """Return the pairs as JSON, one problem a key."""
    import msgspec

    made = {
        part.problem: {
            "students": part.students,
            "submissions": part.works,
            "pairs": [
                {
                    "students": [pair.first.student, pair.second.student],
                    "files": [pair.first.label, pair.second.label],
                    "score": round(pair.score, 4),
                    "alike": round(pair.alike, 4),
                    "surroundings": round(pair.surroundings, 4),
                    "passages": round(pair.passages, 4),
                    "rare": pair.shared,
                    "view": pair.view,
                    "lines": [sorted(marks) for marks in pair.marks],
                }
                for pair in part.pairs
            ],
        }
        for part in parts
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=1).decode() + "\n"


def _write(file: Path, text: str) -> None:
    """Write a file that its owner alone may read; exit with a sentence if that fails."""
    from grader.classroom.files import replace_file

    try:
        replace_file(file, text)
    except OSError as error:
        click.echo(f"{file} cannot be written ({error.strerror}).", err=True)
        click.get_current_context().exit(CANNOT)
    click.echo(f"written: {file}")
