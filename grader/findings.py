"""Puts what went wrong in a worker, or in its numbers, into a reason, a sentence and evidence by the student's lines."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from grader import channel, contract, messages, places
from grader.channel import Failure, Found, Note
from grader.client import Gone, Late
from grader.contract import Source
from grader.verdict import EXPLANATIONS, Evidence, Launch, Reason

SENTENCE = 400  # characters of a message shown in a sentence; the whole is in the evidence
BUILD_REASONS = {
    *(Reason.compile_error, Reason.undeclared_function, Reason.missing_cpp_sources, Reason.link_error),
    *(Reason.unsupported_cuda, Reason.no_compiler),
}


@dataclasses.dataclass(frozen=True)
class Finding:
    """A reason with its sentence and what shows it. fatal: the worker is dead or of no further use."""

    reason: Reason
    message: str
    evidence: list[Evidence]
    fatal: bool = False


def of_failure(failure: Failure, source: Source, sources: list[dict[str, str]], case: str | None) -> Finding:
    """What an exception in the worker amounts to. sources: the strings that were compiled, newest first."""
    reason = Reason(failure.reason) if failure.reason in Reason.__members__ else Reason.exception
    if reason in BUILD_REASONS:
        return _of_build(failure, reason, source, sources[0] if sources else {}, case)
    if failure.kernel or failure.source_line:
        return _of_kernel(failure, reason, source, sources, case)
    said = _first_line(failure.message)
    if failure.kind and reason not in (Reason.missing_weights, Reason.no_model_new):
        said = f"{failure.kind}: {said}" if said else failure.kind
    where = f" at line {failure.line} of {source.path.name}" if failure.line else ""
    evidence = Evidence(
        case=case,
        line=failure.line,
        text=source.line(failure.line) or None,
        detail=failure.message.strip() if len(failure.message.strip()) > len(said) else None,
    )
    return Finding(reason, f"{_opening(reason)}{where}: {_clip(said)}{_explained(said, running=True)}", [evidence], failure.broken)


def _opening(reason: Reason) -> str:
    return EXPLANATIONS[reason].split(":")[0].rstrip(".")


def _of_build(failure: Failure, reason: Reason, source: Source, strings: dict[str, str], case: str | None) -> Finding:
    """Compiler messages, errors first, each at its line of the file."""
    notes = sorted(failure.notes, key=lambda note: "error" not in note.severity)
    notes = [lead := messages.first(notes)] + [note for note in notes if note is not lead] if notes else []
    evidence = [_of_note(note, source, strings, case, failure.line) for note in notes[:10]]
    if not evidence:
        evidence = [Evidence(case=case, line=failure.line, text=source.line(failure.line) or None, detail=failure.message)]
        return Finding(reason, _clip(_first_line(failure.message) or EXPLANATIONS[reason]), evidence)
    where = f"Line {evidence[0].line} of {source.path.name}: " if notes[0].line and evidence[0].line else ""
    evidence[0].detail = None  # the sentence says it
    string = strings.get(lead.source) or "\n".join(strings.values())
    return Finding(reason, where + _clip(lead.message) + _explained(lead.message, lead.text, string, lead.line), evidence)


def _explained(message: str, line: str = "", string: str = "", number: int | None = None, running: bool = False) -> str:
    """What usually causes a message, as a paragraph of its own; empty where that is not known. running: no compiler said it."""
    explanation = messages.explain(message, line, string, number)
    known = explanation and (not running or explanation.name in messages.WHILE_RUNNING)
    return f"\n{explanation.text}" if known else ""


def _of_note(note: Note, source: Source, strings: dict[str, str], case: str | None, call: int | None) -> Evidence:
    """A note with no line of its own is about the call of load_inline."""
    line = contract.locate(source, strings.get(note.source, ""), note.line) if note.line else call
    return Evidence(
        case=case,
        line=line,
        source_line=note.line,
        text=(source.line(line) or note.text.strip()) or None,
        detail=f"{note.severity}: {note.message}",
    )


def _of_kernel(failure: Failure, reason: Reason, source: Source, sources: list[dict], case: str | None) -> Finding:
    """An error in a kernel, at its line of the file."""
    string = _with_kernel(failure.kernel, failure.source or "cuda_sources", sources)
    line = contract.locate(source, string, failure.source_line)
    line = _dividing(source, line) if reason is Reason.division_by_zero and line else line
    evidence = Evidence(
        case=case,
        kernel=failure.kernel,
        block=failure.block,
        thread=failure.thread,
        line=line,
        source_line=failure.source_line,
        text=source.line(line) or None,
    )
    said = _with_file_lines(failure.message.strip(), source, string)
    said = said[:1].upper() + said[1:]
    said = _over_passes(said, line, source) if reason is Reason.race and line else said
    fatal = failure.broken or reason is Reason.kernel_timeout  # it would only take its time again
    return Finding(reason, _clip(said, 4 * SENTENCE) + _explained(said, running=True), [evidence], fatal)


NO_BARRIER = re.compile(r"^(?P<one>.*?), which (?P<other>.*) in line (?P<line>\d+):.* no __syncthreads\(\) lies between (?P<them>the two|them)", re.DOTALL)
DONE = {"reads": "read", "writes": "write", "updates atomically": "update"}  # simt's verb -> what was done


def _over_passes(said: str, line: int, source: Source) -> str:
    """The sentence on two threads that meet; where a barrier stands between their lines, with the way from one pass of the loop to the next
    that has none. line: of the access told first."""
    match = NO_BARRIER.match(said)
    if not match or not places.over_passes(source.text, line, int(match["line"])):
        return said
    done = [next((noun for verb, noun in DONE.items() if f" {verb}" in match[part]), "access") for part in ("one", "other")]
    earlier, later = done if line < int(match["line"]) else reversed(done)
    if earlier == later:
        later, earlier = f"{later} in line {max(line, int(match['line']))}", f"one in line {min(line, int(match['line']))}"
    way = f"the {later} in one pass of the loop and the {earlier} in the next"
    return said[: match.start("them")] + way + said[match.end("them") :]


DIVIDES = re.compile(r"[/%]=?\s*\(?\s*[A-Za-z_]")


def _dividing(source: Source, line: int) -> int:
    """The line, or one of the next two if that divides by a variable and the line itself does not: compilers take a division by the line that
    its divisor comes from."""
    near = [n for n in (line, line + 1, line + 2) if DIVIDES.search(source.line(n).split("//")[0])]
    return near[0] if near else line


def of_check(found: Found, source: Source, sources: list[dict], case: str | None) -> Finding:
    """What simt's checks found, as if it had stopped the kernel."""
    failure = Failure(
        reason=found.check, kind="", message=found.message, kernel=found.kernel, source=found.source, source_line=found.line or None,
        block=found.block, thread=found.thread,
    )
    reason = Reason(found.check) if found.check in Reason.__members__ else Reason.launch_error
    return _of_kernel(failure, reason, source, sources, case)


