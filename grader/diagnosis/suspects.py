"""Choose the suspect lines by the reason and the pattern of the wrong elements, if no line is known to be wrong."""

from __future__ import annotations

import re

from grader.diagnosis.backward_kernels import backward_lines, gradient_lines
from grader.diagnosis.source_lines import FINDERS, kernel_lines, prose_lines, result_stores, returns
from grader.diagnosis.suspicions import ANY, GUESSED, RETURN, STORE, SURE, SUSPICIONS, Suspicion
from grader.source import places
from grader.verdict import Reason, Stage, StageName

SHOWN = 8  # lines at most: a student does not read more


def of(stage: Stage, source: str, given: frozenset[int] | set[int] = frozenset()) -> tuple[str, list[int]]:
    """Return the text above the suspect lines, and the lines; ("", []) if no suspicion fits.

    given: lines that the exercise gave the student: they are suspect only if no other line is.
    """
    seen = " ".join(filter(None, [stage.evidence[0].pattern if stage.evidence else "", stage.message.split(";")[0]]))
    kernels, stores = kernel_lines(source), result_stores(source)
    gradient = stage.evidence[0].gradient if stage.evidence else None
    if stage.name is StageName.gradient and (there := gradient_lines(source, gradient) or backward_lines(source)):
        kernels, stores = there, [line for line in stores if line in there]
    fitting = [
        one for one in SUSPICIONS if stage.reason in one.reasons and re.search(one.pattern, seen) and one.when(stage)
    ]
    for without in (given, frozenset()) if given else (given,):
        for one in fitting:
            lines = _lines(source, one, kernels, stores, frozenset() if one.sure else without)
            if lines and not without.issuperset(lines):
                return one.words, lines
    return "", []


def accused(stage: Stage, words: str, lines: list[int]) -> bool:
    """Return whether these lines are wrong, not only suspect.

    They are if the source itself shows it, or if this line alone produces what failed.
    """
    return words in SURE or (len(lines) == 1 and stage.reason not in GUESSED)


def also(stage: Stage, source: str) -> tuple[str, list[int]]:
    """Return further lines next to the Python line: where the C++ function raised, or where it may have crashed."""
    if stage.reason is Reason.exception:
        return "The C++ function raised it here:", _raising(source, stage.message)
    if stage.reason is Reason.crash and "segmentation fault" in stage.message:
        if places.find_place(stage, source, None):
            return "", []
        kernels, code = kernel_lines(source), source.split("\n")
        pointers = [
            n for n in range(1, len(code) + 1) if n not in kernels and POINTER.search(code[n - 1].split("//")[0])
        ]
        return "The code outside of kernels uses pointers here:", pointers[:SHOWN]
    return "", []


POINTER = re.compile(r"\b\w+\s*\*\s*\w+\s*=|nullptr|\bNULL\b|\breinterpret_cast|data_ptr<\w+>\(\)\s*\[")


def _raising(source: str, message: str) -> list[int]:
    """Return the lines with a TORCH_CHECK or a throw whose string literals are in the message."""
    found = []
    for match in re.finditer(r"(?:TORCH_CHECK\w*|AT_ERROR|TORCH_INTERNAL_ASSERT|throw\b[^(;]*)\s*\(([^;]*)\);", source):
        words = re.findall(r'"([^"\n]{6,})"', match[1])
        if words and all(w.strip() in message for w in words):
            found.append(source.count("\n", 0, match.start()) + 1)
    return found[:2]


def _lines(
    source: str, one: Suspicion, kernels: set[int], stores: list[int], without: frozenset[int] | set[int] = frozenset()
) -> list[int]:
    """Return at most SHOWN lines of a suspicion, those of its first patterns first. without: lines to leave out."""
    found: list[int] = []
    code = source.split("\n")
    text = prose_lines(source)
    for pattern in one.lines:
        if pattern == STORE:
            hits = stores
        elif pattern == RETURN:
            hits = returns(source)
        elif pattern in FINDERS:
            hits = FINDERS[pattern](source, stores)
        else:
            wanted = re.compile(pattern)
            numbers = (
                sorted(kernels) if kernels and one.inside and not pattern.startswith(ANY) else range(1, len(code) + 1)
            )
            hits = [
                n
                for n in numbers
                if n not in text
                and wanted.search(code[n - 1].split("//")[0].split("# ")[0])
                and not code[n - 1].lstrip().startswith("__global__")
            ]
        found += [n for n in hits if n not in found and n not in without]
    return sorted(found[:SHOWN])
