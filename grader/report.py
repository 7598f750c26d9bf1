"""Draws verdicts for a terminal; computes no grade."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text

from grader.verdict import EXPLANATIONS, Evidence, Outcome, Reason, Stage, StageName, Status, Verdict

STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim", "error": "bold magenta", "not_attempted": "yellow"}
WORDS = {Outcome.not_attempted: "not attempted", Outcome.error: "could not be graded"}
EVIDENCE_SHOWN = 3
OUTPUT_LINES = 12


def clean(text: str) -> str:
    """Text from a submission without control characters, so that it cannot play with the terminal."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "�" for c in text)


def line(text: str) -> str:
    """The same in one line: a file's name may have line ends in it."""
    return "".join("�" if c in "\n\t" or unicodedata.category(c) in ("Zl", "Zp") else c for c in clean(text))


# --- one verdict -----------------------------------------------------------------------------------------------------


def show(console: Console, verdict: Verdict, still: str = "") -> None:
    """Print one verdict: what was graded, the stages, and for each that did not pass what shows it. still: what the file lacks, in a sentence."""
    console.print(head(verdict))
    console.print(stages(verdict))
    for stage in verdict.stages:
        if stage.status in (Status.failed, Status.error):
            console.print(details(stage))
    if still:
        console.print(Padding(Text(clean(still), "bold"), (1, 0, 0, 2)))
    for text in to_know(verdict):
        console.print(Padding(Text(text, "yellow"), (0, 0, 0, 2)))
    if any(stage.measurements for stage in verdict.stages):
        console.print(times(verdict))
    if verdict.output.strip() and verdict.outcome is not Outcome.passed:
        console.print(output(verdict))
    console.print(foot(verdict))


def to_know(verdict: Verdict) -> list[str]:
    """Sentences that whoever relies on a verdict that passed should read."""
    said = [clean(stage.message) for stage in verdict.stages if stage.name is StageName.correct and stage.message]
    return said if verdict.outcome is Outcome.passed else []


def head(verdict: Verdict) -> Text:
    """File, problem and outcome in one line."""
    text = Text()
    text.append(line(verdict.submission.path), "bold")
    text.append(f" as {line(verdict.problem)} on {line(verdict.device)}: ")
    text.append(WORDS.get(verdict.outcome, verdict.outcome.value), STYLES[verdict.outcome])
    return text


def stages(verdict: Verdict) -> Table:
    """A line for each stage: how it ended, seconds, the reason, and its sentence or how many cases it had."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, options in (("stage", {}), ("result", {}), ("seconds", {"justify": "right"}), ("", {})):
        table.add_column(name, header_style="dim", **options)
    for stage in verdict.stages:
        result = Text(stage.status.value, STYLES[stage.status])
        seconds = f"{stage.seconds:.1f}" if stage.status is not Status.skipped else ""
        table.add_row(stage.name.value, result, seconds, _remark(stage))
    return Padding(table, (0, 0, 0, 2), expand=False)


def _remark(stage: Stage) -> Text:
    return Text(remark(stage), "dim" if stage.status is Status.skipped else "")


def remark(stage: Stage) -> str:
    """Why a stage was skipped, or the reason for which it failed and how many of its cases were right; of one that passed
    that number, and what to know of it."""
    if stage.status is Status.skipped:
        return stage.message
    text = stage.reason.value.replace("_", " ") if stage.reason else ""
    if stage.cases:
        good = sum(case.status is Status.passed for case in stage.cases)
        count = f"{good} of {len(stage.cases)} cases right"
        text += f" ({count})" if stage.reason else count
    return text


def details(stage: Stage) -> RenderableType:
    """Why a stage did not pass: its sentence, the reason's explanation where it adds something, the evidence."""
    lines: list[RenderableType] = [Text(clean(stage.message), STYLES[stage.status])]
    lines += [Text(more)] if (more := advice(stage)) else []
    lines += [_evidence(one) for one in stage.evidence[:EVIDENCE_SHOWN] if facts(one)]
    left = len(stage.evidence) - EVIDENCE_SHOWN
    if left > 0:
        lines.append(Text(f"and {left} more like it", "dim"))
    wrong = [case.name for case in stage.cases if case.status is Status.failed]
    if wrong and len(stage.cases) > 1:
        lines.append(Text(f"wrong in: {'; '.join(wrong)}", "dim"))
    return Padding(Group(Text(f"{stage.name.value}", "bold"), Padding(Group(*lines), (0, 0, 0, 2), expand=False)), (1, 0, 0, 2), expand=False)


