"""The commands `grader profile` and `grader compare`: requests, operations and predicted times, in words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence

import click

from grader.cli.check import find_subject, subject_options
from grader.cli.options import FileCommand, gpu_option
from grader.cli.statuses import CANNOT, NOT_ATTEMPTED, PASSED
from grader.verdict import Outcome

EXITS = """
\b
Exit status:
    0  the figures are shown
    2  wrong usage: there is no such file, problem or GPU
    4  not attempted: a kernel is still the exercise as handed out
    3  a kernel cannot be counted
  130  interrupted
"""


@click.command(cls=FileCommand, epilog=EXITS)
@subject_options
@gpu_option
def profile(what: str, problem: str | None, gpu: str) -> None:
    """Count a kernel's memory requests and operations and predict its time on a GPU.

    NAME is a problem of the course: groupnorm means kernels_student/groupnorm.py. The words are those that
    grader.profile shows in a notebook; where there is a GPU, the kernel is timed, too.
    """
    from grader.notebook import profile as profiles

    find_subject(what, problem)
    sys.exit(_show(lambda: profiles.profile(what, gpu, problem), problem, [what]))


@click.command(cls=FileCommand, epilog=EXITS)
@click.argument("first", metavar="NAME|FILE")
@click.argument("second", metavar="NAME|FILE")
@click.option(
    "--problem", metavar="NAME|FILE", help="The problem, where the kernels' files do not tell which one it is."
)
@gpu_option
def compare(first: str, second: str, problem: str | None, gpu: str) -> None:
    """Put the figures of two kernels side by side: which one is predicted to be faster, and what has changed."""
    from grader.notebook import profile as profiles

    for what in (first, second):
        find_subject(what, problem)
    sys.exit(_show(lambda: profiles.compare(first, second, gpu, problem), problem, [first, second]))


def _show(count: Callable, problem: str | None, named: Sequence[str]) -> int:
    """Print what `count` returns. named: the kernels, as the command names them. Returns the exit status."""
    from grader.cli.parts import Printer
    from grader.notebook.check import CannotCheck
    from grader.notebook.profile import CannotCount, NotAttempted

    try:
        Printer().print(count().parts(pictures=False))
    except NotAttempted as error:
        Printer(Outcome.not_attempted.value).print(error.parts)
        return NOT_ATTEMPTED
    except CannotCount as error:
        what = next((what for what in named if find_subject(what, problem).path == error.path), str(error.path))
        command = shlex.join(["grader", "check", what, *(["--problem", problem] if problem else [])])
        click.echo(f"{error.reason} Run `{command}` first: it explains more.", err=True)
        return CANNOT
    except CannotCheck as error:
        click.echo(str(error).replace("Give problem=.", "Give --problem."), err=True)
        return CANNOT
    return PASSED
