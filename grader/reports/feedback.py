"""Describe a verdict for a notebook or a terminal as one list of parts, and render it as text or as HTML."""

from __future__ import annotations

import dataclasses
import html
import os
import re
from collections.abc import Callable, Sequence

from grader.diagnosis import dropped_sums, fault_localization, gradient_places, hints, missing_lines, suspects
from grader.problems import exercises
from grader.reports import predicted, terminal
from grader.reports.parts import Code, Drawn, Image, Table, Words
from grader.reports.terminal import clean
from grader.source import places
from grader.source.given import find_own_lines, is_argument
from grader.source.syntax import split_lines
from grader.verdict import EXPLANATIONS, Evidence, Outcome, Reason, Stage, Status, Verdict

LONGEST_LINE = 500  # characters that are looked at and shown
AROUND = 2  # lines shown before and after a marked one
Where = Callable[[int], str]  # a line of the file -> its name: "line 12" or "line 3 of cell [7]"


def plain() -> bool:
    """Return whether to show only text that is the same in every run, because nbval compares it."""
    return "NBVAL" in os.environ or "NBVAL_RUN" in os.environ or os.environ.get("GRADER_PICTURES") == "png"


# --- text ------------------------------------------------------------------------------------------------------------


def as_text(parts: Sequence[object]) -> str:
    """Return the parts as text, with every word that the HTML has."""
    return "\n".join(line for line, _ in as_lines(parts)).strip("\n")


def as_lines(parts: Sequence[object]) -> list[tuple[str, str]]:
    """Return the lines of the text, each with its look: that of its Words, "table", "code", "marked", or "picture"."""
    lines: list[tuple[str, str]] = []
    for before, part in zip([None, *parts], parts):
        if isinstance(before, (Code, Image)) and (isinstance(part, Table) or _is_plain(part)):
            lines.append(("", "text"))
        lines += [(line.rstrip(), look) for line, look in _text(part)]
    return lines


def _is_plain(part: object) -> bool:
    return isinstance(part, Words) and part.look != "lead"


def _text(part: object) -> list[tuple[str, str]]:
    if isinstance(part, Words):
        lines = [(line, part.look) for line in clean(part.text).split("\n")]
        return [("", "text"), *lines] if part.look == "lead" else lines
    if isinstance(part, Table):
        return [(line, "table") for line in _columns(part)]
    if isinstance(part, Code):
        width = len(str(max((number for number, _, _ in part.lines), default=0)))
        head = [("", "text"), *([(clean(part.caption), "text")] if part.caption else [])]
        return head + [
            (f"{'→' if wrong else ' '} {number:>{width}} │ {clean(text)}", "marked" if wrong else "code")
            for number, text, wrong in part.lines
        ]
    if isinstance(part, Image):
        return [("", "text"), (f"Picture: {clean(part.picture.alt)}", "picture")]
    raise TypeError(type(part))


def _columns(table: Table) -> list[str]:
    rows = [
        [clean(cell).replace("\n", " ") for cell in row]
        for row in ([table.head] if table.head else []) + list(table.rows)
    ]
    widths = [
        max((len(row[n]) for row in rows if n < len(row)), default=0) for n in range(max(map(len, rows), default=0))
    ]
    return [
        "  " + "  ".join(c.rjust(w) if n in table.numbers else c.ljust(w) for n, (c, w) in enumerate(zip(row, widths)))
        for row in rows
    ]


# --- HTML ------------------------------------------------------------------------------------------------------------

# JupyterLab's colours, which follow its theme; the values after the commas are for other pages.
INK, SOFT = "var(--jp-content-font-color1, inherit)", "var(--jp-content-font-color2, inherit)"
MONO = "font-family:var(--jp-code-font-family, monospace);font-size:var(--jp-code-font-size, 13px);line-height:1.45"
PANEL = (
    "background:var(--jp-cell-editor-background, rgba(128,128,128,.10));"
    "border:1px solid var(--jp-cell-editor-border-color, rgba(128,128,128,.35))"
)
GOOD, BAD, CAUTION = (
    "var(--jp-success-color1, #2e7d32)",
    "var(--jp-error-color1, #d32f2f)",
    "var(--jp-warn-color1, #e65100)",
)
TONES = {"passed": GOOD, "failed": BAD, "error": CAUTION, "not_attempted": SOFT, "skipped": SOFT}
LOOKS = {
    "title": "font-weight:600;font-size:1.1em;margin:0 0 .4em",
    "lead": "font-weight:600;margin:.9em 0 .2em",
    "text": "margin:.2em 0",
    "soft": f"color:{SOFT};margin:.4em 0",
}


