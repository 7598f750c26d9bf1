"""Say what a blamed number, comparison, term or argument does as it stands, and where infinity and NaN come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from grader.diagnosis.effects import find_arrays_indexed, read_line
from grader.diagnosis.operator_mutants import ONE_MORE, ROUNDED_UP

EQUAL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}  # the comparison that differs where both sides are equal
REVERSED = {"+": "-", "-": "+"}
LANES = 32
EXP_LIMIT = 88  # exp of more is infinite in float32
NEARBY = 20  # lines in which a variable's use is looked for
NUMBER = r"(?:\d+\.?\d*|\.\d+)f?"
ONE_PLUS = r"1(?:\.0*)?f?\s*\+"


def explain_comparison(what: str, needs: Collection[str], line: int) -> str:
    """Return at which values a comparison says the wrong thing; empty where it is wrong at more than equal ones.

    what: such as `i > total`. needs: the operators with which the failing cases pass.
    """
    parts = re.match(r"(.+?)\s*(?<![<>])(<=|>=|<|>)(?![<>])\s*(.+)$", what)
    if parts is None or EQUAL[parts[2]] not in needs:
        return ""
    left, sign, right = parts.groups()
    holds, must = ("true", "false") if "=" in sign else ("false", "true")
    return (
        f"`{what}` in line {line} is {holds} where `{left}` is `{right}`, and must be {must} there. "
        f"Write `{left} {EQUAL[sign]} {right}`."
    )


def leaves_the_warp(number: str, needed: str, line: int, code: Sequence[str]) -> bool:
    """Return whether a number is the first distance of shuffles, and the needed one is no distance within a warp.

    With it each lane gets its own value back: all sums are doubled, which by chance mends a factor of one half.
    """
    return needed.isdigit() and int(needed) >= LANES and _starts_shuffles(number, line, code)


def undoes_sharing(number: str, needed: str, line: int, code: Sequence[str]) -> bool:
    """Return whether a number is the step of a loop that starts at the thread's own element, and 1 is needed.

    With it the first thread takes the elements of all, which mends a sum of which the other threads' parts are lost.
    """
    loop = rf"\bfor\s*\([^;]*=([^;]*);[^;]*;[^;]*\+=\s*{re.escape(number)}\s*\)"
    shared = re.search(loop, read_line(code, line))
    if shared is None or needed != "1":
        return False
    above = "\n".join(code[max(0, line - NEARBY) : line - 1])
    own = {match[1] for match in re.finditer(r"(?<![\w.])(\w+)\s*=[^=;,]*\bthreadIdx\b", above)} | {"threadIdx"}
    return not own.isdisjoint(re.findall(r"\w+", shared[1]))


def is_lane_mask(number: str, needed: str, line: int, code: Sequence[str]) -> bool:
    """Return whether a number makes the mask of the lanes up to its own, or before its own, and the other is needed."""
    values = {one.rstrip("uUlL") for one in (number, needed)}
    return values == {"1", "2"} and _find_lane_mask(number, line, code) is not None


def _find_lane_mask(number: str, line: int, code: Sequence[str]) -> re.Match[str] | None:
    """Return the match of `(1u << lane) - 1`, with the lane's name."""
    return re.search(rf"\(\s*{re.escape(number)}\s*<<\s*(\w*lane\w*)\s*\)\s*-\s*1\b", read_line(code, line))


def _starts_shuffles(number: str, line: int, code: Sequence[str]) -> bool:
    """Return whether a number is where a loop starts that halves the distance of shuffles."""
    token = rf"(?<![\w.]){re.escape(number)}(?![\w.])"
    halves = rf"\bfor\s*\([^;]*=\s*{token}\s*;[^;]*;[^)]*(?:>>=\s*1|/=\s*2)"
    return re.search(halves, read_line(code, line)) is not None and "__shfl" in "\n".join(code[line - 1 : line + 3])


