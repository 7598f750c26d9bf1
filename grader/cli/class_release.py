"""`grader class release` and `leaks`: what students get, and whether it gives answers away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.statuses import CANNOT, FAILED

if TYPE_CHECKING:
    from grader.authoring.leaks import Leaks

MOST_SHOWN = 40  # places that give answers away


@click.command(name="release")
@click.argument("what", metavar="[LESSON|EXERCISE]...", nargs=-1)
@click.option("--to", "folder", metavar="DIR", type=click.Path(path_type=Path), help="A new git repository there.")
@click.option("--zip", "archive", metavar="FILE", type=click.Path(path_type=Path), help="A zip file.")
@click.option(
    "--solved",
    metavar="EXERCISE",
    multiple=True,
    help="Students may see its answer; may be repeated, as after its due.",
)
def release_course(what: tuple[str, ...], folder: Path | None, archive: Path | None, solved: tuple[str, ...]) -> None:
    """Write what students get: lessons, their exercises and all that these need, without solutions.

    Without LESSON (3, or 03_groupnorm_two_pass), everything. What an exercise has of the answer to another is left to
    be written there, too. Before anything is written, all of it is searched for the answers of every exercise.

    Exit status 1 if it would give an answer away, with the places; 2 if a name or a target cannot be used, 3 if a file
    cannot be read or written. Nothing is written then.
    """
    from grader.authoring import release
    from grader.pictures.picture import count
    from grader.problems.exercises import ExerciseError

    if folder is None and archive is None:
        raise click.UsageError("Say where to: --to DIR for a git repository, --zip FILE, or both.")
    with _errors_shown():
        _check_names(solved)
        try:
            choice = release.choose(what)
            leaks = release.make_release(choice, folder, archive, solved)
        except release.LeakError as error:
            _show_leaks(error.leaks)
            click.echo(f"{error} Take these places out, or name an exercise that is over with --solved.", err=True)
            raise SystemExit(FAILED) from None
        except (release.ReleaseError, ExerciseError) as error:
            raise click.UsageError(str(error)) from None
    _show_taught(leaks)
    parts = f"{count(len(choice.lessons), 'lesson')}, {count(len(choice.exercises), 'exercise')}"
    for path in filter(None, (folder, archive)):
        click.echo(f"written: {path} ({parts}; {leaks.texts} texts searched, no answer found)")


@click.command(name="leaks")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--solved", metavar="EXERCISE", multiple=True, help="Students may see its answer; may be repeated.")
def find_class_leaks(paths: tuple[Path, ...], solved: tuple[str, ...]) -> None:
    """Search folders, files and archives for the answers of every exercise, as `grader class release` does.

    Renamed and reformatted answers are found, too: in outputs, metadata and hidden cells of notebooks, in archives,
    base64, caches, and the history of git repositories.

    Exit status 1 if an answer is found, or something cannot be looked into.
    """
    from grader.authoring.answers import Answers
    from grader.authoring.leaks import find_leaks
    from grader.problems.exercises import ExerciseError, exercises

    with _errors_shown():
        _check_names(solved)
        try:
            answers = Answers(name for name in exercises() if name not in solved)
        except ExerciseError as error:
            raise click.UsageError(str(error)) from None
        every = [find_leaks(path, answers, solved) for path in paths]
    for leaks in every:
        _show_leaks(leaks)
        _show_taught(leaks)
    click.echo(f"{sum(leaks.texts for leaks in every)} texts searched.")
    if any(every):
        raise SystemExit(FAILED)


def _check_names(names: Sequence[str]) -> None:
    """Raise UsageError for a name that no exercise has."""
    from grader.problems.exercises import exercises

    known = exercises()
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"--solved {unknown[0]}: there is no such exercise. There are {', '.join(known)}.")


@contextlib.contextmanager
def _errors_shown() -> Iterator[None]:
    """Exit with a sentence where a file cannot be read or written."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        name = getattr(error, "filename", None)
        why = (
            (error.strerror or "the disk is full or protected")
            if isinstance(error, OSError)
            else "it is not UTF-8 text"
        )
        click.echo(f"{name or 'A file'} cannot be read or written ({why}).", err=True)
        raise SystemExit(CANNOT) from None


def _show_leaks(leaks: Leaks) -> None:
    from grader.reports.terminal import line

    texts = [
        *(f"{leak}." for leak in (*leaks.found, *leaks.copies)),
        *(f"{one.place}: {one.why}." for one in leaks.unread),
    ]
    for text in texts[:MOST_SHOWN]:
        click.echo(line(text), err=True)
    if len(texts) > MOST_SHOWN:
        click.echo(f"and {len(texts) - MOST_SHOWN} more.", err=True)


def _show_taught(leaks: Leaks) -> None:
    """Print what lessons show of answers on purpose."""
    from grader.reports.terminal import line

    for leak in leaks.taught:
        click.echo(line(f"shown on purpose: {leak}."))
