"""Say what a blamed operation does as it stands, in words that hold for every mutation of its kind."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from grader.diagnosis.operator_mutants import ONE_MORE, ROUNDED_UP

LARGER = {ONE_MORE, ROUNDED_UP}
DOES = {"+": "adds `{dropped}` to `{needed}`", "-": "subtracts `{dropped}` from `{needed}`"}
DOES |= {"*": "multiplies `{needed}` by `{dropped}`", "/": "divides `{needed}` by `{dropped}`"}
DOES |= {"%": "takes `{needed}` modulo `{dropped}`"}


def explain_too_small(what: str, line: int, code: Sequence[str], gives_nan: bool) -> str:
    """Return what follows from an operation whose result must be one larger.

    what: the operation; several are joined by "` and `". code: the lines of the file. gives_nan: whether the output is
    NaN.
    """
    is_are = "are" if "` and `" in what else "is"
    start = f"`{what}` in line {line} {is_are} one too small"
    name, loop = _find_loop(what, line, code)
    if not loop:
        return f"{start}: the last element is left out."
    ends = f", which runs to `{name}`," if name else ""
    if not re.search(r"\bfor\s*\([^;]*=\s*0\s*;", code[loop - 1]) or re.search(r"\bmax\w*\(", code[line - 1]):
        return f"{start}: the loop in line {loop}{ends} leaves out its last pass."
    nan = " What the loop sums up stays 0 there, and a division by 0 gives NaN." if gives_nan else ""
    return f"{start}: the loop in line {loop}{ends} leaves out its last pass, and makes none where `{what}` is 0.{nan}"


def explain_operation(
    what: str, needs: Collection[str], line: int, code: Sequence[str], twice: int = 0, pattern: str = ""
) -> str:
    """Return what an operation does and what is expected instead; empty where that is not known.

    needs: what the mutants that pass compute instead of the operation; "" for another operator. code: the lines of the
    file. twice: another line that applies the same operand, or 0. pattern: of the wrong elements.
    """
    operands = [one for one in needs if one and one not in LARGER and len(one) < len(what)]  # no other operation
    needed = operands[0] if len(operands) == 1 else ""
    sign, dropped = split_operation(what, needed)
    text = code[line - 1] if 0 < line <= len(code) else ""
    if needed and sign == "/" and ends_loop(what, text):
        return (
            f"The loop in line {line} ends too early: at `{what}`, its last passes are missing. "
            f"Let it run to `{needed}`."
        )
    if not needed or not sign or len(needs) > 1:
        return ""
    if twice and sign in "+-*/":
        does = {"+": "add", "-": "subtract", "*": "multiply by", "/": "divide by"}[sign]
        first, second = sorted((line, twice))
        return f"Line {first} and line {second} both {does} `{dropped}`. Once is expected."
    does = DOES[sign].format(dropped=dropped, needed=needed)
    if sign in "/%" and (arrays := find_arrays_indexed(what, line, code)):
        shared = " and ".join(f"`{name}`" for name in arrays[:2])
        return (
            f"Line {line} {does}, so that several values of `{needed}` get the same result and share one element of "
            f"{shared}. Each needs its own: use `{needed}` itself."
        )
    if sign == "/" and _is_sum(needed, line, code):
        scaled = re.match(r"scaled by ([\d.e-]+)$", pattern)
        each = f" Each value is {scaled[1]} times the expected one." if scaled else ""
        return f"Line {line} {does}: that is a mean, and the sum is expected.{each} Use `{needed}` alone."
    return f"Line {line} {does}, and the expected values are without that. Use `{needed}` alone."


def explain_missing_factor(name: str, factor: str, line: int, code: Sequence[str]) -> str:
    """Return why a sum of exponentials needs a factor `expf(old - new)`; empty for another factor."""
    maxima = re.fullmatch(r"expf?\((\w+) - (\w+)\)", factor)
    if maxima is None:
        return ""
    old, new = maxima[1], maxima[2]
    text = code[line - 1] if 0 < line <= len(code) else ""
    added = f"and line {line} adds terms" if re.search(rf"-\s*{new}\b", text) else "and what is added to it is"
    return (
        f"What `{name}` holds so far is relative to the maximum `{old}`, {added} relative to `{new}`: the two do not "
        f"fit where the maximum has changed. Multiply `{name}` by `{factor}` first."
    )


def explain_missing_guard(condition: str, name: str, line: int, until: int, code: Sequence[str]) -> str:
    """Return that a statement also uses what a thread without an element has in its place.

    until: the line that declares `name` as an element where `condition` holds, and as a constant elsewhere.
    """
    made = re.search(rf"(?<![\w.]){name}\s*=[^;]*\?[^;]*:\s*(-?[\w.]+)\s*[;,]", read_line(code, until))
    fallback = f"`{name}` is {made[1]} there" if made else f"`{name}` has another value there"
    counts = re.search(r"\batomic(?:Add|Inc)\w*\s*\(", read_line(code, line)) is not None
    does = "counts it like an element" if counts else "uses it like an element"
    return (
        f"Where `{condition}` is false there is no element: {fallback} (line {until}), and line {line} {does}. "
        f"Let line {line} run only where `{condition}`."
    )


def explain_shifted_index(array: str, too_large: bool, line: int, code: Sequence[str]) -> str:
    """Return that an index is one too large or too small, and what follows for what is stored or read there."""
    off, beside = ("large", "after") if too_large else ("small", "before")
    text = " ".join(read_line(code, line).split())
    stored = re.search(rf"(?<![\w.]){re.escape(array)}\s*\[[^;]*?\]\s*(?:[-+*/|&^]|<<|>>)?=(?!=)", text)
    added = re.search(rf"\batomic\w+\s*\(\s*(?:&\s*)?{re.escape(array)}\b", text)
    words = f"The index of `{array}` in line {line} is one too {off}: each value "
    if not stored and not added:
        return f"{words}comes from the element {beside} the one that is needed."
    words += f"goes to the element {beside} its own."
    index = re.search(rf"(?<![\w.]){re.escape(array)}\s*\[\s*([a-z_]\w*)\s*\]", text)
    made = _find_last_setting(index[1], line, code) if index else []
    if index is None or not made:
        return words
    lines = " and ".join(filter(None, [", ".join(f"line {n}" for n in made[:-1]), f"line {made[-1]}"]))
    return f"{words} Check how `{index[1]}` is computed in {lines}."


def _find_last_setting(name: str, line: int, code: Sequence[str]) -> list[int]:
    """Return the lines above that declare and change a variable of a kernel, at most three; [] if none declares it."""
    found: list[int] = []
    for n in range(line - 1, max(0, line - 20), -1):
        text = read_line(code, n)
        if re.search(r"__global__|__device__", text):
            return []
        if re.search(rf"\b(?:int|int64_t|long|size_t|unsigned|auto)\s[^;()]*(?<![\w.]){name}\s*=(?!=)", text):
            return [n, *reversed(found)][:3]
        if re.search(rf"(?<![\w.]){name}\s*[-+*/%]?=(?!=)", text):
            found.append(n)
    return []


def explain_overwritten(name: str, line: int, until: int, code: Sequence[str]) -> str:
    """Return what follows from a line `until` that overwrites a variable before `line` uses its old value."""
    words = f"Line {until} overwrites `{name}` before line {line} uses its old value."
    text = code[line - 1] if 0 < line <= len(code) else ""
    made = re.search(rf"(?<![\w.]){name}\s*=\s*(\w+)\s*;", code[until - 1] if 0 < until <= len(code) else "")
    difference = re.search(rf"\b(?:{name} - {made[1]}|{made[1]} - {name})\b", text) if made else None
    if difference:
        one = f"`{difference[0]}` is always 0"
        power = re.search(rf"\b(expf?)\(\s*{difference[0]}\s*\)", text)
        words += f" There {one}" + (f", and `{power[1]}({difference[0]})` is always 1." if power else ".")
    return f"{words} Move line {until} below line {line}."


def split_operation(what: str, needed: str) -> tuple[str, str]:
    """Return the operator and the other operand of an operation of which one operand is `needed`."""
    if needed and what.startswith(needed) and (rest := what[len(needed) :].strip()):
        return (rest[0], rest[1:].strip()) if rest[0] in DOES else ("", "")
    if needed and what.endswith(needed) and (rest := what[: -len(needed)].strip()):
        return (rest[-1], rest[:-1].strip()) if rest[-1] in "+*" else ("", "")
    return "", ""


def is_in_exponent(what: str, line: int, code: Sequence[str]) -> bool:
    """Return whether an operation of a line is in the argument of exp."""
    text = code[line - 1] if 0 < line <= len(code) else ""
    return re.search(rf"\bexpf?\s*\([^;]*{re.escape(what)}", " ".join(text.split())) is not None


def ends_loop(what: str, text: str) -> bool:
    """Return whether an operation is the bound of a line's loop."""
    head = re.search(r"\bfor\s*\([^;]*;([^;]*);", text)
    return head is not None and re.search(rf"<=?\s*{re.escape(what)}\s*$", " ".join(head[1].split())) is not None


