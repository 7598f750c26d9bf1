"""Values of command-line options that several commands read."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

import click

from grader.problems import exercises

course_option = click.option(
    "--course",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    default=".",
    help="The folder with course.toml and roster.csv. Without it, the current folder.",
)


def check_gpu(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    """Return the full name of a GPU. Raises BadParameter for one whose figures are not known."""
    from simt.devices import UnknownDevice, find_name

    try:
        return find_name(name)
    except UnknownDevice as error:
        raise click.BadParameter(str(error)) from None


DEFAULT_GPU = "H200"
gpu_option = click.option(
    "--gpu",
    default=DEFAULT_GPU,
    show_default=True,
    metavar="NAME",
    callback=check_gpu,
    help="The GPU whose time is predicted where this machine has none. Launches have the limits of a T4, whichever it "
    "is.",
)


class ProblemFile(click.Path):
    """A problem's file; or the name of a problem of the course, where no file is called so."""

    name = "problem"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path of the problem's file. Raises BadParameter where there is none."""
        path = Path(str(super().convert(value, param, ctx)))
        if path.is_file():
            return path
        if str(path) in exercises.problems():
            return exercises.source_of(str(path)).parent / "model.py"
        from grader.notebook.cells import describe_unusable

        if why := describe_unusable(path):
            return self.fail(f"{path} {why}. Give a KernelBench file, or one of {', '.join(exercises.problems())}.")
        return self.fail(
            f"{path}: there is no such file, and no problem of the course is called so. Give a KernelBench file, or "
            f"one of {', '.join(exercises.problems())}."
        )


class FileCommand(click.Command):
    """A command that takes files: none of their names is taken for an option.

    In `grader grade *.py` the shell puts names in place of the pattern, and a file may be called --problem=x.py.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError where one before `--`, or that itself, is a file's name."""
        names = [
            *itertools.takewhile(lambda argument: argument != "--", args),
            *(["--"] if args.count("--") == 1 else []),
        ]
        for argument in names:
            if argument.startswith("-") and argument != "-" and os.path.lexists(argument):
                raise click.UsageError(
                    f"{argument!r} is the name of a file here, and it would be read as an option: nothing was run. To "
                    "name it as a file, write -- before the files, and all options before that, or ./ before the name.",
                    ctx,
                )
        return super().parse_args(ctx, args)


def parse_setting(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE`, the value of --set. Raises UsageError for anything else."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip().isidentifier():
        raise click.UsageError(f"--set {text}: write NAME=VALUE, such as --set batch_size=2.")
    return name.strip(), value


def check_seconds(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """Return a number of seconds unchanged. Raises BadParameter for NaN, which click's ranges let through."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number of seconds.")
    return value
