"""The command group `grader class`."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(name="class")
def class_group() -> None:
    """Grade a class: one folder with course.toml, what was handed in, and the grades."""


@class_group.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--title", default="GPU kernels", show_default=True, help="The course's name.")
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Of the deadlines: Europe/Zurich.")
@click.option(
    "--problem", "problems", metavar="NAME", multiple=True, help="May be repeated; without it, every exercise."
)
def init(folder: Path, title: str, timezone: str, problems: tuple[str, ...]) -> None:
    """Write FOLDER/course.toml, in which each rule has its usual value and a comment.

    Exit status 2, with nothing written, if there is one already, or if a name is unknown.
    """
    from grader.classroom import course, new_course

    try:
        file = new_course.write_course(folder, title, timezone, list(dict.fromkeys(problems)))
    except course.CourseError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"written: {file}")
    click.echo(f"Next: edit it, then run `grader class check {folder}`.")


@class_group.command()
@click.argument("folder", type=click.Path(path_type=Path), default=".")
def check(folder: Path) -> None:
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