def explain_number(number: str, needs: Collection[str], line: int, code: Sequence[str]) -> str:
    """Return what a number does, and which one is needed; empty where the mutants that pass do not agree on one."""
    text = read_line(code, line)
    if words := _explain_start(number, needs, line, code) or _explain_fallback(number, line, code):
        return words
    if len(needs) != 1 or "INFINITY" in (needed := next(iter(needs))):
        return ""
    token = rf"(?<![\w.]){re.escape(number)}(?![\w.])"
    if len(re.findall(token, text)) != 1:
        return f"Line {line} needs {needed} in place of {number}."
    value, wanted = (float(one.rstrip("fuUlL")) for one in (number, needed))
    if (mask := _find_lane_mask(number, line, code)) and is_lane_mask(number, needed, line, code):
        has, wants = ("up to its own", "before its own") if value == 2 else ("before its own", "up to its own")
        return (
            f"`{mask[0]}` in line {line} has the bits of the lanes {has}, and those of the lanes {wants} are needed. "
            f"Write `({needed} << {mask[1]}) - 1`."
        )
    if wanted == 2 * value and _starts_shuffles(number, line, code):
        return (
            f"The first distance in line {line} is {number}, so that each sum takes the values of {2 * value:g} lanes "
            f"alone: a warp has {LANES}. Start at {needed}."
        )
    if re.search(rf"\bfor\s*\([^;]*=\s*0\s*;[^;]*<\s*{token}\s*;", text):
        return f"The loop in line {line} makes {number} passes, and {needed} are needed."
    if exchanged := re.search(rf"(\w+)\s*\^\s*{token}", text):
        pairs = ": 0 with 1, 2 with 3, and so on" if value == 1 else ""
        instead = f"`{exchanged[1]}` alone" if wanted == 0 else f"{needed} in place of {number}"
        return f"`{exchanged[1]} ^ {number}` in line {line} exchanges numbers{pairs}. Use {instead}."
    added = re.search(rf"[\w)\]]\s*([-+])\s*{token}", text)
    if added and not re.match(r"\s*[*/%]", text[added.end() :]):
        does, must = ("adds", "add") if added[1] == "+" else ("subtracts", "subtract")
        instead = f"it must {must} {needed}" if wanted else f"it must {must} nothing"
        side = "small" if (wanted > value) == (added[1] == "+") else "large"
        return f"Line {line} {does} {number}, and {instead}: the result is {abs(wanted - value):g} too {side}."
    for sign, does in (
        (r"\*", "multiplies by"), ("/", "divides by"), ("%", "takes the remainder by"), (">>", "shifts by"),
        ("<<", "shifts by"), ("&", "keeps the bits of"),
    ):  # fmt: skip
        if re.search(rf"{sign}\s*{token}", text):
            return f"Line {line} {does} {number} where {needed} is needed."
    return f"Line {line} needs {needed} in place of {number}."


def _explain_start(number: str, needs: Collection[str], line: int, code: Sequence[str]) -> str:
    """Return what a maximum or minimum that starts at a number misses; empty if the number is no such start."""
    start = re.search(rf"(?<![\w.])(\w+)\s*=\s*{re.escape(number)}\s*[;,)]", read_line(code, line))
    for needed, extreme, side, function, sign in (
        ("-INFINITY", "maximum", "below", "max", ">"), ("INFINITY", "minimum", "above", "min", "<"),
    ):  # fmt: skip
        if start and needed in needs and _is_extreme(start[1], function, sign, code[line - 1 : line + NEARBY]):
            return (
                f"The {extreme} `{start[1]}` starts at {number} in line {line}: where all values are {side} that, it "
                f"stays {number}. Start at `{needed}`."
            )
    return ""


def _explain_fallback(number: str, line: int, code: Sequence[str]) -> str:
    """Return that a number stands for an element that does not exist; empty for a number that does not.

    Such as 0 in `float v = i < n ? x[i] : 0.0f;`. Which number does no harm there depends on what uses it.
    """
    choice = rf"(?<![\w.])(\w+)\s*=\s*([^=;?]+[<>][^;?]+)\?[^;]*\[[^;]*:\s*{re.escape(number)}\s*[;,]"
    made = re.search(choice, read_line(code, line))
    if made is None:
        return ""
    name, condition = made[1], made[2].strip()
    for n in range(line + 1, min(line + NEARBY, len(code)) + 1):
        if re.search(r"__global__|__device__", read_line(code, n)):
            break
        if re.search(rf"(?<![\w.]){name}\b", read_line(code, n)):
            return (
                f"Where `{condition}` is false there is no element, and line {line} takes {number} in its place. Line "
                f"{n} uses that like an element, and must leave it out."
            )
    return ""


def _is_extreme(name: str, function: str, sign: str, code: Sequence[str]) -> bool:
    """Return whether lines set a variable to the larger (max, >) or the smaller (min, <) of itself and a value."""
    text = "\n".join(code)
    called = rf"(?<![\w.]){name}\s*=\s*\w*{function}\w*\s*\((?:[^;]*,)?\s*{name}\s*[,)]"
    compared = rf"\w\s*{sign}\s*{name}\s*(?:\)|\|\||&&|\?)"
    return re.search(called, text) is not None or re.search(compared, text) is not None