def advice(stage: Stage) -> str:
    """What to do about it, where the reason's explanation says so and the sentence does not."""
    said = stage.name is StageName.contract or stage.reason in (None, Reason.missing_cpp_sources)
    text = "" if said else EXPLANATIONS[stage.reason].partition(": ")[2]
    told = text.rstrip(".") in stage.message or (text.startswith("look for ") and ": look for " in stage.message)
    return "" if told else text[:1].upper() + text[1:]


def _evidence(one: Evidence) -> RenderableType:
    """What was seen, one fact a line; facts that are not known have none."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts(one):
        table.add_row(Text(name, "dim"), Text(clean(value)))
    return table


def facts(one: Evidence) -> list[tuple[str, str]]:
    """Name and value of each fact that is known."""
    known = [("case", one.case), ("gradient of", one.gradient), ("index", one.index and str(one.index))]
    if one.index is not None:
        known += [("expected", number(one.expected)), ("got", number(one.got))]
        if one.tolerance is not None:
            known.append(("tolerance", number(one.tolerance)))
    if one.wrong_count is not None and one.total:
        known.append(("wrong", f"{one.wrong_count} of {one.total}"))
    if one.max_error:  # 0 where what is wrong has no size, as NaN
        known.append(("largest error", number(one.max_error)))
    known += [("pattern", one.pattern if one.pattern != "everything" else None), ("kernel", one.kernel)]
    known += [("block", one.block and _triple(one.block)), ("thread", one.thread and _triple(one.thread))]
    if one.line:
        known.append((f"line {one.line}", one.text or ""))
    elif one.text:
        known.append(("at", one.text))
    if one.detail:
        known.append(("detail", _shortened(one.detail)))
    return [(name, value) for name, value in known if value]


def number(value: float | None) -> str:
    """Six digits; None is what JSON makes of NaN and infinity."""
    return "not a finite number" if value is None else f"{value:.6g}"


def _triple(values: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, values)) + ")"


def _shortened(text: str, lines: int = 8) -> str:
    kept = text.strip().splitlines()
    more = [f"[... {len(kept) - lines} more lines]"] if len(kept) > lines else []
    return "\n".join(line[:300] for line in kept[:lines] + more)


def times(verdict: Verdict) -> RenderableType:
    """What was measured, with its spread."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("time", "median", "spread", "samples"):
        table.add_column(name, header_style="dim", justify="left" if name == "time" else "right")
    for stage in verdict.stages:
        for one in stage.measurements:
            spread = f"{one.low:.4g} to {one.high:.4g}" if one.low is not None and one.high is not None else ""
            table.add_row(clean(one.name), f"{one.value:.4g} {one.unit}", spread, str(one.samples or ""))
    return Padding(table, (1, 0, 0, 2), expand=False)


def output(verdict: Verdict) -> RenderableType:
    """The end of what the program printed."""
    lines = clean(verdict.output).strip().splitlines()[-OUTPUT_LINES:]
    text = Text("\n".join(line[:200] for line in lines))
    return Padding(Group(Text("it printed", "bold"), Padding(text, (0, 0, 0, 2), expand=False)), (1, 0, 0, 2), expand=False)


def foot(verdict: Verdict) -> Text:
    """Time, seed, isolation."""
    return Text(f"  {verdict.seconds:.1f} s, seed {verdict.seed}, sandbox {verdict.sandbox}\n", "dim")


# --- several ---------------------------------------------------------------------------------------------------------


def show_summary(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print a line for each verdict."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("submission", "problem", "outcome", "reason", "seconds"):
        table.add_column(name, header_style="dim", justify="right" if name == "seconds" else "left", overflow="fold")
    for verdict in verdicts:
        word = WORDS.get(verdict.outcome, verdict.outcome.value)
        told = verdict.reason or verdict.doubt
        reason = told.value.replace("_", " ") if told and told is not Reason.not_attempted else ""
        path, problem = Text(line(verdict.submission.path)), Text(line(verdict.problem))
        table.add_row(path, problem, Text(word, STYLES[verdict.outcome]), reason, f"{verdict.seconds:.1f}")
    console.print(table)


# --- while it runs ---------------------------------------------------------------------------------------------------


class Progress:
    """One line that says what is being done, on a terminal; nothing where nobody looks. Use as a context."""

    def __init__(self, console: Console, name: str):
        self.name = line(name)
        self.spinner = Spinner("", console=console) if console.is_terminal else None

    def __enter__(self) -> Progress:
        if self.spinner:
            self.spinner.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.spinner:
            self.spinner.stop()

    def __call__(self, stage: StageName, text: str) -> None:
        """What `grade` calls."""
        if self.spinner:
            self.spinner.update(Text(f"{self.name}: {stage.value} {clean(text)[:120]}"))
