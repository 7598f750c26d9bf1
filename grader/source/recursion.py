"""Find what used up a thread's stack: a recursion that does not reach its end, or a large local array."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from grader.source.cpp import Function, Text, closing, split
from grader.source.divergence import find_calls
from grader.source.place import Place

LARGE = 8 << 10  # bytes of a local array that is named: simt gives a thread 64 KiB
SIZES = {"double": 8, "long": 8, "int64_t": 8, "float4": 16, "char": 1, "bool": 1, "__half": 2, "short": 2}
ARRAY = re.compile(r"(?P<kind>\b(?:unsigned\s+|long\s+)?\w+)\s+(?P<name>\w+)\s*(?P<sizes>(?:\[[\w\s*+]+\]\s*)+)[;={]")
TEST = re.compile(r"\s*(?P<name>\w+)\s*(?P<relation>==|<=|>=|<|>)\s*(?P<limit>[\w.\s+-]+?)\s*")
CONSTANT = re.compile(r"(?:\bconst(?:expr)?\s+\w+\s+|#define\s+)(\w+)\s*=?\s*(\d{1,9})\b")
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
TOWARDS = {">=": "+", ">": "+", "<=": "-", "<": "-"}


def find_stack_use(message: str, code: Sequence[str], line: int) -> Place | None:
    """Return the recursion around a line and why it does not end, or the large arrays of the function; None if
    neither is found.
    """
    text = Text("\n".join(code))
    function = text.around(line)
    if function is None:
        return None
    calls = find_calls(text, function, function)
    return _explain_recursion(text, function, calls) if calls else _explain_arrays(text, function)


def _explain_recursion(text: Text, function: Function, calls: list[int]) -> Place:
    name, at = function.name, text.line(calls[0])
    ends = [(test, text.line(begin)) for test, begin in _find_ends(text, function, calls)]
    if not ends:
        words = (
            f"`{name}` calls itself in line {at}, and nothing ends the recursion. Return before the call at its end."
        )
        return Place(words, (at,), True)
    opened = text.code.index("(", calls[0])
    given = [part.strip() for part, _ in split(text.code[opened + 1 : closing(text.code, opened)])]
    for condition, line in ends if len(ends) == 1 else []:
        test = TEST.fullmatch(condition)
        if test and test["name"] in function.names and len(given) == len(function.names):
            argument = given[function.names.index(test["name"])]
            if why := _explain_end(name, at, argument, test, condition.strip(), line):
                return Place(why, tuple(dict.fromkeys((line, at))), True)
    where = " or ".join(f"`{condition.strip()}` (line {line})" for condition, line in ends)
    words = (
        f"`{name}` calls itself in line {at} until {where}. Check that each call comes nearer to that, or write a loop."
    )
    return Place(words, (at,), True, tuple(line for _, line in ends))


def _find_ends(text: Text, function: Function, calls: list[int]) -> list[tuple[str, int]]:
    """Return the conditions under which the function returns without the call, or makes it, and their offsets."""
    found = []
    around = text.heads(function, calls[0])
    for head in text.find(r"\bif\s*\(", function):
        end = closing(text.code, head.end() - 1)
        condition = text.code[head.end() : end].strip()
        if any(begin <= head.start() and end < last for begin, last in around):  # the call is in the `if`
            test = TEST.fullmatch(condition)
            if test is None or test["relation"] not in OPPOSITE:
                continue
            condition = f"{test['name']} {OPPOSITE[test['relation']]} {test['limit']}"
        if head.start() < calls[0]:
            found.append((condition, head.start()))
    return found


def _explain_end(name: str, at: int, argument: str, test: re.Match[str], condition: str, line: int) -> str:
    """Return why calls with an argument do not reach the end of a recursion; empty where that is not known."""
    variable, relation, limit = test["name"], test["relation"], test["limit"].strip()
    calls = f"`{name}` calls itself in line {at} with `{argument}` for `{variable}`"
    if argument == variable:
        return (
            f"{calls}, which changes nothing: `{condition}` in line {line} stays as it is. Pass a value nearer to it."
        )
    step = re.fullmatch(rf"{variable}\s*([-+])\s*(.+)", argument)
    if step is None or re.search(r"[*/%<>?]", step[2]):
        return ""
    sign = step[1]
    if relation == "==":
        if step[2] == "1":
            return ""
        test_instead = f"{variable} {'>=' if sign == '+' else '<='} {limit}"
        return (
            f"{calls}, and ends only where `{condition}` (line {line}). Such a step can pass over `{limit}`: test "
            f"`{test_instead}`."
        )
    if TOWARDS[relation] != sign:
        grows = "larger" if sign == "+" else "smaller"
        return f"{calls}, which makes it {grows} and never leads to `{condition}` (line {line}). Step the other way."
    return ""


def _explain_arrays(text: Text, function: Function) -> Place | None:
    numbers = {name: int(value) for name, value in CONSTANT.findall(text.code)}
    found = []
    for array in text.find(ARRAY.pattern, function):
        before = re.split(r"[;{}]", text.code[function.start : array.start()])[-1]
        elements = [_compute(size, numbers) for size in re.findall(r"\[([^\]]*)\]", array["sizes"])]
        if "__shared__" not in before and "static" not in before and all(elements):
            size = math.prod(elements) * SIZES.get(array["kind"].split()[0], 4)
            found += [(array["name"], size, text.line(array.start()))] if size >= LARGE else []
    if not found:
        return None
    arrays = " and ".join(f"`{name}` (line {line}) takes {size:,} bytes" for name, size, line in found)
    words = f"{arrays} of each thread's stack. Put it in shared or global memory, or process it in smaller parts."
    return Place(words, tuple(line for *_, line in found), True)


def _compute(size: str, numbers: dict[str, int]) -> int:
    """Return the value of a product of numbers and constants; 0 if it is another expression."""
    factors = [part.strip() for part in size.split("*")]
    return math.prod(int(part) if re.fullmatch(r"[0-9]{1,9}", part) else numbers.get(part, 0) for part in factors)
