"""`grader class pages`: a page for each student, and one of the course."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.options import course_option
from grader.cli.statuses import CANNOT

if TYPE_CHECKING:
    from grader.classroom.roster import Student


@click.command(name="pages")
@click.option(
    "--to",
    "target",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    required=True,
    help="A new folder, or one with earlier pages.",
)
@course_option
def make_pages(target: Path, folder: Path) -> None:
    """Write a page for each student, and a page of the course with the table of grades.

    FOLDER/index.html is for those who teach the course: it names all students. Each file in FOLDER/students is for one
    student, names no other, and needs no other file. Earlier pages in FOLDER are replaced.

    Exit status 2 if course.toml, roster.csv or FOLDER cannot be used, 3 if class.db cannot, or if the pages cannot be
    written.
    """
    from grader.classroom.gradebook import read_gradebook
    from grader.classroom.pages.site import PagesError, write_pages
    from grader.cli.class_grades import open_class
    from grader.pictures.picture import bytes_text, count

    try:
        with open_class(folder) as (journal, course, students):
            book = read_gradebook(journal, course, students, folder)
            written = write_pages(target, book, journal, _show_progress)
    except PagesError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        click.echo(f"{error.filename or target} cannot be written ({error.strerror}).", err=True)
        click.get_current_context().exit(CANNOT)
    click.echo(f"written: {written.index}, for those who teach the course")
    if written.board:
        click.echo(f"written: {written.board}, for the class")
    pages = f"{count(written.students, 'page')}, one for each student"
    click.echo(f"written: {target / 'students'}: {pages} ({bytes_text(written.size)} in all)")


def _show_progress(students: Sequence[Student]) -> Iterator[Student]:
    """Yield the students, with a bar in a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(students, "pages", console=console, transient=True, disable=not console.is_terminal)
