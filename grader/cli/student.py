"""The command `grader student`."""

from __future__ import annotations

import sys

import click

from grader.cli.statuses import CANNOT, FAILED, PASSED


@click.command()
@click.option(
    "--check", is_flag=True, help="Write nothing; exit status 1 if a student file differs from what its solution makes."
)
def student(check: bool) -> None:
    """Make the files in kernels_student from the solutions in kernels_ref.

    Exit status 2 if a solution's marks do not make an exercise or a hints file cannot be used, 3 if a file cannot be
    read or written.
    """
    from grader.authoring import handout
    from grader.problems.exercises import ExerciseError

    try:
        if check:
            problems = handout.check_all()
            for line in problems:
                click.echo(line)
            sys.exit(FAILED if problems else PASSED)
        written, kept = handout.write_all()
    except ExerciseError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        click.echo(f"{error.filename} cannot be read or written ({error.strerror}).", err=True)
        sys.exit(CANNOT)
    for path in written:
        click.echo(f"written: {path.parent.name}/{path.name}")
    for path in kept:
        click.echo(f"kept, because someone has worked on it: {path.parent.name}/{path.name}")
