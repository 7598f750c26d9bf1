"""Prints verdicts in a terminal. It computes no grade."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text

from grader.reports import predicted
from grader.reports.parts import Table as TablePart
from grader.reports.parts import Words
from grader.verdict import EXPLANATIONS, Evidence, Outcome, Reason, Stage, StageName, Status, Verdict
from grader.worker.levels import is_unprotected

STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim", "error": "bold magenta", "not_attempted": "cyan"}
WORDS = {Outcome.not_attempted: "not attempted", Outcome.error: "could not be graded"}
EVIDENCE_SHOWN = 3
OUTPUT_LINES = 12
UNPROTECTED = "This submission ran without a sandbox: it could read and change your files and use the network."


def clean(text: str) -> str:
    """Return text from a submission without control characters, which could change the terminal."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "�" for c in text)


def line(text: str) -> str:
    """Return cleaned text in one line: a file name may contain line breaks."""
    return "".join("�" if c in "\n\t" or unicodedata.category(c) in ("Zl", "Zp") else c for c in clean(text))


# --- one verdict -----------------------------------------------------------------------------------------------------


def show(console: Console, verdict: Verdict, still: str = "") -> None:
    """Print one verdict: the file, the stages, and the evidence of each stage that did not pass. still: a sentence on
    marked places that are still empty.
    """
    if is_unprotected(verdict.sandbox):
        console.print(Text(UNPROTECTED, "bold red"))
    console.print(head(verdict))
    if verdict.outcome is Outcome.not_attempted:  # nothing has failed
        for stage in verdict.stages[:1]:
            console.print(Padding(Text(clean(stage.message)), (0, 0, 0, 2)))
        console.print(foot(verdict))
        return
    console.print(stages(verdict))
    for stage in verdict.stages:
        if stage.status in (Status.failed, Status.error):
            console.print(details(stage, verdict.stages))
    if still:
        console.print(Padding(Text(clean(still), "bold"), (1, 0, 0, 2)))
    for text in to_know(verdict):
        console.print(Padding(Text(text, "yellow"), (0, 0, 0, 2)))
    if any(stage.measurements for stage in verdict.stages):
        console.print(times(verdict))
    if predicted.find(verdict):
        console.print(prediction(verdict))
    if verdict.output.strip() and verdict.outcome is not Outcome.passed:
        console.print(output(verdict))
    console.print(foot(verdict))


def to_know(verdict: Verdict) -> list[str]:
    """Return remarks on a verdict that passed: its reader should know them."""
    remarks = [clean(stage.message) for stage in verdict.stages if stage.name is StageName.correct and stage.message]
    return remarks if verdict.outcome is Outcome.passed else []


def head(verdict: Verdict) -> Text:
    """Return the file, the problem and the outcome in one line."""
    text = Text()
    text.append(line(verdict.submission.path), "bold")
    text.append(f" as {line(verdict.problem)} on {line(verdict.device)}: ")
    text.append(WORDS.get(verdict.outcome, verdict.outcome.value), STYLES[verdict.outcome])
    return text


def stages(verdict: Verdict) -> RenderableType:
    """Return one row per stage: result, seconds, and the reason or the number of right cases."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("stage", "result", "seconds", ""):
        table.add_column(name, header_style="dim", justify="right" if name == "seconds" else "left")
    for stage in verdict.stages:
        result = Text(stage.status.value, STYLES[stage.status])
        seconds = f"{stage.seconds:.1f}" if stage.status is not Status.skipped else ""
        table.add_row(stage.name.value, result, seconds, _remark(stage))
    return Padding(table, (0, 0, 0, 2), expand=False)


def _remark(stage: Stage) -> Text:
    return Text(clean(remark(stage)), "dim" if stage.status is Status.skipped else "")


def remark(stage: Stage) -> str:
    """Return why a stage was skipped; or its reason, if it failed, and how many of its cases were right."""
    if stage.status is Status.skipped:
        return stage.message
    text = stage.reason.value.replace("_", " ") if stage.reason else ""
    if stage.cases:
        good = sum(case.status is Status.passed for case in stage.cases)
        count = f"{good} of {len(stage.cases)} cases right"
        text += f" ({count})" if stage.reason else count
    return text


def details(stage: Stage, others: Sequence[Stage] = ()) -> RenderableType:
    """Return why a stage did not pass: its sentence, advice that the sentence does not give, and the evidence.

    others: the stages of the verdict.
    """
    lines: list[RenderableType] = [Text(clean(stage.message), STYLES[stage.status])]
    lines += [Text(more)] if (more := advice(stage, others)) else []
    lines += [_evidence(one) for one in stage.evidence[:EVIDENCE_SHOWN] if facts(one)]
    left = len(stage.evidence) - EVIDENCE_SHOWN
    if left > 0:
        lines.append(Text(f"and {left} more of the same kind", "dim"))
    wrong = [case.name for case in stage.cases if case.status is Status.failed]
    if wrong and len(stage.cases) > 1:
        lines.append(Text(f"wrong in: {'; '.join(wrong)}", "dim"))
    return Padding(
        Group(Text(f"{stage.name.value}", "bold"), Padding(Group(*lines), (0, 0, 0, 2), expand=False)),
        (1, 0, 0, 2),
        expand=False,
    )


# What the checks find that explains a NaN: it is then no result of a large exponent or of a division by 0.
UNSET = {
    *(Reason.race, Reason.uninitialized, Reason.schedule_dependent, Reason.out_of_bounds, Reason.illegal_address),
    *(Reason.warp_divergence, Reason.barrier_divergence),
}


def advice(stage: Stage, others: Sequence[Stage] = ()) -> str:
    """Return what the reason's explanation advises to do, unless the stage's sentence already says it.

    Nothing either where what was found in one of the `others` explains the failure.
    """
    if stage.reason is Reason.non_finite and any(other.reason in UNSET for other in others):
        return ""
    if stage.name is StageName.contract or stage.reason in (None, Reason.missing_cpp_sources):
        return ""  # the sentence says it
    text = EXPLANATIONS[stage.reason].partition(": ")[2]
    known = text.rstrip(".") in stage.message or (text.startswith("look for ") and ": look for " in stage.message)
    return "" if known else text[:1].upper() + text[1:]


def _evidence(one: Evidence) -> RenderableType:
    """Return the known facts, one per line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts(one):
        table.add_row(Text(name, "dim"), Text(clean(value)))
    return table


