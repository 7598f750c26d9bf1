"""Figures as tables: in the terminal, and in the README between two marks."""

from __future__ import annotations

import re
from pathlib import Path

from rich.console import Console
from rich.table import Table

README = Path(__file__).resolve().parent.parent / "README.md"


def show(heads: list[str], rows: list[list[str]]) -> None:
    table = Table(*heads)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def markdown(heads: list[str], rows: list[list[str]], source: str) -> str:
    """A Markdown table and, under it, the line that says what its figures are."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", source])


def source(machine: dict[str, str], command: str) -> str:
    """The line under a table of figures of this kind of machine."""
    return f"{machine['date']}, {machine['processor']}, torch {machine['torch']}, {machine['compiler']}; `python benchmarks/{command}` made this."


def put_into_readme(name: str, text: str, file: Path = README) -> None:
    """Replaces what stands between <!-- bench:NAME --> and <!-- /bench:NAME --> in the README, or in another page."""
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    pattern = re.compile(re.escape(start) + r"(?:.*?" + re.escape(end) + ")?", re.DOTALL)
    file.write_text(pattern.sub(lambda _: f"{start}\n{text}\n{end}", file.read_text(), count=1))
