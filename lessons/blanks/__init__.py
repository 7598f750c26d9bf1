"""The blanks that the lessons' cells leave to the reader: `%load_ext blanks`, then `%%fill NAME` checks one."""

from __future__ import annotations

from blanks import lesson_01, lesson_02, lesson_03, lesson_04, lesson_05
from grader.notebook.fill import Blank, FillMagics

LESSONS: dict[int, dict[str, Blank]] = {
    number: lesson.BLANKS for number, lesson in enumerate((lesson_01, lesson_02, lesson_03, lesson_04, lesson_05), 1)
}
BLANKS: dict[str, Blank] = {name: blank for lesson in LESSONS.values() for name, blank in lesson.items()}


def load_ipython_extension(shell) -> None:
    """Register %%fill."""
    shell.register_magics(FillMagics(shell, BLANKS))
