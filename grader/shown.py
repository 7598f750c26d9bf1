"""What a notebook or a terminal shows of a verdict: one list of parts, drawn as text or as HTML with the same words."""

from __future__ import annotations

import dataclasses
import html
import os
import re
from collections.abc import Callable, Sequence

from grader import dropped, gradient_places, places, repair, report, student, suspects
from grader.report import clean
from grader.verdict import EXPLANATIONS, Evidence, Outcome, Reason, Stage, Status, Verdict

AROUND = 2  # lines shown before and after a wrong one
Where = Callable[[int], str]  # a line of the file -> what to call it: "line 12", or "line 3 of cell [7]"


def plain() -> bool:
    """Whether only words are wanted, and none that change from run to run: nbval compares what is shown."""
    return "NBVAL" in os.environ or "NBVAL_RUN" in os.environ or os.environ.get("GRADER_PICTURES") == "png"


# --- parts -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Words:
    """A paragraph. look: "title", "lead", "text" or "soft". `words` in backquotes are code. tone: an outcome or status."""

    text: str
    look: str = "text"
    tone: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells; tones: of the second cell of each row. head: names of the columns, numbers: which columns are numbers."""

    rows: Sequence[Sequence[str]]
    tones: Sequence[str] = ()
    head: Sequence[str] = ()
    numbers: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class Code:
    """Lines of the student's source: (number, text, whether it is the wrong one). caption: what they are."""

    lines: Sequence[tuple[int, str, bool]]
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Image:
    """A picture of grader.pictures."""

    picture: object


# --- text ------------------------------------------------------------------------------------------------------------


def as_text(parts: Sequence[object]) -> str:
    """The parts for a terminal: every word that the HTML has."""
    lines: list[str] = []
    for before, part in zip([None, *parts], parts):
        if isinstance(before, (Code, Image)) and isinstance(part, Words) and part.look != "lead":
            lines.append("")
        lines += [line.rstrip() for line in _text(part)]
    return "\n".join(lines).strip("\n")


def _text(part: object) -> list[str]:
    if isinstance(part, Words):
        lines = clean(part.text).split("\n")
        return lines if part.look in ("title", "soft") else ["", *lines] if part.look == "lead" else lines
    if isinstance(part, Table):
        return _columns(part)
    if isinstance(part, Code):
        width = len(str(max((number for number, _, _ in part.lines), default=0)))
        head = ["", clean(part.caption)] if part.caption else [""]
        return head + [f"{'→' if wrong else ' '} {number:>{width}} │ {clean(text)}" for number, text, wrong in part.lines]
    if isinstance(part, Image):
        return ["", f"Picture: {clean(part.picture.alt)}"]
    raise TypeError(type(part))


def _columns(table: Table) -> list[str]:
    rows = [[clean(cell).replace("\n", " ") for cell in row] for row in ([table.head] if table.head else []) + list(table.rows)]
    widths = [max((len(row[n]) for row in rows if n < len(row)), default=0) for n in range(max(map(len, rows), default=0))]
    return ["  " + "  ".join(c.rjust(w) if n in table.numbers else c.ljust(w) for n, (c, w) in enumerate(zip(row, widths))) for row in rows]


# --- HTML ------------------------------------------------------------------------------------------------------------

# JupyterLab's own colours, which follow its theme; the values behind the commas are for pages without them.
INK, SOFT = "var(--jp-content-font-color1, inherit)", "var(--jp-content-font-color2, inherit)"
MONO = "font-family:var(--jp-code-font-family, monospace);font-size:var(--jp-code-font-size, 13px);line-height:1.45"
PANEL = "background:var(--jp-cell-editor-background, rgba(128,128,128,.10));border:1px solid var(--jp-cell-editor-border-color, rgba(128,128,128,.35))"
GOOD, BAD, CAUTION = "var(--jp-success-color1, #2e7d32)", "var(--jp-error-color1, #d32f2f)", "var(--jp-warn-color1, #e65100)"
TONES = {"passed": GOOD, "failed": BAD, "error": CAUTION, "not_attempted": CAUTION, "skipped": SOFT}
LOOKS = {
    "title": "font-weight:600;font-size:1.1em;margin:0 0 .4em",
    "lead": "font-weight:600;margin:.9em 0 .2em",
    "text": "margin:.2em 0",
    "soft": f"color:{SOFT};margin:.4em 0",
}


