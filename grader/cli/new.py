"""The command `grader new`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("name")
@click.option(
    "--model",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A KernelBench file that becomes the problem's model.py as it is.",
)
def new(name: str, model: Path | None) -> None:
    """Make a problem: kernels_ref/NAME with a model, a solution and hints that work as they are, for you to replace.

    Exit status 2, with nothing changed, if the name is taken or the file is not a problem.
    """
    from grader.authoring import new_problem

    try:
        paths = new_problem.problem(name, model)
    except new_problem.CannotMake as error:
        raise click.UsageError(str(error)) from None
    for path in paths:
        click.echo(f"written: {path.parent.parent.name}/{path.parent.name}/{path.name}")
    click.echo(
        f"Next: edit these, run `grader grade {paths[1].parent.parent.name}/{name}/solution.py`, then `grader student`."
    )
