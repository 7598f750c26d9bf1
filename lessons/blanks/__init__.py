"""The blanks that the lessons' cells leave to the reader: `%load_ext blanks`, then `%%fill NAME` checks one."""

from __future__ import annotations

from blanks import lesson_01, lesson_02, lesson_03, lesson_04, lesson_05, lesson_06, lesson_07
from grader.notebook.fill import Blank, FillMagics

_MODULES = (lesson_01, lesson_02, lesson_03, lesson_04, lesson_05, lesson_06, lesson_07)
LESSONS: dict[int, dict[str, Blank]] = {number: lesson.BLANKS for number, lesson in enumerate(_MODULES, 1)}
BLANKS: dict[str, Blank] = {name: blank for lesson in LESSONS.values() for name, blank in lesson.items()}


def load_ipython_extension(shell) -> None:
    """Register %%fill."""
    shell.register_magics(FillMagics(shell, BLANKS))
