"""Turn a failure of the worker, or a difference of its outputs, into a finding at the student's lines."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

import simt
from grader.judging import compiler_messages
from grader.judging.trial import Finding
from grader.source import contract, cpp, divergence, overflow, places, syntax
from grader.source.contract import Source
from grader.verdict import EXPLANATIONS, Evidence, Launch, Reason, Stage, StageName, Status
from grader.worker import claims, protocol
from grader.worker.client import Gone, Late
from grader.worker.protocol import Failure, Found, Note
from simt.devices import DEFAULT
from simt.toolchain import cache

if TYPE_CHECKING:
    from grader.judging.tolerance import Difference

SENTENCE = 400  # characters of a message that a sentence shows; the evidence has the whole message
BUILD_REASONS = {Reason.no_compiler, *map(Reason, claims.BUILD_REASONS)}
KERNEL_TEXT = 4 * SENTENCE  # characters of a message about a kernel
LONGEST_LINE = 500  # characters that are looked at: patterns may take the square of a line's length
MOST_MOVED = 20  # lines that a message names and that are looked up in the file
FULL_DISK = 64 << 20  # bytes free, with fewer of which no build succeeds
UNUSABLE_CACHE = "The folder for built extensions"  # begins simt's message
FULL = ("No space left on device", "Disk quota exceeded")
BROKEN_BUILDS = (
    "the grader made a folder for the built kernels, and the file has made it unusable. Remove the code that changes "
    "SIMT_CACHE or what is in that folder."
)
# A number of more digits is no line, index or size. Python refuses to read one of 4300.
LONG_NUMBER = re.compile(r"\d{19,}")


def of_failure(
    failure: Failure,
    source: Source,
    sources: list[dict[str, str]],
    case: str | None,
    command: type[protocol.Command] = protocol.Forward,
) -> Finding:
    """Return the finding of an exception in the worker. sources: the strings that were compiled, newest first.

    command: what the worker was carrying out; it limits the reasons that the worker may give.
    """
    reason = _accept(failure.reason, command)
    failure = _shorten_numbers(failure)
    if reason in BUILD_REASONS:
        return _of_build(failure, reason, source, sources[0] if sources else {}, case)
    if failure.kernel or failure.source_line:
        return _of_kernel(failure, reason, source, sources, case)
    message = _first_line(failure.message)
    if failure.kind and reason not in (Reason.missing_weights, Reason.no_model_new):
        message = message or _find_assertion(failure, source)
        message = f"{failure.kind}: {message}" if message else failure.kind
    if _has_broken_builds(failure, reason):
        failure.message = message = BROKEN_BUILDS
    where = f" at line {failure.line} of {source.path.name}" if failure.line else ""
    evidence = Evidence(
        case=case,
        line=failure.line,
        text=source.line(failure.line) or None,
        detail=failure.message.strip() if len(failure.message.strip()) > len(message) else None,
    )
    return Finding(
        reason,
        f"{_opening(reason)}{where}: {_clip(message)}{_explained(message, running=True)}",
        [evidence],
        failure.broken,
    )


def _find_assertion(failure: Failure, source: Source) -> str:
    """Return the assert statement at the line of an AssertionError, in one line; empty for other errors."""
    if failure.kind != "AssertionError" or not failure.line:
        return ""
    try:
        nodes = [node for node in ast.walk(syntax.parse(source.text)) if isinstance(node, ast.Assert)]
    except (SyntaxError, ValueError, RecursionError):
        nodes = []
    at = [node for node in nodes if node.lineno <= failure.line <= (node.end_lineno or node.lineno)]
    found = (ast.get_source_segment(source.text, at[-1]) or "") if at else source.line(failure.line)
    return " ".join(found.split())


def of_nonsense(case: str | None) -> Finding:
    """Return the finding of a worker whose reply makes no sense."""
    message = "The program answered the grader with something that makes no sense."
    return Finding(Reason.crash, message, [Evidence(case=case)], fatal=True)


def _accept(claimed: str, command: type[protocol.Command]) -> Reason:
    """Return the claimed reason where a worker may give it, else the command's generic one."""
    if claimed in claims.MACHINE_REASONS and _is_machine_at_fault(claimed):
        return Reason(claimed)
    return Reason(claims.accept_reason(claimed, command))


