"""Find the divisor of a division by zero, and why it is 0."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.source.cpp import Function, Text, closing
from grader.source.place import Place

DIVISION = re.compile(r"[/%]=?\s*(?=[A-Za-z_(])")
CAST = re.compile(r"\(\s*(?:const\s+)?(?:u?int(?:64|32)_t|size_t|long long|long|int|unsigned)\s*\)\s*")
SIMPLE = r"[A-Za-z_]\w*(?:\.\w+\(\w*\))?|\d+"  # a name, a number, or the size of a tensor
NEVER_ZERO = re.compile(r"(?:block|grid)Dim\b|warpSize\b|sizeof\b")


def find_zero_divisor(message: str, code: Sequence[str], line: int) -> Place | None:
    """Return the line that computes the divisor of a line's division, and how it becomes 0; None if unknown."""
    text = Text("\n".join(code))
    function = text.around(line)
    if function is None:
        return None
    found = []
    for divisor in _find_divisors(text, function, line):
        value, at = _find_value(text, function, divisor, line)
        found.append((divisor, value, at, _explain_zero(value or divisor)))
    explained = [one for one in found if one[3]] or found
    if len(explained) != 1:
        names = " or ".join(f"`{divisor}`" for divisor, *_ in explained)
        return Place(f"The divisor is {names}: find out which of them is 0.", (line,)) if explained else None
    ((divisor, value, at, why),) = explained
    if not value:
        why = f": it {why}" if why else ""
        return Place(f"`{divisor}` is 0 here{why}. Do not divide by it where it is 0.", (line,))
    made = f"line {at} computes it as `{value}`{f', which {why}' if why else ''}"
    return Place(f"`{divisor}` is 0 here: {made}. Do not divide by it where it is 0, or keep it above 0.", (at, line))


def _find_divisors(text: Text, function: Function, line: int) -> list[str]:
    """Return the different integers that a line divides by, each a name or an expression in brackets."""
    begin = text.start(line)
    end = text.code.find("\n", begin)
    code = text.code[begin : end if end >= 0 else len(text.code)]
    found = []
    for sign in DIVISION.finditer(code):
        rest = CAST.sub("", code[sign.end() :])
        if rest.startswith("("):
            divisor = rest[1 : closing(rest, 0)].strip()
        else:
            name = re.match(r"[\w.]+(?:\[[^\]]*\])?", rest)
            divisor = name[0] if name and not rest[name.end() :].startswith("(") else ""
        is_float = re.search(
            rf"\b(?:float|double|__half)\s[^;]{{0,200}}\b{re.escape(divisor)}\s*[=;,]", text.body(function)
        )
        kinds = [kind for kind, name in function.parameters if name == divisor]
        if (
            divisor
            and not is_float
            and not NEVER_ZERO.match(divisor)
            and not re.search(r"float|double", "".join(kinds))
        ):
            found.append(divisor)
    return list(dict.fromkeys(found))


def _find_value(text: Text, function: Function, divisor: str, line: int) -> tuple[str, int]:
    """Return what a name is set to, in the kernel or where it is launched, and the line; ("", 0) if unknown."""
    if not re.fullmatch(r"[A-Za-z_]\w*", divisor):
        return "", 0
    made = [(value, text.line(at)) for value, at in text.made(divisor, function) if text.line(at) <= line]
    if made:
        return made[-1]
    if divisor not in function.names:
        return "", 0
    at = function.names.index(divisor)
    for host in text.functions.values():
        for launch in text.launches(host):
            if launch.kernel == function.name and at < len(launch.arguments):
                argument, offset = launch.arguments[at]
                before = [(value, text.line(n)) for value, n in text.made(argument, host) if n < offset]
                if re.fullmatch(r"\w+", argument) and before:
                    return before[-1]
                return ("", 0) if re.fullmatch(r"\w+", argument) else (argument, text.line(offset))
    return "", 0


def _explain_zero(value: str) -> str:
    """Return when an integer expression is 0, as in "rounds down to 0 where `C` is less than `groups`"; else ""."""
    value = CAST.sub("", value).strip()
    if found := re.fullmatch(rf"({SIMPLE})\s*/\s*({SIMPLE})", value):
        less = found[2] if found[2].isdigit() else f"`{found[2]}`"
        return f"rounds down to 0 where `{found[1]}` is less than {less}"
    if found := re.fullmatch(rf"({SIMPLE})\s*>>\s*([0-9][0-9]?)", value):
        return f"rounds down to 0 where `{found[1]}` is less than {1 << min(int(found[2]), 62)}"
    if found := re.fullmatch(rf"({SIMPLE})\s*-\s*({SIMPLE})", value):
        equal = found[2] if found[2].isdigit() else f"`{found[2]}`"
        return f"is 0 where `{found[1]}` is {equal}"
    if found := re.fullmatch(rf"({SIMPLE})\s*%\s*({SIMPLE})", value):
        return f"is 0 where `{found[1]}` is a multiple of {found[2] if found[2].isdigit() else f'`{found[2]}`'}"
    return "rounds down" if re.search(r"/(?!\s*\d*\.\d)|>>", value) else ""
