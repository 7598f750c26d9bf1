"""Print what linting a problem found in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.lint.attempt import DECOY, MUTANT
from grader.lint.result import EQUIVALENT, KILLED, SURVIVED, LintResult, Outcome
from grader.reports.terminal import clean, line

EXPRESSION_CHARACTERS = 60  # shown of an expression before and after a mutation


def show(console: Console, result: LintResult) -> None:
    """Print one problem's rates, by kind and by case, and each survivor with a case that rejects it."""
    console.print(_make_head(result))
    console.print(Padding(_make_groups(result), (0, 0, 0, 2), expand=False))
    console.print(Padding(_make_cases(result), (1, 0, 1, 2), expand=False))
    for one in result.survivors:
        console.print(Padding(_describe_survivor(one), (0, 0, 0, 2)))
    console.print(Padding(Text(_describe_end(result)), (0, 0, 1, 2)))


def _make_head(result: LintResult) -> Text:
    found = len(result.survivors)
    what = "nothing survives" if not found else f"{found} survive{'s' if found == 1 else ''}"
    text = Text()
    text.append(line(result.path), "bold")
    text.append(f", {len(result.cases)} cases on {result.device}, seed {result.seed}: ")
    text.append(what, "green" if not found else "bold red")
    return text


def _make_groups(result: LintResult) -> Table:
    table = _make_table(("", "killed", "survive", "equivalent"))
    for (kind, group), outcomes in result.groups().items():
        counts = [sum(one.status == status for one in outcomes) for status in (KILLED, SURVIVED, EQUIVALENT)]
        style = "bold red" if counts[1] else ""
        table.add_row(f"{kind}: {group}", str(counts[0]), Text(str(counts[1] or ""), style), str(counts[2] or ""))
    return table


def _make_cases(result: LintResult) -> Table:
    table = _make_table(("case", "decoys killed", "mutants killed", "by it alone"))
    for name, count in result.count_by_case().items():
        table.add_row(Text(line(name)), str(count[DECOY]), str(count[MUTANT]), str(count["alone"] or ""))
    return table


def _make_table(heads: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(heads):
        table.add_column(name, header_style="dim", justify="right" if number else "left")
    return table


def describe_survivor(one: Outcome) -> str:
    """Return a decoy or mutant in a few words."""
    label = one.label
    if label.kind == DECOY:
        return f"decoy: {label.name}"
    return f"mutant: line {label.line}: {_shorten(label.before)} → {_shorten(label.after)}"


def _describe_survivor(one: Outcome) -> Text:
    text = Text()
    text.append(clean(describe_survivor(one)), "bold")
    if one.suggestion is None:
        text.append("\nNo variant of a case that was tried rejects it either.")
    elif one.suggestion.entry is None:
        text.append(clean(f"\nAdd a case: {one.suggestion.what}."))
    else:
        text.append(clean(f"\nAdd a case: {one.suggestion.entry!r}"))
    return text


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EXPRESSION_CHARACTERS else text[: EXPRESSION_CHARACTERS - 1] + "…"


def _describe_end(result: LintResult) -> str:
    parts = []
    for kind in (DECOY, MUTANT):
        killed, counted = result.rate(kind)
        parts.append(f"{killed} of {counted} {kind}s killed")
    ran = len(result.of_kind(MUTANT)) + result.raising
    sampled = f" Of the file's {result.listed} mutants, {ran} ran." if ran < result.listed else ""
    raising = f" Not counted, because they raise in every case: {result.raising}." if result.raising else ""
    return f"{', '.join(parts)}.{raising}{sampled}"