def explain_term(what: str, needs: Collection[str], line: int, code: Sequence[str]) -> str:
    """Return what a term that is added or subtracted does there; empty where that is not known.

    what: such as `w + 1`. needs: what the mutants that pass compute instead.
    """
    left, sign, right = split_last_term(what)
    if not sign:
        return ""
    head = re.search(
        rf"\bfor\s*\([^;]*;\s*{re.escape(what)}\s*(<=?)\s*([^;]+);", " ".join(read_line(code, line).split())
    )
    if head and sign == "+" and left in needs:
        return (
            f"The loop in line {line} ends where fewer than `{right}` are left, because it tests `{what}`: the last "
            f"ones are never taken. Let it run while `{left} < {head[2].strip()}`."
        )
    if head and sign == "-" and left in needs:
        return (
            f"The loop in line {line} tests `{what}`, and so also runs where `{left} {head[1]} {head[2].strip()}` is "
            f"false. Let it run while `{left} {head[1]} {head[2].strip()}`."
        )
    if set(needs) == {f"{left} {REVERSED[sign]} {right}"}:  # as the mutant quotes it
        does, must = ("adds", "subtract") if sign == "+" else ("subtracts", "add")
        to = "to" if sign == "+" else "from"
        return f"Line {line} {does} `{right}` {to} `{left}`, and must {must} it."
    if sign == "+" and left in needs and (words := _explain_parts(left, right, line, code)):
        return words
    if sign == "-" and right == "1" and left in needs and set(needs) <= {left, ONE_MORE, f"{left} + 1"}:
        return f"Line {line} subtracts 1 from `{left}`, and the expected values are without that. Use `{left}` alone."
    if left in needs and (arrays := find_arrays_indexed(what, line, code)):
        does, to = ("adds", "to") if sign == "+" else ("subtracts", "from")
        return (
            f"Line {line} {does} `{right}` {to} `{left}` in the index of `{arrays[0]}`, and so takes another element "
            f"than the one it needs. Use `{left}` alone."
        )
    return ""


def _explain_parts(array: str, offset: str, line: int, code: Sequence[str]) -> str:
    """Return that a shared array has a part for each group of threads, of which the first alone is read; else empty.

    Such as `int* mine = own + threadIdx.x / 32 * bins;` where a later line reads own[b].
    """
    name = re.search(rf"\*\s*(?:const\s+)?(\w+)\s*=\s*{array}\s*\+", read_line(code, line))
    shared = any(re.search(rf"__shared__[^;]*\b{array}\s*\[", one) for one in code[max(0, line - NEARBY) : line])
    if name is None or not shared or "threadIdx" not in offset:
        return ""
    for n in range(line + 1, min(line + NEARBY, len(code)) + 1):
        text = read_line(code, n)
        if re.search(r"__global__|__device__", text):
            break
        if re.search(rf"(?<![\w.]){array}\s*\[[^\[\]]*\](?!\s*[-+*/]?=(?!=))", text):
            return (
                f"`{name[1]}` in line {line} is the threads' own part of `{array}`, and line {n} takes the first part "
                f"alone. Add up all parts there, or let all threads use `{array}` itself."
            )
    return ""


def split_last_term(what: str) -> tuple[str, str, str]:
    """Return what stands before the last + or - outside of parentheses, the sign, and the last term; "" for no sign."""
    depth = 0
    for at in range(len(what) - 1, 0, -1):
        depth += (what[at] in ")]") - (what[at] in "([")
        if depth == 0 and what[at] in "+-" and what[:at].strip() and what[:at].strip()[-1] not in "+-*/%(<>=&|^":
            return what[:at].strip(), what[at], what[at + 1 :].strip()
    return "", "", ""


def explain_other_operator(what: str, needs: Collection[str], line: int) -> str:
    """Return the operation that is needed in place of another one; empty if it is not one alone."""
    needed = next(iter(needs)) if len(needs) == 1 else ""
    if not needed or needed in (ONE_MORE, ROUNDED_UP) or len(needed) < len(what) or needed == what:
        return ""
    return f"Line {line} computes `{what}` where it needs `{needed}`."