def facts(one: Evidence) -> list[tuple[str, str]]:
    """Return name and value of each known fact."""
    known = [("case", one.case), ("gradient of", one.gradient), ("index", one.index and str(one.index))]
    number = _number if one.tolerance is not None else _exact  # integers must be equal
    if one.index is not None:
        known += [("expected", number(one.expected)), ("got", number(one.got))]
        if one.tolerance is not None:
            known.append(("tolerance", number(one.tolerance)))
    if one.wrong_count is not None and one.total:
        known.append(("wrong", f"{one.wrong_count:,} of {one.total:,}"))
    if one.max_error:  # 0 where the error has no size, as for NaN
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


def _number(value: float | None) -> str:
    """Return a number with six digits; None means NaN or infinity, which JSON does not have."""
    return "not a finite number" if value is None else f"{value:,.6g}"


def _exact(value: float | None) -> str:
    """Return a whole number with all of its digits, any other one as _number() does."""
    whole = value is not None and math.isfinite(value) and value == int(value)
    return f"{value:,.0f}" if whole else _number(value)


def _triple(values: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, values)) + ")"


def _shortened(text: str, lines: int = 8) -> str:
    kept = text.strip().splitlines()
    more = [f"[... {len(kept) - lines} more lines]"] if len(kept) > lines else []
    return "\n".join(line[:300] for line in kept[:lines] + more)


def times(verdict: Verdict) -> RenderableType:
    """Return the measurements with their intervals."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("time", "median", "spread", "samples"):
        table.add_column(name, header_style="dim", justify="left" if name == "time" else "right")
    for stage in verdict.stages:
        for one in stage.measurements:
            spread = f"{one.low:.4g} to {one.high:.4g}" if one.low is not None and one.high is not None else ""
            table.add_row(clean(one.name), f"{one.value:.4g} {one.unit}", spread, str(one.samples or ""))
    return Padding(table, (1, 0, 0, 2), expand=False)


def prediction(verdict: Verdict) -> RenderableType:
    """Return the predicted time, as a notebook shows it."""
    shown: list[RenderableType] = []
    for part in predicted.tell(verdict, lambda number: f"line {number}"):
        if isinstance(part, Words):
            shown.append(Text(clean(part.text).replace("`", ""), "dim" if part.look == "soft" else ""))
        elif isinstance(part, TablePart):
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
            for number, name in enumerate(part.head):
                table.add_column(name, header_style="dim", justify="right" if number in part.numbers else "left")
            for row in part.rows:
                table.add_row(*(Text(clean(cell)) for cell in row))
            shown.append(table)
    return Padding(Group(*shown), (1, 0, 0, 2), expand=False)


def output(verdict: Verdict) -> RenderableType:
    """Return the end of what the program printed."""
    lines = clean(verdict.output).strip().splitlines()[-OUTPUT_LINES:]
    text = Text("\n".join(line[:200] for line in lines))
    return Padding(
        Group(Text("it printed", "bold"), Padding(text, (0, 0, 0, 2), expand=False)), (1, 0, 0, 2), expand=False
    )


def foot(verdict: Verdict) -> Text:
    """Return the time, the seed and the kind of sandbox."""
    return Text(f"  {verdict.seconds:.1f} s, seed {verdict.seed}, sandbox {verdict.sandbox}\n", "dim")


# --- several ---------------------------------------------------------------------------------------------------------


def show_summary(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print one line per verdict."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("submission", "problem", "outcome", "reason", "seconds"):
        table.add_column(name, header_style="dim", justify="right" if name == "seconds" else "left", overflow="fold")
    for verdict in verdicts:
        word = WORDS.get(verdict.outcome, verdict.outcome.value)
        given = verdict.reason or verdict.doubt
        reason = given.value.replace("_", " ") if given and given is not Reason.not_attempted else ""
        path, problem = Text(line(verdict.submission.path)), Text(line(verdict.problem))
        table.add_row(path, problem, Text(word, STYLES[verdict.outcome]), reason, f"{verdict.seconds:.1f}")
    console.print(table)


# --- while it runs ---------------------------------------------------------------------------------------------------


class Progress:
    """A context that shows the current step in one line of a terminal; elsewhere it shows nothing."""

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
        """Show a step; `grade` calls it."""
        if self.spinner:
            self.spinner.update(Text(f"{self.name}: {stage.value} {clean(text)[:120]}"))