def _is_machine_at_fault(reason: str) -> bool:
    """Return whether the judge itself finds no compiler that it can use, or no room for what is built."""
    try:
        if reason == Reason.no_compiler:
            simt.warm_up()
            return False
        return cache.free_bytes() < FULL_DISK
    except (simt.BuildError, OSError):
        return True


def _has_broken_builds(failure: Failure, reason: Reason) -> bool:
    """Return whether the worker cannot use the folder that the judge has made for it, and the disk is not full."""
    is_refuted = failure.reason == Reason.grader_error and reason != Reason.grader_error
    is_full = any(words in failure.message for words in FULL)
    return is_refuted and failure.message.startswith(UNUSABLE_CACHE) and not is_full


AnyReport = TypeVar("AnyReport", Failure, Found, Note)


def _shorten_numbers(report: AnyReport) -> AnyReport:
    """Return the report with each number that is too long to be one replaced in its texts."""
    changed: dict[str, object] = {
        name: LONG_NUMBER.sub("…", value)
        for name in report.__struct_fields__
        if isinstance(value := getattr(report, name), str)
    }
    if isinstance(report, Failure):
        changed["notes"] = [_shorten_numbers(note) for note in report.notes]
    return msgspec.structs.replace(report, **changed)


def _opening(reason: Reason) -> str:
    return EXPLANATIONS[reason].split(":")[0].rstrip(".")


def _of_build(failure: Failure, reason: Reason, source: Source, strings: dict[str, str], case: str | None) -> Finding:
    """Return the finding of compiler messages, errors first, each at its line of the file."""
    notes = sorted(failure.notes, key=lambda note: "error" not in note.severity)
    notes = (
        [first := compiler_messages.find_cause(notes)] + [note for note in notes if note is not first] if notes else []
    )
    evidence = [_of_note(note, source, strings, case, failure.line) for note in notes[:10]]
    if not evidence:
        message = _clip(_first_line(failure.message) or EXPLANATIONS[reason])
        detail = failure.message if failure.message.strip() != message else None  # the sentence may be all of it
        evidence = [Evidence(case=case, line=failure.line, text=source.line(failure.line) or None, detail=detail)]
        return Finding(reason, message, evidence)
    where = f"Line {evidence[0].line} of {source.path.name}: " if notes[0].line and evidence[0].line else ""
    evidence[0].detail = None  # the sentence has it
    string = strings.get(first.source) or "\n".join(strings.values())
    explanation = compiler_messages.explain(first.message, first.text, string, first.line)
    if explanation and explanation.number and (line := contract.locate(source, string, explanation.number)):
        evidence[0].line, evidence[0].source_line, evidence[0].text = line, explanation.number, source.line(line)
    return Finding(reason, where + _clip(first.message) + _as_paragraph(explanation), evidence)


def _explained(message: str, line: str = "", string: str = "", number: int | None = None, running: bool = False) -> str:
    """Return what usually causes a message, as a separate paragraph; empty if that is not known.

    running: the message came while the program ran, not from a compiler.
    """
    explanation = compiler_messages.explain(message, line, string, number)
    if running and explanation and explanation.name not in compiler_messages.WHILE_RUNNING:
        return ""
    return _as_paragraph(explanation)


def _as_paragraph(explanation: compiler_messages.Explanation | None) -> str:
    return f"\n{explanation.text}" if explanation else ""


def _of_note(note: Note, source: Source, strings: dict[str, str], case: str | None, call: int | None) -> Evidence:
    """Return a note as evidence. A note without a line is about the call of load_inline."""
    line = contract.locate(source, strings.get(note.source, ""), note.line) if note.line else call
    return Evidence(
        case=case,
        line=line,
        source_line=note.line,
        text=(source.line(line) or note.text.strip()) or None,
        detail=f"{note.severity}: {note.message}",
    )