def as_html(parts: Sequence[object]) -> str:
    """Return the parts as HTML for JupyterLab, with everything from the student escaped."""
    inside = "".join(_html(part) for part in parts)
    return f'<div class="grader" style="color:{INK};max-width:60em;line-height:1.45">{inside}</div>'


def _html(part: object) -> str:
    if isinstance(part, Words):
        bar = f";border-left:4px solid {TONES[part.tone]};padding-left:.6em" if part.tone in TONES else ""
        style = f"{LOOKS[part.look]}{bar};white-space:pre-line;overflow-wrap:anywhere"
        return f'<div style="{style}">{_inline(part.text)}</div>'
    if isinstance(part, Table):
        return _html_table(part)
    if isinstance(part, Code):
        return _html_code(part)
    if isinstance(part, Image):
        return part.picture.html()
    raise TypeError(type(part))


def _inline(text: str) -> str:
    """Return the text escaped, with parts in backquotes as code."""
    safe = html.escape(clean(text))
    return re.sub(r"`([^`\n]+)`", rf'<code style="{MONO};background:none;padding:0">\1</code>', safe)


def _html_table(table: Table) -> str:
    side = "padding:1px 1.4em 1px 0;vertical-align:top;background:none"

    def cell(n: int, text: str, more: str, tag: str = "td") -> str:
        align = "right" if n in table.numbers else "left"
        return f'<{tag} style="{side};text-align:{align};{more}">{_inline(text)}</{tag}>'

    rows = (
        [
            "<tr>"
            + "".join(cell(n, text, f"color:{SOFT};font-weight:normal", "th") for n, text in enumerate(table.head))
            + "</tr>"
        ]
        if table.head
        else []
    )
    for number, row in enumerate(table.rows):
        tone = table.tones[number] if number < len(table.tones) else ""
        looks = [
            f"color:{SOFT};white-space:nowrap" if table.tones or not table.head else "",
            f"color:{TONES[tone]};font-weight:600" if tone in TONES else "",
        ]
        rows.append(
            '<tr style="background:none">'
            + "".join(cell(n, text, looks[n] if n < 2 else "") for n, text in enumerate(row))
            + "</tr>"
        )
    style = "border:none;margin:.2em 0;border-collapse:collapse"
    return f'<div style="overflow-x:auto"><table style="{style}">{"".join(rows)}</table></div>'


def _html_code(part: Code) -> str:
    caption = f'<div style="color:{SOFT};margin:.6em 0 .2em">{_inline(part.caption)}</div>' if part.caption else ""
    width = len(str(max((number for number, _, _ in part.lines), default=0)))
    lines = []
    for number, text, wrong in part.lines:
        mark = (
            f"border-left:4px solid {BAD};background:rgba(211,47,47,.14)"
            if wrong
            else "border-left:4px solid transparent"
        )
        arrow = "→" if wrong else " "
        lines.append(f'<div style="{mark};padding:0 .5em">{arrow} {number:>{width}} │ {html.escape(clean(text))}</div>')
    style = f"{MONO};{PANEL};white-space:pre;overflow-x:auto;padding:.3em 0;margin:.2em 0"
    return f'{caption}<div style="{style}">{"".join(lines)}</div>'


# --- a verdict -------------------------------------------------------------------------------------------------------