def _find_loop(what: str, line: int, code: Sequence[str]) -> tuple[str, int]:
    """Return the variable of a line that is the bound of a loop after it, and the loop's line; ("", 0) for none."""
    text = code[line - 1] if 0 < line <= len(code) else ""
    if ends_loop(what, text):
        return "", line
    made = re.search(r"(?<![\w.])(\w+)\s*=(?!=)", text)
    if made is None or what not in text:
        return "", 0
    for n in range(line + 1, min(line + 20, len(code)) + 1):
        if re.search(rf"\bfor\s*\([^;]*;[^;]*<\s*{made[1]}\s*;", code[n - 1]):
            return made[1], n
    return "", 0


def find_arrays_indexed(what: str, line: int, code: Sequence[str]) -> list[str]:
    """Return the arrays whose index an operation is, directly or as the value of a variable."""
    text = code[line - 1] if 0 < line <= len(code) else ""
    if directly := re.findall(rf"(\w+)\[[^\]]*{re.escape(what)}[^\]]*\]", text):
        return list(dict.fromkeys(directly))
    made = re.search(rf"\b(?:int|int64_t|long|size_t|unsigned|auto)\s+(\w+)\s*=\s*{re.escape(what)}\s*[;,]", text)
    if made is None:
        return []
    after = "\n".join(code[line : line + 20]).split("\n}")[0]
    return list(dict.fromkeys(re.findall(rf"(\w+)\[\s*{made[1]}\s*\]", after)))


def _is_sum(name: str, line: int, code: Sequence[str]) -> bool:
    """Return whether lines above add up a variable."""
    above = "\n".join(code[max(0, line - 30) : line])
    return re.fullmatch(r"\w+", name) is not None and re.search(rf"(?<![\w.]){name}\s*\+=", above) is not None


def read_line(code: Sequence[str], line: int) -> str:
    """Return a line of the file without its comment; empty if there is none of that number."""
    return code[line - 1].split("//")[0] if 0 < line <= len(code) else ""
