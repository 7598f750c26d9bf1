"""Find where an index is computed with which two threads store at one element, or that no thread can mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.source.cpp import Function, Text, closing
from grader.source.place import Place, join_lines

SAME_STORE = re.compile(r"writes element \d+ of `(\w+)`, which thread \([\d, ]+\) of .{1,60}? writes in line (\d+)")
PAST_END = re.compile(r"(?:reads|writes|updates atomically) element (\d+) of `\w+`")
# simt fills memory that was never written with these words (simt/include/simt/runtime.h).
UNWRITTEN = (0x7FC67FC6, 0x7FC57FC5, 0x7FC47FC4)
# elements by which an index of such a word may differ from it: by what is added, and by the way to another tensor
NEAR = 1 << 24
MOST_LINES = 3


def find_same_index(message: str, code: Sequence[str], line: int) -> Place | None:
    """Return the lines that compute an index where two threads store at it; None for other races, and where an index
    is no variable.
    """
    race = SAME_STORE.search(message)
    if race is None or int(race[2]) > len(code):
        return None
    text = Text("\n".join(code))
    function = text.around(line)
    name = _find_variable(text, line, race[1])
    if int(race[2]) != line:
        return _explain_two_stores(text, function, race[1], line, int(race[2]))
    moves = function and text.find(rf"(?<![\w.]){race[1]}\s*(?:\+=|=(?!=))", function)  # then equal indices say nothing
    lines = _find_lines(text, function, name, line) if function and name and not moves else []
    if not lines:
        return None
    words = f"Both threads have the same `{name}`. Check what {join_lines(lines)} compute{_s(lines)}."
    return Place(words, tuple(lines) if len(lines) == 1 else (), True)  # of several lines, one alone may be wrong


def _explain_two_stores(text: Text, function: Function | None, array: str, line: int, other: int) -> Place | None:
    """Return that two lines store at different indices in a kernel's output; None for shared arrays, where a barrier
    may be what is missing.
    """
    if function is None or array not in function.names or other not in text.lines(function):
        return None
    stores = [(n, _find_variable(text, n, array)) for n in sorted((line, other))]
    if not all(name for _, name in stores) or stores[0][1] == stores[1][1]:
        return None
    (one, first), (two, second) = stores
    words = (
        f"Line {one} stores at `{first}` and line {two} at `{second}`, which are the same element for these threads. "
        "Check which thread must store it: a barrier would only order the two stores."
    )
    return Place(words, (), True, (other,))


def find_unset_index(message: str, code: Sequence[str], line: int) -> Place | None:
    """Return that an index was computed of memory that no thread wrote, and where; None for other indices."""
    access = PAST_END.search(message)
    if access is None or not any(abs(int(access[1]) - word) < NEAR for word in UNWRITTEN):
        return None
    text = Text("\n".join(code))
    function = text.around(line)
    there = re.search(r"(?<![\w.])(\w+)\s*\[\s*([A-Za-z_]\w*)\s*\]\s*[-+*/]?=(?!=)", text.code.split("\n")[line - 1])
    lines = _find_lines(text, function, there[2], line) if function and there else []
    words = "An index as large as this comes from memory that no thread has written."
    if there and lines:
        words += f" Check that all that {join_lines(lines)} use{_s(lines)} for `{there[2]}` was set before."
    return Place(words, (), True)


def _s(lines: Sequence[int]) -> str:
    return "s" if len(lines) == 1 else ""


def _find_variable(text: Text, line: int, array: str) -> str:
    """Return the variable that is the whole index with which a line stores in an array; "" for another index."""
    code = text.code.split("\n")[line - 1]
    for store in re.finditer(rf"(?<![\w.]){array}\s*\[", code):
        end = closing(code, store.end() - 1)
        if re.match(r"\]\s*=(?!=)", code[end:]):
            index = code[store.end() : end].strip()
            return index if re.fullmatch(r"[A-Za-z_]\w*", index) else ""
    return ""


def _find_lines(text: Text, function: Function, name: str, line: int) -> list[int]:
    """Return the lines of a function above a line that set a variable; [] if there is none, or there are many."""
    sets = text.find(rf"(?<![\w.]){name}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)", function)
    lines = sorted({text.line(match.start()) for match in sets if text.line(match.start()) < line})
    return lines if len(lines) <= MOST_LINES else []