def _of_kernel(failure: Failure, reason: Reason, source: Source, sources: list[dict], case: str | None) -> Finding:
    """Return the finding of an error in a kernel, at its line of the file."""
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
    message = _with_file_lines(failure.message.strip()[:KERNEL_TEXT], source, string)
    message = message[:1].upper() + message[1:]
    if reason is Reason.race and line:
        message = _advise_atomic(message, line, source) or _over_passes(message, line, source)
        message = _advise_variable(message, line, source)
    if reason is Reason.int_overflow and line and (why := overflow.explain_overflow(source.text, line)):
        message = message.replace(WIDER, why)
    if line:
        message = _drop_advice(message, reason, line, source)
    if reason is Reason.uninitialized and line and places.has_setters(message, source.text, line):
        message = INITIALIZE.sub("", message)  # lines set the array, and not this element: which is what to look at
    if reason is Reason.launch_error and NAMES_DEVICE.search(message):
        message = f"{message} {WHY_ITS_LIMITS}{FITS_ALL if ' per block' in message else '.'}"
    fatal = failure.broken or reason is Reason.kernel_timeout  # each further case would take the whole limit again
    return Finding(reason, _clip(message, KERNEL_TEXT) + _explained(message, running=True), [evidence], fatal)


# "the limit is 49,152 bytes on a T4": simt's limits are those of its default GPU, not those of --gpu.
NAMES_DEVICE = re.compile(rf" on an? {re.escape(DEFAULT)}\b")
WHY_ITS_LIMITS = f"Without a GPU, a launch has the limits of the {DEFAULT}, whichever GPU the time is predicted for"
FITS_ALL = ": a block within them fits every other GPU here."

# "A reads …, which B writes in line 7 without a barrier in between. Put a `__syncthreads()` between the two."
NO_BARRIER = " without a barrier in between."
OTHER_LINE = re.compile(r" in line (\d{1,9})$")
ADVICE = re.compile(r" [Pp]ut a `__syncthreads\(\)` between (the two)")
ACCESSES = {"reads": "read", "writes": "write", "updates atomically": "update"}  # simt's verb -> the noun


# "A reads …, which B writes in line 7" and why nothing orders the two; then the advice.
BOTH_LINES = re.compile(r" in line (\d{1,9})(?: without a barrier in between\.|\. Blocks run in any order\.)")
# `*loss += l / B;` or `total[c] = total[c] + x;`: what is updated, its name, the operator, what is added
UPDATE = re.compile(
    r"(?:^|[;{})]|\belse\b)\s*(?P<target>\*?\s*(?P<name>[A-Za-z_]\w*)(?:\s*\[[^=;]*\])?)\s*"
    r"(?:(?P<sign>[+-])=|=\s*(?P=target)\s*[+-])(?P<rest>[^;]*)"
)

# `bins[k]++;` or `++*count;`
INCREMENT = re.compile(
    r"(?:^|[;{})]|\belse\b)\s*(?P<sign>\+\+|--)?\s*(?P<target>(?P<name>[A-Za-z_]\w*)\s*\[[^=;]*\]|\*\s*[A-Za-z_]\w*)\s*"
    r"(?(sign)|(?:\+\+|--))\s*;"
)


def _drop_advice(message: str, reason: Reason, line: int, source: Source) -> str:
    """Return the message without the general advice where a report gives the cause, as the source shows it."""
    advice = ADVICE_WITHOUT_CAUSE.get(reason)
    if advice is None or advice not in message:
        return message
    stage = Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message)
    short = "\n".join(one[:LONGEST_LINE] for one in source.text.split("\n"))
    return message.replace(advice, "") if places.find_place(stage, short, line) else message


def _advise_atomic(message: str, line: int, source: Source) -> str:
    """Return the sentence on two threads that both add to one element in a line, with the advice that helps.

    A barrier does not order them: each reads and writes in the same statement. Empty for any other race, also for
    `s[t] += s[t + k]`, which reads other elements of the same array.
    """
    code = source.line(line).split("//")[0]
    places, update = BOTH_LINES.search(message), UPDATE.search(code) or INCREMENT.search(code)
    if places is None or update is None or int(places[1]) != line:
        return ""
    if re.search(rf"\b{update['name']}\b", update.groupdict().get("rest", "")):
        return ""
    target = " ".join(update["target"].split())
    pointer = target[1:].strip() if target.startswith("*") else f"&{target}"
    end = places.end(1)
    return f"{message[:end]}. Both add to the same element in this line: use `atomicAdd({pointer}, …)`."