def verdict_parts(
    verdict: Verdict,
    source: str,
    pictures: Sequence[Drawn],
    where: Where | None = None,
    times: bool = False,
    note: str = "",
    lead: fault_localization.Lead | None = None,
) -> list[object]:
    """Return the parts of a verdict: outcome, stages, and for each stage that did not pass its sentence, evidence and
    lines.

    source: the submission's text. times: show seconds, which change in every run. note: a remark below the title.
    lead: the line that fault localization found; it replaces the lines that the text alone makes suspect.
    """
    where = where or _name_line
    word = terminal.WORDS.get(verdict.outcome, verdict.outcome.value)
    parts: list[object] = [Words(f"{verdict.problem}: {word}", "title", verdict.outcome.value)]
    parts += [Words(note, "soft")] if note else []
    if verdict.outcome is Outcome.not_attempted:  # nothing has failed
        return [*parts, *(Words(moved(stage.message, where)) for stage in verdict.stages[:1])]
    parts.append(_stages(verdict, times))
    if verdict.outcome is Outcome.passed and exercises.STAMP.search(source):  # else it may work in another way
        why = hints.explain_pass(verdict.problem)
        parts += [Words(f"Why the reference solution works: {why}")] if why else []
    parts += [Words(EXPLANATIONS[verdict.doubt])] if verdict.doubt else []
    parts += failure_parts(verdict, source, pictures, where, lead)
    if any(stage.measurements for stage in verdict.stages):
        rows = [(one.name, f"{one.value:.4g} {one.unit}") for stage in verdict.stages for one in stage.measurements]
        parts += [Words("Measured", "lead"), Table(rows)]
    if told := predicted.tell(verdict, where):
        parts += [*told, *(Image(picture) for picture in pictures)]
    if verdict.output.strip() and verdict.outcome is not Outcome.passed:
        lines = clean(verdict.output).strip().splitlines()[-terminal.OUTPUT_LINES :]
        parts += [Words("It printed", "lead"), Words("\n".join(line[:200] for line in lines))]
    return parts


def failure_parts(
    verdict: Verdict,
    source: str,
    pictures: Sequence[Drawn],
    where: Where | None = None,
    lead: fault_localization.Lead | None = None,
) -> list[object]:
    """Return the parts for each stage that did not pass: its sentence, evidence, lines and pictures; none if all did.

    The arguments are those of verdict_parts.
    """
    where = where or _name_line
    source = cut_lines(source)
    failed = [stage for stage in verdict.stages if stage.status in (Status.failed, Status.error)]
    given = exercises.outside_places(source, verdict.problem) if failed else set()
    lead, missing = _choose_cause(lead, missing_lines.find_missing(source, verdict) if failed else None)
    found = bool(lead or missing) or any(one.line for stage in failed for one in stage.evidence[:1])
    parts: list[object] = []
    for number, stage in enumerate(failed):
        if number and stage.message in failed[0].message:  # the first stage has said it
            continue
        made = _failure(stage, source, where, failed, found, given)
        is_elsewhere = lead is not None or bool(missing and missing.lines)
        made = [_unmarked(part) if is_elsewhere and isinstance(part, Code) else part for part in made]
        if number == 0 and lead:  # before what the stage knows of the failure: it is what to change
            first = next((n for n, part in enumerate(made) if not isinstance(part, Words)), len(made))
            shown = at_lead(lead, source, where, given)
            made = [part for part in made if not (isinstance(part, Code) and _shows_no_more(part, shown))]
            made[first:first] = [Words(moved(lead.words, where)), shown]
        if number == 0 and missing:
            first = next((n for n, part in enumerate(made) if not isinstance(part, Words)), len(made))
            gaps = _show_gaps(missing, source, where)
            appears = gaps and any(isinstance(part, Code) for part in made[first : first + 1])
            made[first:first] = [
                Words(moved(missing.words, where)),
                *gaps,
                *([Words("The failure appears here:")] if appears else []),
            ]
        parts += [part for part in made if not (isinstance(part, Code) and part in parts)]
        parts += [Image(picture) for picture in pictures] if number == 0 else []
    return parts


def _choose_cause(
    lead: fault_localization.Lead | None, missing: missing_lines.Missing | None
) -> tuple[fault_localization.Lead | None, missing_lines.Missing | None]:
    """Return which of two causes to name: the line that fault localization found, and what is missing in the file.

    Where both are about one place, the exercise's statement is named there. Of two places for a barrier, the exercise's
    is named, and of two other causes the one that mutants have shown.
    """
    if lead is None or missing is None:
        return lead, missing
    if any(lead.line - AROUND < line <= lead.until for line in missing.after):
        return dataclasses.replace(lead, words=missing.words), None
    if lead.kind == "barrier" or not lead.says_all:
        return None, missing
    return (lead, None if missing.lines else missing)


