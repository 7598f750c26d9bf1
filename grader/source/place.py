"""Lines of a student's source to mark, with the reason, and how lines are named and found."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

LOOP = re.compile(r"\b(?:for|while)\b|\bdo\b")
REACH = 30  # lines above a place that are searched for what encloses it


@dataclasses.dataclass(frozen=True)
class Place:
    """Lines to mark, and a sentence that gives the reason. instead: the line where the failure appeared is not marked.
    beside: lines to show as well; without lines to mark, the lines to look at.
    """

    words: str
    lines: tuple[int, ...]
    instead: bool = False
    beside: tuple[int, ...] = ()


def join_lines(lines: Sequence[int]) -> str:
    """Return "line 3", or "line 3, line 5 and line 9"."""
    *before, last = [f"line {n}" for n in lines] or [""]
    return f"{', '.join(before)} and {last}" if before else last


def body_of(code: list[str], at: int) -> tuple[int, int]:
    """Return the first and the last line of the body of a line's `for`, `while` or `if`: by braces in C++, by
    indentation in Python.
    """
    text = code[at - 1]
    if text.rstrip().endswith(":") and "{" not in text:
        indent = len(text) - len(text.lstrip())
        last = at
        while last < len(code) and (not code[last].strip() or len(code[last]) - len(code[last].lstrip()) > indent):
            last += 1
        return at + 1, last
    begin = at
    while "{" not in code[begin - 1]:  # a statement without braces, which may be a loop itself
        if begin == len(code) or code[begin - 1].rstrip().endswith((";", "}")):
            return at, begin
        begin += 1
    depth = 0
    for number in range(begin, len(code) + 1):
        depth += code[number - 1].count("{") - code[number - 1].count("}")
        if depth <= 0:
            return at, number
    return at, len(code)
