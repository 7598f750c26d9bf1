"""Grade one kernel submission: file in, verdict out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.judging.grading import grade as grade
    from grader.notebook.check import check as check
    from grader.notebook.guess import guess as guess
    from grader.notebook.profile import compare as compare
    from grader.notebook.profile import profile as profile
    from grader.reports.progress import progress as progress
    from grader.verdict import Outcome as Outcome
    from grader.verdict import Reason as Reason
    from grader.verdict import Status as Status
    from grader.verdict import Verdict as Verdict

__all__ = [
    "Outcome",
    "Reason",
    "Status",
    "Verdict",
    "check",
    "compare",
    "grade",
    "guess",
    "profile",
    "progress",
]

_HOME = {
    "grade": "judging.grading",
    "Verdict": "verdict",
    "Reason": "verdict",
    "Status": "verdict",
    "Outcome": "verdict",
    "check": "notebook.check",
    "guess": "notebook.guess",
    "profile": "notebook.profile",
    "compare": "notebook.profile",
    "progress": "reports.progress",
}


def __getattr__(name: str):
    """Import a public name on first use: the worker imports this package and must not load the judge with it."""
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(f"grader.{_HOME[name]}"), name)
    raise AttributeError(f"module 'grader' has no attribute {name!r}")


def load_ipython_extension(shell) -> None:
    """Register the cell magic %%cuda, for `%load_ext grader`."""
    from grader.notebook import magic

    shell.register_magics(magic.CudaMagics)