def as_html(parts: Sequence[object]) -> str:
    """The parts for JupyterLab. Nothing of the student's gets into it unescaped."""
    inside = "".join(_html(part) for part in parts)
    return f'<div class="grader" style="color:{INK};max-width:60em;line-height:1.45">{inside}</div>'


def _html(part: object) -> str:
    if isinstance(part, Words):
        bar = f";border-left:4px solid {TONES[part.tone]};padding-left:.6em" if part.tone in TONES else ""
        return f'<div style="{LOOKS[part.look]}{bar};white-space:pre-line;overflow-wrap:anywhere">{_inline(part.text)}</div>'
    if isinstance(part, Table):
        return _html_table(part)
    if isinstance(part, Code):
        return _html_code(part)
    if isinstance(part, Image):
        return f'<div style="margin:.8em 0;max-width:100%;overflow-x:auto">{part.picture.svg()}</div>'
    raise TypeError(type(part))


def _inline(text: str) -> str:
    """Escaped, with what stands in backquotes as code."""
    safe = html.escape(clean(text))
    return re.sub(r"`([^`\n]+)`", rf'<code style="{MONO};background:none;padding:0">\1</code>', safe)


def _html_table(table: Table) -> str:
    side = "padding:1px 1.4em 1px 0;vertical-align:top;background:none"

    def cell(n: int, text: str, more: str, tag: str = "td") -> str:
        align = "right" if n in table.numbers else "left"
        return f'<{tag} style="{side};text-align:{align};{more}">{_inline(text)}</{tag}>'

    rows = ["<tr>" + "".join(cell(n, text, f"color:{SOFT};font-weight:normal", "th") for n, text in enumerate(table.head)) + "</tr>"] if table.head else []
    for number, row in enumerate(table.rows):
        tone = table.tones[number] if number < len(table.tones) else ""
        looks = [f"color:{SOFT};white-space:nowrap" if table.tones or not table.head else ""] + [f"color:{TONES[tone]};font-weight:600" if tone in TONES else ""]
        rows.append('<tr style="background:none">' + "".join(cell(n, text, looks[n] if n < 2 else "") for n, text in enumerate(row)) + "</tr>")
    return f'<div style="overflow-x:auto"><table style="border:none;margin:.2em 0;border-collapse:collapse">{"".join(rows)}</table></div>'


def _html_code(part: Code) -> str:
    caption = f'<div style="color:{SOFT};margin:.6em 0 .2em">{_inline(part.caption)}</div>' if part.caption else ""
    width = len(str(max((number for number, _, _ in part.lines), default=0)))
    lines = []
    for number, text, wrong in part.lines:
        mark = f"border-left:4px solid {BAD};background:rgba(211,47,47,.14)" if wrong else "border-left:4px solid transparent"
        arrow = "→" if wrong else " "
        lines.append(f'<div style="{mark};padding:0 .5em">{arrow} {number:>{width}} │ {html.escape(clean(text))}</div>')
    return f'{caption}<div style="{MONO};{PANEL};white-space:pre;overflow-x:auto;padding:.3em 0;margin:.2em 0">{"".join(lines)}</div>'


# --- a verdict -------------------------------------------------------------------------------------------------------