def _show_gaps(missing: missing_lines.Missing, source: str, where: Where) -> list[Code]:
    """Return the lines to mark where statements are missing, with their surroundings."""
    near: list[list[int]] = []
    for line in missing.lines:
        if near and line - near[-1][-1] <= REACH:
            near[-1].append(line)
        else:
            near.append([line])
    return [_around(split_lines(source), set(lines), set(lines), where) for lines in near]


def _name_line(line: int) -> str:
    return f"line {line}"


def cut_lines(source: str) -> str:
    """Return the source with long lines cut: patterns that look for a cause may take the square of a line's length."""
    return "\n".join(line[:LONGEST_LINE] for line in source.split("\n"))


def _stages(verdict: Verdict, times: bool) -> Table:
    rows, tones = [], []
    for stage in verdict.stages:
        if stage.reason is Reason.not_reached:
            continue
        remark = terminal.remark(stage)
        rows.append((stage.name.value, stage.status.value, *([f"{stage.seconds:.1f} s"] if times else []), remark))
        tones.append(stage.status.value)
    return Table(rows, tones)


def _failure(
    stage: Stage, source: str, where: Where, failed: Sequence[Stage], found: bool, given: set[int]
) -> list[object]:
    """Return the parts of one stage that did not pass. failed: all that did not; each but the first explains it. found:
    some stage knows the wrong line. given: lines outside of the exercise's marked places.
    """
    explains = stage is not failed[0]
    sentence = moved(stage.message, where)
    lead = "What the checks found in a case that fails" if explains else f"Stage {stage.name.value}"
    parts: list[object] = [Words(lead, "lead"), Words(sentence, "text", stage.status.value)]
    parts += [Words(advice)] if (advice := terminal.advice(stage, failed)) else []
    first = stage.evidence[0] if stage.evidence else None
    if first is not None:
        facts = [
            (name, moved(value, where))
            for name, value in terminal.facts(first)
            if not name.startswith("line ") and name != "at"
        ]
        parts += excerpt(first, stage, source, where, found, given)
        parts += [Table(facts)] if facts else []
    wrong = [case.name for case in stage.cases if case.status is Status.failed]
    right = [case.name for case in stage.cases if case.status is Status.passed]
    if wrong and right:
        parts.append(Words(f"Right: {'; '.join(right)}. Wrong: {'; '.join(wrong)}.", "soft"))
    return parts


def moved(text: str, where: Where) -> str:
    """Return the text with each "line 12 of NAME.py" named by `where`."""

    def called(match: re.Match) -> str:
        name = where(int(match[2]))
        return name[:1].upper() + name[1:] if match[1] == "L" else name

    if where(1) == "line 1":
        return text
    return re.sub(r"\b([Ll])ine (\d+)\b(?: of ModelNew\.py)?", called, text)


def excerpt(
    one: Evidence,
    stage: Stage,
    source: str,
    where: Where,
    found: bool = False,
    given: frozenset[int] | set[int] = frozenset(),
) -> list[object]:
    """Return the student's lines around the wrong one, with lines that the message names marked too; the student's own
    lines first where that one is `given`. If no stage has `found` a line, return suspect lines, preferably not `given`
    ones.
    """
    lines = split_lines(source)
    if one.line and 0 < one.line <= len(lines):
        own, line = find_own_lines(source, one.line, given, one.kernel), one.line
        if own and is_argument(stage.message, source, line, own):
            own, line = None, own.lines[0]
        if own:
            there = _around(lines, set(), {line}, where)
            return [
                Words(moved(own.words, where)),
                _placed(lines, own, where),
                Words("The failure appears here:"),
                there,
            ]
        marked = {line} | {
            n for n in map(int, LINE.findall(stage.message)) if stage.reason in MEETINGS and abs(n - line) <= REACH
        }
        yours = marked - set(given) or marked
        place = places.find_place(stage, source, line)
        reason = [Words(moved(place.words, where))] if place else []
        if place and all(abs(n - line) <= REACH for n in place.lines):
            seen = {line, *place.lines, *(n for n in place.beside if abs(n - line) <= REACH)}
            wrong = set(place.lines) if place.instead else yours | set(place.lines)
            return [*reason, _around(lines, wrong - set(given) or wrong, seen, where)]
        words, more = suspects.also(stage, source)
        apart = [_only(lines, place.lines)] if place else []
        mine = set() if more or (place and place.instead) else yours
        raised = [Code([(n, lines[n - 1], len(more) == 1) for n in more], words)] if more else []
        return [_around(lines, mine, marked, where), *reason, *apart, *raised]
    if not found and (place := place_of(stage, source)):
        return [Words(moved(place.words, where)), _placed(lines, place, where)]
    words, chosen = ("", []) if found else suspects.of(stage, source, given)
    accused = suspects.accused(stage, words, chosen)
    return [Code([(n, lines[n - 1], accused) for n in chosen], words)] if chosen else []


