"""Find a loop that does not end, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.source.cpp import Text, closing
from grader.source.place import LOOP, REACH, Place, body_of

CHANGES = r"(?<![\w.])NAME\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|(?:\+\+|--)\s*NAME\b|\bNAME\s*(?:\+\+|--)"
AT_ZERO = re.compile(r"(\w+)\s*>=\s*0\s*;\s*\1\s*(?:/=|>>=)")  # halving never goes below 0


def find_endless_loop(message: str, code: list[str], line: int) -> Place | None:
    """Return the loop around a line and why it does not end; without a line, the only loop that cannot end."""
    if line and (wait := _find_wait_for_block(code, line)):
        return wait
    for at in range(line, max(0, line - REACH), -1):
        first, last = body_of(code, at)
        if LOOP.search(code[at - 1]) and (at == line or first <= line <= last):
            words, _ = _explain_loop(code, at)
            return Place(words or f"The loop in line {at} does not end.", (at,), True)
    endless = [(words, at) for at in range(1, len(code) + 1) for words, sure in [_explain_loop(code, at)] if sure]
    if len(endless) != 1:
        return None
    words, at = endless[0]
    return Place(words, (at,), True)


def _find_wait_for_block(code: list[str], line: int) -> Place | None:
    """Return where a kernel takes a part's number from blockIdx, of a loop that waits for what another block writes."""
    text = Text("\n".join(code))
    kernel = text.around(line)
    if kernel is None or not kernel.kernel:
        return None
    near = "\n".join(code[max(0, line - 2) : line + 1])
    waits = re.search(r"(\w+)\s*\[\s*(\w+)[^\]]*\][^;]*;\s*\}?\s*while\s*\(|while\s*\(.*?(\w+)\s*\[\s*(\w+)", near)
    name, index = (waits[1] or waits[3], waits[2] or waits[4]) if waits else ("", "")
    if name not in kernel.names or not text.stores(kernel, name):
        return None
    for made in text.find(r"\b(\w+)\s*=\s*blockIdx\.[xyz]\s*[;,]", kernel):
        if index == made[1] or text.find(rf"\b{index}\s*=\s*{made[1]}\s*-", kernel):
            at = text.line(made.start())
            words = (
                f"The loop in line {line} waits until another block sets `{name}[{index}]`, and line {at} numbers the "
                "parts by `blockIdx`. Blocks start in any order: the one that this block waits for may not start "
                "before this one ends. Number the parts in the order in which blocks start: one thread of each block "
                "takes the next number with `atomicAdd`."
            )
            return Place(words, (at,), True, (line,))
    return None


def _explain_loop(code: list[str], at: int) -> tuple[str, bool]:
    """Return why the loop of a line does not end, empty if unknown, and whether that is certain."""
    head = _read_head(code[at - 1])
    if head is None:
        return "", False
    if halved := AT_ZERO.search(code[at - 1]):
        name = halved[1]
        why = f"`{name}` is halved while it is at least 0, and half of 0 is 0. Test `{name} > 0`."
        return f"The loop in line {at} does not end: {why}", True
    _, last = body_of(code, at)
    tested = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", head.condition)) - {"not", "len", "size", "shape"}
    body = "\n".join([f"{head.change};", head.rest, *code[at:last]])
    inside = f"{head.condition};\n{body}"
    changed = sorted(name for name in tested if re.search(CHANGES.replace("NAME", name), inside))
    if changed:
        leaves = re.search(r"\b(?:break|return|goto|throw)\b", body) is not None
        if why := _explain_test(head.condition, head.start, body):
            return f"The loop in line {at} does not end: {why}", not leaves
        name = changed[0]
        check = f"Check which values of `{name}` end it, and whether `{name}` reaches one of them."
        return f"The loop in line {at} does not end. {check}", False
    names = " or ".join(f"`{name}`" for name in sorted(tested))
    return (f"The loop in line {at} does not end: nothing in it changes {names}.", True) if names else ("", False)


@dataclass(frozen=True)
class Head:
    """The parts of a loop's head, empty where it has none, and the rest of its line."""

    start: str
    condition: str
    change: str
    rest: str


def _read_head(line: str) -> Head | None:
    """Return the head of the loop in a line; None if it has none, or one that ends in another line."""
    loop = re.search(r"\b(for|while)\s*\(", line)
    if loop is None:
        python = re.search(r"\bwhile\s+([^:(]+):(.*)", line)
        return Head("", python[1], "", python[2]) if python else None
    end = closing(line, loop.end() - 1)
    parts, rest = line[loop.end() : end].split(";"), line[end + 1 :]
    if loop[1] == "while":
        return Head("", parts[0], "", rest)
    return Head(parts[0], parts[1], parts[2], rest) if len(parts) == 3 else None