def _with_file_lines(message: str, source: Source, string: str) -> str:
    """The message with "line 5" of the string as the file's line."""

    def moved(match: re.Match) -> str:
        line = contract.locate(source, string, int(match.group(1)))
        return f"line {line}" if line else match.group(0)

    return re.sub(r"\bline (\d+)\b", moved, message)


def _with_kernel(kernel: str | None, label: str, sources: list[dict[str, str]]) -> str:
    """The string of this label that has the kernel in it; the newest where none is named."""
    texts = [strings.get(label, "") for strings in sources]
    if kernel:
        name = re.compile(rf"\b{re.escape(kernel.split('<')[0].split('::')[-1])}\b")
        texts = [text for text in texts if name.search(text)] or texts
    return texts[0] if texts else ""


def of_death(error: Gone | Late, source: Source, case: str | None, doing: str) -> Finding:
    """What a dead or a killed worker amounts to. doing: "the file was imported" and the like."""
    where = f" at line {error.line} of {source.path.name}" if error.line else ""
    evidence = [Evidence(case=case, line=error.line, text=source.line(error.line) or None)]
    if isinstance(error, Late):
        building = doing == IMPORT
        reason = Reason.build_timeout if building else Reason.timeout
        what = "The import" if building else doing
        at = f" It was{where}: look for a loop that never ends." if where else " Look for a loop that never ends."
        return Finding(reason, f"{what} was not done after {error.seconds:g} s and was stopped.{at}", evidence, True)
    return Finding(Reason.crash, f"The program {error.died}{where}.", evidence, True)


IMPORT = "the import"


def of_difference(difference: object, launches: Sequence[channel.Launch] = ()) -> Finding:
    """What compare found, as evidence. launches: of the call, as the worker told them."""
    fields = ("case", "index", "expected", "got", "wrong_count", "total", "pattern", "max_error", "tolerance", "detail", "wrong")
    evidence = Evidence(**{name: getattr(difference, name) for name in fields}, launches=of_launches(launches))
    return Finding(Reason(difference.reason), difference.message, [evidence])


LAUNCHES = 16  # kept
LARGEST = 2**31  # blocks or threads along an axis: more were never launched


def of_launches(told: Sequence[channel.Launch]) -> list[Launch]:
    """The last launches, without what cannot be one."""
    sound = [one for one in told[-LAUNCHES:] if all(0 < n < LARGEST for n in (*one.grid, *one.block))]
    return [Launch(kernel=_clip(one.kernel), grid=one.grid, block=one.block) for one in sound]


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _clip(text: str, limit: int = SENTENCE) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