def place_of(stage: Stage, source: str) -> places.Place | None:
    """Return the lines that the source itself shows to be wrong, where neither a check nor a mutant names one."""
    return gradient_places.of(stage, source) or dropped_sums.of(stage, source)


def _placed(lines: list[str], place: places.Place, where: Where) -> Code:
    """Return a place's lines with their surroundings; alone if they are far apart or none of them is marked."""
    nearby = [n for n in place.beside if not place.lines or any(abs(n - one) <= REACH for one in place.lines)]
    seen = {*place.lines, *nearby}
    if place.lines and max(seen) - min(seen) <= 2 * REACH:
        return _around(lines, set(place.lines), seen, where)
    return Code([(n, lines[n - 1], n in place.lines) for n in sorted(seen)])


def _around(lines: list[str], marked: set[int], shown: set[int], where: Where) -> Code:
    """Return the lines from the first to the last that is marked or shown, and AROUND more at each end."""
    first, last = max(1, min(marked | shown) - AROUND), min(len(lines), max(marked | shown) + AROUND)
    caption = where(min(shown))
    caption = f"{caption[:1].upper()}{caption[1:]}:" if caption != f"line {min(shown)}" else ""
    return Code([(n, lines[n - 1], n in marked) for n in range(first, last + 1)], caption)


def show_line(text: str, number: int) -> list[object]:
    """Return one marked line of a text with those around it; nothing for a line that the text does not have."""
    lines = text.rstrip().split("\n")
    if not 0 < number <= len(lines):
        return []
    near = range(max(1, number - AROUND), min(len(lines), number + AROUND) + 1)
    return [Code([(n, lines[n - 1], n == number) for n in near])]


def _only(lines: list[str], wanted: Sequence[int]) -> Code:
    """Return only these lines, each marked."""
    return Code([(n, lines[n - 1], True) for n in sorted(wanted)])


def at_lead(
    found: fault_localization.Lead, source: str, where: Where, given: frozenset[int] | set[int] = frozenset()
) -> Code:
    """Return the student's lines around the one that fault localization found; both lines if something is missing
    between two, but no `given` one next to one of the student's.
    """
    marked = {found.line} | ({found.until} if found.until else set())
    return _around(split_lines(source), marked - set(given) or marked, {found.line}, where)


def _shows_no_more(code: Code, other: Code) -> bool:
    """Return whether all lines of an excerpt are in another one."""
    return {number for number, _, _ in code.lines} <= {number for number, _, _ in other.lines}


def _unmarked(code: Code) -> Code:
    """Return the same lines unmarked: a kernel need not be wrong in the line where it crashes or threads meet."""
    return dataclasses.replace(code, lines=[(n, text, False) for n, text, _ in code.lines])


# whose messages name the line of another thread
MEETINGS = {Reason.race, Reason.barrier_divergence, Reason.warp_divergence}
LINE = re.compile(r"(?<!\bloop in )\bline (\d+)\b")  # of an access or a barrier
REACH = 12  # lines


# --- IPython --------------------------------------------------------------------------------------------


def bundle(parts: Sequence[object]) -> dict[str, str]:
    """Return text/plain, and text/html unless only text is shown."""
    words = {"text/plain": as_text(parts)}
    return words if plain() else words | {"text/html": as_html(parts)}
