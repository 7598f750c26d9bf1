"""The command `grader progress`."""

from __future__ import annotations

import sys

import click

from grader.cli.statuses import CANNOT, PASSED


@click.command(name="progress")
def show_progress() -> None:
    """Show your progress: the best verdict so far for each problem, what has improved since you last looked, and what
    to do next.

    The verdicts of `grader grade` and grader.check on kernels_student/NAME.py are kept in
    ~/.local/state/grader/progress.json (XDG_STATE_HOME names another folder, GRADER_PROGRESS another file). Exit status
    3 if that file cannot be used, or was damaged and has been renamed.
    """
    from rich.console import Console

    from grader.reports import progress

    shown = progress.progress()
    Console(highlight=False, stderr=not shown.rows).print(shown)
    sys.exit(CANNOT if shown.warnings else PASSED)