def explain_argument(function: str, needed: str, line: int, code: Sequence[str]) -> str:
    """Return why the argument of exp lacks a term that is subtracted elsewhere; empty for another argument.

    needed: such as `- top`.
    """
    sign, _, name = needed.partition(" ")
    if sign != "-" or "exp" not in function:
        return ""
    near = range(max(1, line - NEARBY), min(len(code), line + NEARBY) + 1)
    for n in near:
        text = read_line(code, n)
        if re.search(rf"(?<![\w.]){name}\s*\+\s*\w*log|log\w*\([^;]*\)\s*\+\s*{name}\b", text):
            return (
                f"Line {n} adds `{name}` to the logarithm of the sum, so that each term must be relative to it. "
                f"Subtract `{name}` in the argument of `{function}` in line {line}."
            )
    for n in near:
        if n != line and re.search(rf"exp\w*\([^;]*-\s*{name}\b", read_line(code, n)):
            return (
                f"The argument of `{function}` is relative to `{name}` in line {n}, and it is not in line {line}. "
                f"Subtract `{name}` there too."
            )
    return ""


def explain_birth(line: int, value: str, code: Sequence[str]) -> tuple[int, str]:
    """Return the line to mark and why it turns finite numbers into `value`, NaN or infinity.

    All numbers that the line reads are finite. So only 0 / 0, a root or a logarithm of a negative number gives NaN, and
    only exp of a large number, x / 0, the logarithm of 0, or a result above the largest float gives infinity.
    """
    text = read_line(code, line)
    outside = re.sub(r"\[[^\[\]]*\]", "", text)  # what is divided in an index is whole
    exps = re.findall(r"\b(?:__)?exp\w*(?=\s*\()", outside)
    logs, roots = re.findall(r"\b\w*log\w*(?=\s*\()", outside), re.findall(r"\br?sqrt\w*(?=\s*\()", outside)
    divides = re.search(rf"[^/]/\s*(?!{NUMBER}\b|\(\s*{ONE_PLUS})[\w(]", outside) is not None
    first = f"Line {line} is the first to turn finite numbers into {value}"
    if value == "infinity" and exps and not divides and not logs:
        return line, _explain_overflow(exps[0], line, code)
    ways = []
    if value == "infinity":
        ways += [f"`{exps[0]}` of more than {EXP_LIMIT} is infinite in float32"] if exps else []
        ways += [f"`{logs[0]}(0)` is -infinity"] if logs else []
        ways += ["it divides by 0"] if divides or roots else []
        ways = ways or ["its result is larger than the largest float"]
    else:
        ways += ["it divides 0 by 0"] if divides else []
        ways += [f"`{(logs or roots)[0]}` of a negative number is NaN"] if logs or roots else []
    if ways == ["it divides 0 by 0"] and (low := find_low_maximum(line, code)):
        at, name, start = low
        return at, (
            f"The maximum `{name}` starts at {start} in line {at}. Where all values lie far below that, it stays "
            f"{start}, every exponential is 0, and line {line} divides 0 by 0. Start at `-INFINITY`."
        )
    return line, f"{first}: {', or '.join(ways)}." if ways else f"{first}."


def is_cause(line: int, value: str, code: Sequence[str]) -> bool:
    """Return whether the line itself is wrong that turns finite numbers into `value`: exp of a large argument is.

    A divisor of 0 and the logarithm of 0 come from lines before.
    """
    return value == "infinity" and explain_birth(line, value, code)[1].startswith("`")


def _explain_overflow(function: str, line: int, code: Sequence[str]) -> str:
    near = "\n".join(code[max(0, line - 3) : line + 3])
    words = f"`{function}` in line {line} overflows: in float32 it is infinite for an argument above {EXP_LIMIT}."
    if re.search(rf"/\s*\(\s*{ONE_PLUS}", near):  # a sigmoid: e / (1 + e)
        return f"{words} Write 1 / (1 + `{function}(-…)`), which needs no infinity for any argument."
    return f"{words} Subtract the largest of the arguments from each first, so that all are 0 or below."


def find_low_maximum(line: int, code: Sequence[str]) -> tuple[int, str, str] | None:
    """Return the line above in which a variable starts at 0 that then takes the maximum, its name, and that start."""
    for n in range(line - 1, max(0, line - 2 * NEARBY), -1):
        text = read_line(code, n)
        if re.search(r"__global__|\bvoid\s+\w+\s*\(", text):
            return None
        for name, start in re.findall(r"\bfloat\s+(\w+)\s*=\s*(0(?:\.0*)?f?)\s*[;,]", text):
            if _is_extreme(name, "max", ">", code[n - 1 : line]):
                return n, name, start
    return None