def verdict_parts(
    verdict: Verdict, source: str, pictures: Sequence[object], where: Where | None = None, times: bool = False, note: str = "",
    lead: repair.Lead | None = None,
) -> list[object]:  # fmt: skip
    """What there is to say of a verdict: outcome, stages, and for each stage that did not pass its sentence, evidence and lines.

    source: the submission's text. times: seconds too, which change from run to run. note: a remark below the title. lead: the line that an
    edit shows to be wrong; it stands in the place of lines that the text alone makes suspect.
    """
    where = where or (lambda line: f"line {line}")
    word = report.WORDS.get(verdict.outcome, verdict.outcome.value)
    parts: list[object] = [Words(f"{verdict.problem}: {word}", "title", verdict.outcome.value)]
    parts += [Words(note, "soft")] if note else []
    parts.append(_stages(verdict, times))
    parts += [Words(EXPLANATIONS[verdict.doubt])] if verdict.doubt else []
    failed = [stage for stage in verdict.stages if stage.status in (Status.failed, Status.error)]
    found = lead is not None or any(one.line for stage in failed for one in stage.evidence[:1])
    given = student.outside_places(source, verdict.problem)
    for number, stage in enumerate(failed):
        made = _failure(stage, source, where, number > 0, found, given)
        made = [_unmarked(part) if lead and isinstance(part, Code) else part for part in made]
        parts += [part for part in made if not (isinstance(part, Code) and part in parts)]
        parts += [Words(moved(lead.words, where)), at_lead(lead, source, where)] if number == 0 and lead else []
        parts += [Image(picture) for picture in pictures] if number == 0 else []
    if any(stage.measurements for stage in verdict.stages):
        rows = [(one.name, f"{one.value:.4g} {one.unit}") for stage in verdict.stages for one in stage.measurements]
        parts += [Words("Measured", "lead"), Table(rows)]
    if verdict.output.strip() and verdict.outcome is not Outcome.passed:
        lines = clean(verdict.output).strip().splitlines()[-report.OUTPUT_LINES :]
        parts += [Words("It printed", "lead"), Words("\n".join(line[:200] for line in lines))]
    return parts


def _stages(verdict: Verdict, times: bool) -> Table:
    rows, tones = [], []
    for stage in verdict.stages:
        if stage.reason is Reason.not_reached:
            continue
        remark = report.remark(stage)
        rows.append((stage.name.value, stage.status.value, *([f"{stage.seconds:.1f} s"] if times else []), remark))
        tones.append(stage.status.value)
    return Table(rows, tones)


def _failure(stage: Stage, source: str, where: Where, explains: bool, found: bool, given: set[int]) -> list[object]:
    """One stage that did not pass. explains: it tells why an earlier one did not. found: some stage knows the wrong line. given: lines outside
    of the exercise's marked places."""
    said = moved(clean(stage.message), where)
    lead = "What the checks found in a failing case" if explains else f"Stage {stage.name.value}"
    parts: list[object] = [Words(lead, "lead"), Words(said, "text", stage.status.value)]
    parts += [Words(advice)] if (advice := report.advice(stage)) else []
    first = stage.evidence[0] if stage.evidence else None
    if first is not None:
        facts = [(name, moved(value, where)) for name, value in report.facts(first) if not name.startswith("line ") and name != "at"]
        parts += [Table(facts)] if facts else []
        parts += excerpt(first, stage, source, where, found, given)
    wrong = [case.name for case in stage.cases if case.status is Status.failed]
    right = [case.name for case in stage.cases if case.status is Status.passed]
    if wrong and right:
        parts.append(Words(f"Right: {'; '.join(right)}. Wrong: {'; '.join(wrong)}.", "soft"))
    return parts


def moved(text: str, where: Where) -> str:
    """The text with each "line 12 of NAME.py" as `where` calls it."""
    def called(match: re.Match) -> str:
        name = where(int(match[2]))
        return name[:1].upper() + name[1:] if match[1] == "L" else name

    if where(1) == "line 1":
        return text
    return re.sub(r"\b([Ll])ine (\d+)\b(?: of ModelNew\.py)?", called, text)