# The advice of simt on a race of a line with itself, which cannot know what is around the line.
ONE_LINE = re.compile(r"Both are in this line: if it is in a loop, .*? before the write\.")
WIDER = "Compute it in `size_t` or `long long`."  # simt's advice on an overflow, which is right for an index
# simt's advice, by reason, which is left out where the source shows the cause
ADVICE_WITHOUT_CAUSE = {
    Reason.out_of_bounds: " Check the index before the access.",
    Reason.stack_overflow: (
        " A recursion needs an end that each thread reaches; a large array belongs in shared or global memory."
    ),
    Reason.division_by_zero: " Find out which size makes the divisor 0, or test it first.",
}
IN_A_LOOP = re.compile(r" If the line is in a loop and each pass writes( other elements, put .*? and the next\.)")
INITIALIZE = re.compile(r" Initialize it before the \w+\.")
IN_ONE_WARP = re.compile(r"\bif\s*\(\s*threadIdx\.x\s*(?:<\s*(?:32|warpSize|WARP\w*)|<=\s*31)\s*\)")


def _advise_variable(message: str, line: int, source: Source) -> str:
    """Return the message on a race of a line with itself, with the advice that fits the loop around the line.

    A barrier at the end of the loop's body does not help where one is there already, nor under an `if` that one warp
    enters alone.
    """
    text = cpp.Text(source.text)
    function = text.around(line)
    around = places.find_around(source.text, line)
    loops = [one for one in around if places.LOOP.search(one.head)]
    if function is None or not (loops or function.kernel):  # a helper may be called in a loop
        return message
    if not ONE_LINE.search(message):
        loop = f"If each pass of the loop in line {loops[-1].line} writes" if loops else ""
        return IN_A_LOOP.sub(f" {loop}\\1" if loop else "", message)
    if not loops:
        advice = "Both are in this line: keep what is read in a variable, and put a `__syncthreads()` before the write."
    elif divergence.find_uneven_loop(text, function, text.start(line)):
        advice = (
            "Both are in this line, and the threads make different numbers of passes of the loop in line "
            f"{loops[-1].line}, so that no barrier can order them there. Give each thread elements of its own, or use "
            "an atomic operation."
        )
    elif "__syncthreads" in loops[-1].body:
        advice = (
            "Both are in this line, and the barrier of the loop orders one pass and the next, but not the threads "
            "within a pass. Read into a variable first, then call `__syncthreads()` outside of any `if`, then write; "
            "or read one array and write another."
        )
    elif any(IN_ONE_WARP.search(one.head) for one in around):
        advice = (
            "Both are in this line, which one warp runs alone. In each pass read into a variable, call `__syncwarp()`, "
            "write, and call `__syncwarp()` again."
        )
    else:
        advice = (
            f"Both are in this line: end the body of the loop in line {loops[-1].line} with a `__syncthreads()`, "
            "outside of any `if`."
        )
    return ONE_LINE.sub(advice, message)


def _over_passes(message: str, line: int, source: Source) -> str:
    """Return the sentence on two threads that race.

    If there is a barrier between their lines, the accesses of one pass of a loop race with those of the next, and the
    sentence names these instead of "the two". line: of the access named first.
    """
    one, _, rest = message.partition(", which ")
    other, _, advice = rest.partition(NO_BARRIER)
    named, between = OTHER_LINE.search(other[-40:]), ADVICE.search(advice)
    if named is None or between is None or not places.over_passes(source.text, line, int(named[1])):
        return message
    second = int(named[1])
    accesses = [
        next((noun for verb, noun in ACCESSES.items() if f" {verb}" in part), "access") for part in (one, other)
    ]
    earlier, later = accesses if line < second else reversed(accesses)
    if earlier == later:
        later, earlier = f"{later} in line {max(line, second)}", f"one in line {min(line, second)}"
    both = f"the {later} in one pass of the loop and the {earlier} in the next"
    before = len(message) - len(advice)
    return message[: before + between.start(1)] + both + message[before + between.end(1) :]


DIVIDES = re.compile(r"[/%]=?\s*\(?\s*[A-Za-z_]")


def _dividing(source: Source, line: int) -> int:
    """Return the line, or one of the next two if that divides by a variable and the line itself does not.

    Compilers attribute a division to the line that its divisor comes from.
    """
    near = [n for n in (line, line + 1, line + 2) if DIVIDES.search(source.line(n).split("//")[0])]
    return near[0] if near else line