# `i < n`, the only test of a loop; the limit has no comparison and no call that may change something
TEST = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<relation><=|>=|<|>|!=)\s*(?P<limit>[\w.\s+*/()-]+?)\s*")
SWAPPED = re.compile(r"\s*(?P<limit>[\w.]+)\s*(?P<relation><=|>=|<|>|!=)\s*(?P<name>[A-Za-z_]\w*)\s*")
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}
UNSIGNED = re.compile(r"\b(?:unsigned|size_t|uint\d+_t)\b")
GROWS, SHRINKS = {"+", "*", "<<"}, {"-", "/", ">>"}


@dataclass(frozen=True)
class Step:
    """How a loop's variable changes in each pass. text: as it is written."""

    operator: str
    value: str
    text: str


def _explain_test(condition: str, start: str, body: str) -> str:
    """Return why a condition always holds, with what to do; empty where that is not known. start: the first part of a
    for-loop's head. body: all that runs in each pass.
    """
    for test, turned in ((TEST.fullmatch(condition), False), (SWAPPED.fullmatch(condition), True)):
        if test and (step := _read_step(test["name"], body)):
            relation = TURNED[test["relation"]] if turned else test["relation"]
            return _explain_step(test["name"], relation, test["limit"].strip(), step, condition.strip(), start)
    return ""


def _explain_step(name: str, relation: str, limit: str, step: Step, condition: str, start: str) -> str:
    """Return why a loop's variable keeps its relation to a limit, with what to do; empty where that is not known."""
    begins = re.search(rf"\b{name}\s*=\s*(\w+)\s*$", start)
    holds = f"`{condition}` always holds"
    if step.operator == "%" and step.value == limit and relation in ("<", "<=", "!="):
        return (
            f"`{step.text}` leaves each `{name}` below `{limit}` as it is, so {holds}. Change `{name}` in each pass, "
            f"for example with `++{name}`."
        )
    if (step.operator, step.value) in (("", name), ("+", "0"), ("-", "0"), ("*", "1"), ("/", "1")):
        return f"`{step.text}` leaves `{name}` as it is. Change `{name}` in each pass."
    if begins and begins[1] == "0" and step.operator in ("*", "/", "%", "<<", ">>"):
        advice = f" Let `{name}` start at 1." if step.operator in ("*", "<<") else ""
        return f"`{name}` starts at 0, and `{step.text}` leaves 0 as it is.{advice}"
    if relation == ">=" and limit == "0" and UNSIGNED.search(start):
        return f"`{name}` is unsigned, so {holds}. Declare it `int`."
    if re.fullmatch(rf"\(\s*{name}\s*\+\s*1\s*\)\s*(?:/\s*2|>>\s*1)", step.value) and (relation, limit) in (
        (">", "0"),
        (">=", "1"),
        ("!=", "0"),
    ):
        return f"`{step.text}` leaves 1 as it is, so {holds}. Test `{name} > 1`."
    if relation == "!=" and step.value != "1":
        if step.operator in GROWS | SHRINKS and _is_positive(step.value):
            better = f"{name} {'<' if step.operator in GROWS else '>'} {limit}"
            return f"`{step.text}` can step over `{limit}`, so that `{name}` is never equal to it. Test `{better}`."
        return ""
    if not _is_positive(step.value):
        return ""
    if relation in ("<", "<=") and step.operator in SHRINKS:
        return f"`{step.text}` makes `{name}` smaller, so {holds}. Let `{name}` grow, or turn the test around."
    if relation in (">", ">=") and step.operator in GROWS:
        return f"`{step.text}` makes `{name}` larger, so {holds}. Let `{name}` shrink, or turn the test around."
    return ""


def _read_step(name: str, body: str) -> Step | None:
    """Return the only change of a name; None where there are several, or none of a simple form."""
    changes = list(re.finditer(CHANGES.replace("NAME", name), body))
    if len(changes) != 1 or re.search(rf"&\s*{name}\b", body):
        return None
    (change,) = changes
    if "++" in change[0] or "--" in change[0]:
        return Step(change[0].strip().replace(name, "").strip()[0], "1", change[0].strip())
    value = re.match(r"[^;,\n{}]*", body[change.end() :])
    assert value is not None  # it matches nothing, too
    text, whole = value[0].strip(), f"{change[0].strip()} {value[0].strip()}"
    operator = change[0].strip().removeprefix(name).strip().removesuffix("=")
    if operator:
        return Step(operator, text, whole)
    if one := re.fullmatch(rf"{name}\s*([-+*/%]|<<|>>)\s*([\w.]+)", text):
        return Step(one[1], one[2], whole)
    if one := re.fullmatch(rf"([\w.]+)\s*([+*])\s*{name}", text):
        return Step(one[2], one[1], whole)
    return Step("", text, whole)


def _is_positive(value: str) -> bool:
    """Return whether an expression is certain to be above 0: a number, a constant, or a size of the launch."""
    return bool(re.fullmatch(r"[1-9]\d*|[A-Z][A-Z\d_]*|(?:block|grid)Dim\.[xyz]", value))
