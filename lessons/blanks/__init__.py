"""The blanks that the lessons' cells leave to the reader: `%load_ext blanks`, then `%%fill NAME` checks one.

A module for each lesson; a release has those of its lessons.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from grader.notebook.fill import Blank, FillMagics

LESSONS: dict[int, dict[str, Blank]] = {
    int(file.stem.removeprefix("lesson_")): importlib.import_module(f"blanks.{file.stem}").BLANKS
    for file in sorted(Path(__file__).parent.glob("lesson_*.py"))
}
BLANKS: dict[str, Blank] = {name: blank for lesson in LESSONS.values() for name, blank in lesson.items()}


def load_ipython_extension(shell) -> None:
    """Register %%fill."""
    shell.register_magics(FillMagics(shell, BLANKS))
