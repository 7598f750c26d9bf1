"""The command `grader`: its subcommands, and what every one of them shares (signals, output that cannot be written)."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO, cast

import click

from grader.cli import interrupts
from grader.cli.bench import bench
from grader.cli.cache import cache
from grader.cli.check import check, hint
from grader.cli.class_group import class_group
from grader.cli.doctor import doctor
from grader.cli.fastest import fastest
from grader.cli.grade import grade
from grader.cli.lint_problem import lint_problem
from grader.cli.new import new
from grader.cli.output import Outlet
from grader.cli.profile import compare, profile
from grader.cli.progress import show_progress
from grader.cli.statuses import CANNOT, INTERRUPTED, PASSED, worst
from grader.cli.student import student

MIN_COLUMNS = 20  # a terminal has more; a smaller COLUMNS was not set on purpose


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpu-kernel-course")
def cli() -> None:
    """Grade CUDA kernels written as KernelBench's ModelNew, with a GPU or without."""


cli.add_command(bench)
cli.add_command(cache)
cli.add_command(check)
cli.add_command(class_group)
cli.add_command(compare)
cli.add_command(doctor)
cli.add_command(fastest)
cli.add_command(grade)
cli.add_command(hint)
cli.add_command(lint_problem)
cli.add_command(new)
cli.add_command(profile)
cli.add_command(show_progress)
cli.add_command(student)


def main() -> None:
    """Run the command line and exit with its status.

    A request to terminate, and a terminal that is closed, end the workers too, as Ctrl-C does.
    """

    interrupts.raise_at_signals()
    _adapt_to_terminal()
    out = Outlet(sys.stdout)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, Outlet(sys.stderr))
    try:
        status = _run()
        interrupts.ignore()
    except KeyboardInterrupt:  # a second one, while the first was being reported
        interrupts.ignore()
        status = INTERRUPTED
    trouble = out.trouble
    if trouble is not None and not isinstance(trouble, BrokenPipeError):  # a reader that has left is not an error
        click.echo(f"Standard output cannot be written ({trouble.strerror}).", err=True)
        status = worst((status or PASSED, CANNOT))
    sys.exit(status)


def _run() -> int | str | None:
    """Run the subcommand that the command line names and return its exit status."""
    try:
        return cli.main(prog_name="grader", standalone_mode=False)
    except SystemExit as end:
        return end.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        interrupts.ignore()
        click.echo("Interrupted.", err=True)
        return INTERRUPTED


def _adapt_to_terminal() -> None:
    """Write characters that the terminal's encoding lacks as \\xfc, and ignore a COLUMNS that no terminal has."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and not (columns.isdecimal() and int(columns) >= MIN_COLUMNS):
        del os.environ["COLUMNS"]
