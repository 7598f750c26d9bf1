"""Print the parts of which a notebook's output consists in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console
from rich.text import Text

from grader.reports import feedback, terminal

STYLES = {"title": "bold", "lead": "bold", "soft": "dim", "marked": "red", "picture": "dim"}


class Printer:
    """Prints parts to standard output, with colours in a terminal, as feedback.as_text has all of them together.

    outcome: of the verdict, for the title's colour.
    """

    def __init__(self, outcome: str = ""):
        self.console = Console(highlight=False)
        self.styles = STYLES | {"title": terminal.STYLES.get(outcome, "bold")}
        self.parts: list[object] = []
        self.printed = 0  # lines

    def print(self, parts: Sequence[object]) -> None:
        """Print further parts."""
        self.parts += parts
        lines = feedback.as_lines(self.parts)
        new, self.printed = lines[self.printed :], len(lines)
        for line, look in new:
            if self.console.is_terminal:
                no_wrap = look in ("code", "marked", "table")
                self.console.print(Text(line, self.styles.get(look, "")), soft_wrap=no_wrap)
            else:
                click.echo(line)