def of_check(found: Found, source: Source, sources: list[dict], case: str | None) -> Finding:
    """Return what simt's checks found as a finding, in the same form as an error that stops the kernel."""
    if found.check not in claims.CHECK_REASONS:
        return of_nonsense(case)
    found = _shorten_numbers(found)
    failure = Failure(
        reason=found.check,
        kind="",
        message=found.message,
        kernel=found.kernel,
        source=found.source,
        source_line=found.line or None,
        block=found.block,
        thread=found.thread,
    )
    reason = Reason(claims.CHECK_REASONS[found.check])
    return _of_kernel(failure, reason, source, sources, case)


def _with_file_lines(message: str, source: Source, string: str) -> str:
    """Return the message with "line 5" of the string as the file's line."""

    def moved(match: re.Match) -> str:
        line = contract.locate(source, string, int(match.group(1)))
        return f"line {line}" if line else match.group(0)

    return re.sub(r"\bline (\d{1,9})\b", moved, message, count=MOST_MOVED)


def _with_kernel(kernel: str | None, label: str, sources: list[dict[str, str]]) -> str:
    """Return the newest string of this label that contains the kernel, or the newest one if none does."""
    texts = [strings.get(label, "") for strings in sources]
    if kernel:
        name = re.compile(rf"\b{re.escape(kernel.split('<')[0].split('::')[-1])}\b")
        texts = [text for text in texts if name.search(text)] or texts
    return texts[0] if texts else ""


def of_death(error: Gone | Late, source: Source, case: str | None, doing: str) -> Finding:
    """Return the finding of a worker that died or was stopped. doing: its current step, such as IMPORT."""
    where = f" at line {error.line} of {source.path.name}" if error.line else ""
    evidence = [Evidence(case=case, line=error.line, text=source.line(error.line) or None)]
    if isinstance(error, Late):
        building = doing == IMPORT
        reason = Reason.build_timeout if building else Reason.timeout
        what = "The import" if building else doing
        if error.total:
            message = f"All steps together took more than {error.seconds:g} s, and {doing} was stopped. Make it faster."
            return Finding(Reason.timeout, message, evidence, True)
        at = f" It was{where}: look for a loop that never ends." if where else " Look for a loop that never ends."
        return Finding(reason, f"{what} did not end within {error.seconds:g} s and was stopped.{at}", evidence, True)
    return Finding(Reason.crash, f"The program {error.died}{where}.", evidence, True)


IMPORT = "the import"


def of_difference(difference: Difference, launches: Sequence[protocol.Launch] = ()) -> Finding:
    """Return a difference as a finding. launches: of the call, as the worker reported them."""
    fields = (
        "case",
        "index",
        "expected",
        "got",
        "wrong_count",
        "total",
        "pattern",
        "max_error",
        "tolerance",
        "detail",
        "wrong",
    )
    made = of_launches(launches)
    difference = _name_uncovered(difference, made)
    evidence = Evidence(**{name: getattr(difference, name) for name in fields}, launches=made)
    return Finding(Reason(difference.reason), difference.message, [evidence])


TAIL = re.compile(r"\belements ([\d,]{1,18}) and up")


def _name_uncovered(difference: Difference, launches: Sequence[Launch]) -> Difference:
    """Return the difference with the blocks that end where its wrong elements begin, if a launch has such ones."""
    tail = TAIL.search(difference.pattern or "")
    if tail is None or difference.pattern is None:
        return difference
    first = int(tail[1].replace(",", ""))
    for launch in reversed(launches):
        (blocks, *others), threads = launch.grid, math.prod(launch.block)
        if others == [1, 1] and threads > 1 and blocks * threads == first:
            the = (
                f"the only block, of {threads:,} threads"
                if blocks == 1
                else f"the {blocks:,} blocks of {threads:,} threads"
            )
            pattern = difference.pattern.replace(tail[0], f"{tail[0]}, past {the}")
            message = difference.message.replace(difference.pattern, pattern)
            return dataclasses.replace(difference, pattern=pattern, message=message)
    return difference


LAUNCHES = 16  # kept in the evidence
LARGEST = 2**31  # CUDA launches fewer blocks or threads along an axis


def of_launches(reported: Sequence[protocol.Launch]) -> list[Launch]:
    """Return the last launches that CUDA can have made; a worker may report anything."""
    sound = [one for one in reported[-LAUNCHES:] if all(0 < n < LARGEST for n in (*one.grid, *one.block))]
    return [Launch(kernel=_clip(one.kernel), grid=one.grid, block=one.block) for one in sound]


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _clip(text: str, limit: int = SENTENCE) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
