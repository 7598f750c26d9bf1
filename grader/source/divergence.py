"""Find in a kernel's text what keeps some threads of a block from code that all of them must reach."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Set

from grader.source.cpp import Function, Text, closing

ALL_CALL = r"__sync|__shfl|_sync\s*\("  # what every thread of a block or warp must reach
MOST_PLACES = 40  # returns or calls that are looked at: each takes as long as the file has characters
LONGEST = 2000  # characters of an expression that are looked at
# `row = …`, `row += …`, `int row(…)`, `const int row{…}`: a comparison is none of them
ASSIGNED = re.compile(
    r"\b(\w+)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\b(?:int|unsigned|long|auto|bool|float|double|size_t|u?int\d+_t)\s+(\w+)\s*[({]"
)
BRANCH = re.compile(r"\b(?:if|switch)\b|\?")


def find_differing(text: Text, kernel: Function, in_warp: bool = False) -> set[str]:
    """Return the names whose values may differ between a block's threads: computed from threadIdx, or from such.

    in_warp: between the lanes of a warp, which have the same threadIdx.x / 32.
    """
    found = {"threadIdx"}
    body = text.body(kernel)
    assigned = find_assignments(_drop_warp_numbers(body, text) if in_warp else body)
    while new := {name for name, value in assigned if name not in found and _mentions(value, found)}:
        found |= new
    return found


def is_of_a_warp(line: str) -> bool:
    """Return whether what all must reach in a line of code is for the lanes of a warp, as a shuffle is."""
    return "__syncthreads" not in line


def _drop_warp_numbers(code: str, text: Text) -> str:
    """Return code in which each number divided by 32 is replaced by 0."""
    names = re.findall(r"(?:\bconst(?:expr)?\s+\w+\s+|#define\s+)(\w+)\s*=?\s*32\b", text.code)
    divided = re.compile(rf"\s*(?:/\s*(?:{'|'.join(['32', 'warpSize', *names])})\b|>>\s*5\b)")
    for division in reversed(list(divided.finditer(code))[:MOST_PLACES]):
        begin, depth = division.start(), 0
        for at in range(division.start() - 1, -1, -1):  # back to the start of what is divided
            depth += (code[at] in ")]") - (code[at] in "([")
            if depth < 0 or (depth == 0 and not re.match(r"[\w.)\]\[(]", code[at])):
                break
            begin = at
        code = code[:begin] + "0" + code[division.end() :]
    return code


def find_assignments(body: str) -> list[tuple[str, str]]:
    """Return each name that is set or initialized in a body, and the expression.

    An expression ends at the comma before the next declarator, and in the head of a `for` at the closing bracket.
    """
    return [
        (match[1] or match[2], body[match.end() : _find_end(body, match.end())]) for match in ASSIGNED.finditer(body)
    ]


def _find_end(body: str, begin: int) -> int:
    """Return where an expression ends that begins at an offset."""
    depth = 0
    last = min(len(body), begin + LONGEST)
    for at in range(begin, last):
        letter = body[at]
        if letter == ";" or (depth == 0 and letter in ",)]}"):
            return at
        depth += (letter in "([{") - (letter in ")]}")
    return last


def is_conditional(text: Text, caller: Function, at: int, differing: Set[str]) -> bool:
    """Return whether an offset is under an `if`, a `switch` or a conditional expression that threads may decide
    differently.
    """
    conditions = [text.code[begin:end] for begin, end in text.heads(caller, at)]
    return any(_mentions(code, differing) for code in conditions if BRANCH.search(code))


def find_early_returns(
    text: Text, kernel: Function, line: int, lines: Iterable[int], in_warp: bool = False
) -> list[int]:
    """Return those of the lines, before a line, where threads return under a condition that they decide differently.

    in_warp: that the lanes of one warp decide differently.
    """
    differing = find_differing(text, kernel, in_warp)
    code = text.code.split("\n")
    returns = [(n, match) for n in lines if n < line and (match := re.search(r"\breturn\b\s*;", code[n - 1]))]
    return [
        n for n, match in returns[:MOST_PLACES] if is_conditional(text, kernel, text.start(n, match.start()), differing)
    ]


def find_late_returns(text: Text, kernel: Function, at: int, in_warp: bool = False) -> tuple[int, list[int]]:
    """Return the line of the innermost loop around an offset, and the lines behind the offset in it where threads
    return under a condition that they decide differently: they lack in the next pass. (0, []) for none.
    """
    for begin, end in reversed(text.heads(kernel, at)):
        loop = re.compile(r"\b(?:for|while)\s*\(").search(text.code, begin, end)
        if not loop or text.code[end : end + 1] != "{":
            continue
        last = text.line(closing(text.code, end))
        behind = range(text.line(at) + 1, last + 1)
        late = find_early_returns(text, kernel, last + 1, behind, in_warp)
        return (text.line(loop.start()), late) if late else (0, [])
    return 0, []


def find_uneven_loop(text: Text, caller: Function, at: int, in_warp: bool = False) -> int:
    """Return the line of the loop around an offset of which the threads run different numbers of passes, or 0.

    in_warp: of which the lanes of one warp do.
    """
    differing = find_differing(text, caller, in_warp)
    for begin, end in reversed(text.heads(caller, at)):
        loop = re.compile(r"\b(?:for|while)\s*\(").search(text.code, begin, end)
        if loop and _mentions(text.code[loop.end() : closing(text.code, loop.end() - 1)], differing):
            return text.line(loop.start())
    return 0


def find_calls(text: Text, helper: Function, caller: Function | None) -> list[int]:
    """Return the offsets of the calls of a function in another one; in the whole file for None."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(helper.name)}\s*(?:<[^<>;]*>)?\s*\(")
    start, end = (caller.start, caller.end) if caller else (0, len(text.code))
    return [match.start() for match in itertools.islice(pattern.finditer(text.code, start, end), MOST_PLACES)]


def _mentions(code: str, names: Set[str]) -> bool:
    return not names.isdisjoint(re.findall(r"[A-Za-z_]\w*", code))
