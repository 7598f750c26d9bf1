"""Write figures as tables: in the terminal, as Markdown, and into a page between <!-- bench:NAME --> marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.paths import README


def show_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in the terminal."""
    table = Table(*heads)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def make_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [_make_line(heads), "|" + "---|" * len(heads), *map(_make_line, rows)]


def _make_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def make_table_with_source(heads: Sequence[str], rows: Iterable[Sequence[str]], source: str) -> str:
    """Return a Markdown table and, below it, the line that says where its figures come from."""
    return "\n".join([*make_table(heads, rows), "", source])


def describe_source(machine: dict[str, str], command: str) -> str:
    """Return the line below a table of figures: date, GPU if there was one, processor, versions and the command."""
    device = ", ".join(machine[name] for name in ("gpu", "processor") if name in machine)
    versions = f"torch {machine['torch']}, {machine['compiler']}"
    return f"{machine['date']}, {device}, {versions}; `python benchmarks/{command}` made this."


def write_section(name: str, text: str, page: Path = README) -> None:
    """Replace the text between <!-- bench:NAME --> and <!-- /bench:NAME --> in a page.

    Raises ValueError if the page lacks the marks.
    """
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    before, mark, rest = page.read_text(encoding="utf-8").partition(start)
    _, end_mark, after = rest.partition(end)
    if not mark or not end_mark:
        raise ValueError(f"{page} has no section {start} … {end}.")
    page.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")
