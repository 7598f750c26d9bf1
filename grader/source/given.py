"""Finds the student's own lines behind a failure that appears in code which the exercise gave."""

from __future__ import annotations

import re
from collections.abc import Set

from grader.source.cpp import Function, Text
from grader.source.divergence import (
    ALL_CALL,
    find_assignments,
    find_calls,
    find_differing,
    find_early_returns,
    is_conditional,
    is_of_a_warp,
)
from grader.source.place import Place, join_lines
from grader.source.places import explain_return

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
SET = re.compile(r"\b(\w+)\s*(?:\[[^;=]*\]\s*)*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*(\w+)")
CALL = re.compile(r"(\w+)\s*\(([^;]*)")


def find_own_lines(source: str, line: int, given: Set[int], kernel: str | None) -> Place | None:
    """Return the student's lines that lead to a given line; None if the line is not given or no own line is found.

    line: where the failure appeared. kernel: the kernel that ran, as a report names it. The place's `beside` is empty
    where a call is certain to be wrong, else it holds the lines to look at, which are not marked.
    """
    if line not in given:
        return None
    text = Text(source)
    around = text.around(line)
    base = re.split(r"[<(]", kernel or "")[0].split("::")[-1]
    caller = text.functions.get(base)
    if around is None:
        return None
    if around.kernel:
        own = _find_own(text, around, given)
        used = _find_sources(text, around, line)
        sets = [n for n in own if used & _find_set_names(text, n)]
        there = text.code.split("\n")[line - 1]
        meets = re.search(ALL_CALL, there)
        early = find_early_returns(text, around, line, own, is_of_a_warp(there)) if meets else []
        if early:
            return Place(explain_return(early, line, there), tuple(early), True)
        words = f"Line {line} was given to you; what it uses comes from your part of `{around.name}`, {_range(own)}."
        return Place(words, (), True, tuple(own)) if sets else None
    calls = _find_calls(text, around, caller, given)
    return _explain_calls(text, around, line, calls, caller, given) if calls else None


def is_argument(message: str, source: str, line: int, own: Place) -> bool:
    """Return whether the element that a message names is an argument, passed by value, of a given function.

    A compiler may give the reading of it the line of the function, not of the student's one call. line: of the
    function. own: from find_own_lines.
    """
    array, text = re.search(r"`(\w+)`", message), Text(source)
    function = text.around(line)
    if array is None or function is None or len(own.lines) != 1 or own.beside:
        return False
    if re.search(r"[*&\[]", text.code[function.head : function.start]):
        return False
    code, read = text.code.split("\n"), re.compile(rf"(?<![\w.]){array[1]}\s*\[")
    return read.search(code[own.lines[0] - 1]) is not None and read.search(code[line - 1]) is None


def _find_sources(text: Text, function: Function, line: int) -> set[str]:
    """Return the names that a line uses, and those from which the function computes them."""
    code = text.code.split("\n")[line - 1]
    found, new = set(), set(NAME.findall(re.sub(r"\b\w+\s*=(?!=)", "", code)))
    sources: dict[str, set[str]] = {}
    for name, value in find_assignments(text.body(function)):
        sources.setdefault(name, set()).update(NAME.findall(value))
    while new:
        found |= new
        new = {one for name in new for one in sources.get(name, ())} - found
    return found


def _find_set_names(text: Text, line: int) -> set[str]:
    """Return the names that a line may set: assigned, counted up, or passed to a function that may write to them."""
    code = text.code.split("\n")[line - 1]
    names = {name for name, _ in find_assignments(code)} | {match[1] or match[2] for match in SET.finditer(code)}
    writing = (call[2] for call in CALL.finditer(code) if call[1] in text.functions or call[1].startswith("atomic"))
    return names | {name for arguments in writing for name in NAME.findall(arguments)}


def _find_own(text: Text, function: Function, given: Set[int]) -> list[int]:
    """Return the lines of a function's body that are the student's and hold code."""
    lines = text.code.split("\n")
    inside = range(text.line(function.start), text.line(function.end) + 1)
    return [n for n in inside if n not in given and re.search(r"\w", lines[n - 1])]


def _find_calls(text: Text, helper: Function, caller: Function | None, given: Set[int]) -> list[int]:
    """Return the student's lines that call a helper, in the kernel that ran if it is known: their offsets."""
    return [at for at in find_calls(text, helper, caller) if text.line(at) not in given]


def _explain_calls(
    text: Text, helper: Function, line: int, calls: list[int], caller: Function | None, given: Set[int]
) -> Place:
    lines = sorted({text.line(at) for at in calls})
    marked, why = tuple(lines) if len(lines) == 1 else (), f"You call `{helper.name}`, which holds line {line}, "
    there = text.code.split("\n")[line - 1]
    if caller and re.search(ALL_CALL, there):
        in_warp = is_of_a_warp(there)
        differing = find_differing(text, caller, in_warp)
        early = find_early_returns(text, caller, max(lines), _find_own(text, caller, given), in_warp)
        apart = sorted({text.line(at) for at in calls if is_conditional(text, caller, at, differing)})
        must = f"`{helper.name}` must be called by all threads, but"
        if early:
            why = f"{must} {join_lines(early)} lets some return before it. Let every thread reach the call."
            return Place(why, tuple(early), True, tuple(lines))
        if apart:
            why = f"{must} the call in {join_lines(apart)} is under a condition that not all of them meet. Move it out."
            return Place(why, tuple(apart), True)
    return Place(f"{why}in {join_lines(lines)}.", marked, True, () if marked else tuple(lines))


def _range(lines: list[int]) -> str:
    return f"lines {lines[0]} to {lines[-1]}" if len(lines) > 1 else join_lines(lines)