def excerpt(
    one: Evidence, stage: Stage, source: str, where: Where, found: bool = False, given: frozenset[int] | set[int] = frozenset()
) -> list[object]:  # fmt: skip
    """The student's lines around the wrong one, those that the message names marked too; where none is `found`, the suspects, of those that
    are not `given` if there are any."""
    lines = source.splitlines()
    if one.line and 0 < one.line <= len(lines):
        marked = {one.line} | {n for n in map(int, LINE.findall(stage.message)) if stage.reason in MEETINGS and abs(n - one.line) <= REACH}
        place = places.of(stage, source, one.line)
        told = [Words(moved(place.words, where))] if place else []
        if place and all(abs(n - one.line) <= REACH for n in place.lines):
            seen = {one.line, *(n for n in place.beside if abs(n - one.line) <= REACH)}
            return told + [_around(lines, set(place.lines) if place.instead else marked | set(place.lines), seen, where)]
        words, more = suspects.also(stage, source)
        apart = [_only(lines, place.lines)] if place else []
        mine = set() if more or (place and place.instead) else marked
        raised = [Code([(n, lines[n - 1], len(more) == 1) for n in more], words)] if more else []
        return [_around(lines, mine, marked, where), *told, *apart, *raised]
    if not found and (place := place_of(stage, source)):
        return [Words(moved(place.words, where)), _placed(lines, place, where)]
    words, chosen = ("", []) if found else suspects.of(stage, source, given)
    accused = suspects.accused(stage, words, chosen)
    return [Code([(n, lines[n - 1], accused) for n in chosen], words)] if chosen else []


def place_of(stage: Stage, source: str) -> places.Place | None:
    """The lines that the text shows to be wrong where no check and no edit names one."""
    return gradient_places.of(stage, source) or dropped.of(stage, source)


def _placed(lines: list[str], place: places.Place, where: Where) -> Code:
    """A place's lines with those around, or alone where they are far from each other, or none of them is marked."""
    beside = [n for n in place.beside if not place.lines or any(abs(n - one) <= REACH for one in place.lines)]
    seen = {*place.lines, *beside}
    if place.lines and max(seen) - min(seen) <= 2 * REACH:
        return _around(lines, set(place.lines), seen, where)
    return Code([(n, lines[n - 1], n in place.lines) for n in sorted(seen)])


def _around(lines: list[str], marked: set[int], shown: set[int], where: Where) -> Code:
    """The lines from the first to the last of those marked or to be shown, and two more at each end."""
    first, last = max(1, min(marked | shown) - AROUND), min(len(lines), max(marked | shown) + AROUND)
    caption = where(min(shown))
    caption = f"{caption[:1].upper()}{caption[1:]}:" if caption != f"line {min(shown)}" else ""
    return Code([(n, lines[n - 1], n in marked) for n in range(first, last + 1)], caption)


def _only(lines: list[str], wanted: Sequence[int]) -> Code:
    """Some lines alone, each marked."""
    return Code([(n, lines[n - 1], True) for n in sorted(wanted)])


def at_lead(found: repair.Lead, source: str, where: Where) -> Code:
    """The student's lines around the one that an edit shows to be wrong; for what is missing between two, both."""
    marked = {found.line} | ({found.until} if found.until else set())
    return _around(source.splitlines(), marked, {found.line}, where)


def _unmarked(code: Code) -> Code:
    """The same lines, none accused: where a kernel crashes or threads meet need not be where the mistake is."""
    return dataclasses.replace(code, lines=[(n, text, False) for n, text, _ in code.lines])


MEETINGS = {Reason.race, Reason.barrier_divergence, Reason.warp_divergence}  # whose messages name the line of another thread
LINE = re.compile(r"\bline (\d+)\b")
REACH = 12  # lines


# --- what IPython asks for --------------------------------------------------------------------------------------------


def bundle(parts: Sequence[object]) -> dict[str, str]:
    """text/plain, and text/html unless only words are wanted."""
    words = {"text/plain": as_text(parts)}
    return words if plain() else words | {"text/html": as_html(parts)}
