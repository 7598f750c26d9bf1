"""`grader class autograder` and `class result`: grades where another platform runs or reads the grader."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.options import course_option
from grader.cli.statuses import CANNOT

if TYPE_CHECKING:
    from grader.classroom.course import Course
    from grader.verdict import Verdict


@click.command(name="autograder")
@click.argument("problems", metavar="PROBLEM...", nargs=-1, required=True)
@click.option("--to", "file", metavar="FILE.zip", type=click.Path(path_type=Path), required=True, help="A new file.")
@click.option(
    "--visibility",
    type=click.Choice(("visible", "after_due_date", "after_published", "hidden")),
    default="visible",
    show_default=True,
    help="When students see the results.",
)
@click.option("--allow-unsandboxed", is_flag=True, help="Grade where the container has no sandbox, too.")
@course_option
def pack_autograder(
    problems: tuple[str, ...], file: Path, visibility: str, allow_unsandboxed: bool, folder: Path
) -> None:
    """Write an autograder for Gradescope: a zip that installs itself and grades PROBLEM by the rules of course.toml.

    Several problems are one assignment, to which students hand in one file for each. The zip has no solutions.

    Exit status 2 if course.toml, a PROBLEM or FILE cannot be used, 3 if a file cannot be read or written.
    """
    from grader.classroom.course import CourseError
    from grader.classroom.pack_autograder import MEMORY, make_autograder

    course = _read_course(folder)
    try:
        packed = make_autograder(file, problems, course, folder, visibility, not allow_unsandboxed)
    except CourseError as error:
        raise click.UsageError(str(error)) from None
    except FileExistsError:
        raise click.UsageError(f"{file} exists. Name another file, or remove it.") from None
    except OSError as error:
        click.echo(f"{error.filename or file} cannot be read or written ({error.strerror}).", err=True)
        click.get_current_context().exit(CANNOT)
    click.echo(f"written: {file} ({packed.files} files)")
    click.echo(
        f"In Gradescope: set Autograder Points to {packed.points:g}, and upload the file under Configure Autograder. "
        f"The default container has {MEMORY} MB and half a processor. If a result says that the compiler ran out "
        "of memory, choose 1.5 GB in the assignment's settings."
    )


@click.command(name="result")
@click.argument("verdicts", metavar="VERDICTS.jsonl", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--gradescope", metavar="FILE", type=click.Path(path_type=Path), help="Write Gradescope's results.json.")
@click.option(
    "--classroom50", metavar="FILE", type=click.Path(path_type=Path), help="Write Classroom 50's result.json."
)
@click.option(
    "--submitted",
    metavar="TIME",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]),
    help="Of the graded commit, as `git log -1 --format=%cI` prints it; without it, now.",
)
@course_option
def write_result(
    verdicts: Path, gradescope: Path | None, classroom50: Path | None, submitted: datetime.datetime | None, folder: Path
) -> None:
    """Write the last verdict of VERDICTS.jsonl, from `grader grade --json`, with its points as a platform reads it.

    Classroom 50's runner names the submission in environment variables, such as SUBMISSION_TAG.

    Exit status 2 if course.toml or the verdict cannot be used, 3 if a file cannot be read or written.
    """
    import os

    from grader.classroom.autograde import judge_machine
    from grader.classroom.exports import ExportError
    from grader.classroom.files import replace_file
    from grader.classroom.platforms import make_classroom50, make_gradescope

    if not gradescope and not classroom50:
        raise click.UsageError("Give --gradescope FILE, --classroom50 FILE, or both.")
    course = _read_course(folder)
    verdict = _read_last_verdict(verdicts)
    if verdict.problem not in course.problems:
        raise click.UsageError(f"The course has no problem {verdict.problem}: it has {', '.join(course.problems)}.")
    result = judge_machine(verdict.problem, verdict)
    when = submitted or datetime.datetime.now(datetime.UTC)
    try:
        made = {gradescope: make_gradescope([result], course)} if gradescope else {}
        made |= {classroom50: make_classroom50(result, course, os.environ, when)} if classroom50 else {}
    except ExportError as error:
        raise click.UsageError(str(error)) from None
    for file, data in made.items():
        try:
            replace_file(file, json.dumps(data, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            click.echo(f"{file} cannot be written ({error.strerror}).", err=True)
            click.get_current_context().exit(CANNOT)
        click.echo(f"written: {file}")


def _read_course(folder: Path) -> Course:
    from grader.classroom.course import CourseError, read_course

    try:
        return read_course(folder)
    except CourseError as error:
        raise click.UsageError(str(error)) from None


def _read_last_verdict(file: Path) -> Verdict:
    """Return the last verdict of a file of `grader grade --json`."""
    import msgspec

    from grader.verdict import from_json

    try:
        lines = [line for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        click.echo(f"{file} cannot be read ({error.strerror}).", err=True)
        click.get_current_context().exit(CANNOT)
    try:
        return from_json(lines[-1])
    except (IndexError, msgspec.MsgspecError):
        raise click.UsageError(
            f"{file} has no verdict in its last line: `grader grade --json FILE` writes one."
        ) from None
